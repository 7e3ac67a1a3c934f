//! Counts instructions per request with callgrind: of the engine, of the whole server in user
//! space, and of tables alone. Counts are reproducible where times are not, so that a small loss
//! shows even on a noisy machine, and a test can forbid it.
//!
//! | file | idea |
//! | --- | --- |
//! | `engine` | the engine alone, per table and access mode |
//! | `server` | a server with one worker, over TCP |
//! | `limits` | what users and limits cost in a server |
//! | `alone` | a table alone, as `bench store` drives it |
//! | `budgets` | what each case may take |
//! | `walk` | the files that a request passes |
//! | `callgrind` | runs a program under callgrind |

mod alone;
mod budgets;
mod callgrind;
mod engine;
mod limits;
mod server;
mod walk;

use crate::passed::{Check, Inputs, Which};
use anyhow::bail;
use budgets::Budgets;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a case is counted that is above its budget.
const COUNTS: usize = 3;

/// What is counted, and what the counts are compared with.
#[derive(clap::Args)]
pub struct Counting {
    /// Count the server over TCP instead of the engine
    #[arg(long)]
    server: bool,
    /// Count tables alone, with the loop of `glimmer bench store`
    #[arg(long, conflicts_with = "server")]
    alone: bool,
    /// Count what users and limits cost a request, for docs/results/limits.txt
    #[arg(long, conflicts_with_all = ["server", "alone"])]
    limits: bool,
    /// Compare with this program: target/callgrind/counted/examples/requests of another checkout,
    /// or with --server target/callgrind/counted/glimmer, or with --alone
    /// target/callgrind/counted/examples/operations
    #[arg(long)]
    beside: Option<PathBuf>,
    /// Fail if a count is more than 2% above its budget in xtask/instructions.txt, or more than 10%
    /// on a processor of another make
    #[arg(long, conflicts_with_all = ["beside", "server", "alone", "limits", "renew"])]
    check: bool,
    /// Write the list of files that requests pass into ARCHITECTURE.md
    #[arg(long, conflicts_with_all = ["beside", "server", "alone", "renew", "check"])]
    walk: bool,
    /// Write the budgets
    #[arg(long, conflicts_with_all = ["beside", "server", "alone"])]
    renew: bool,
}

/// One kind of request, and what executes it.
#[derive(Clone, Debug)]
struct Case {
    /// What executes it.
    row: String,
    /// The kind of request.
    column: String,
}

impl Case {
    /// The name of the case in the file of the budgets.
    fn name(&self) -> String {
        format!("{}, {}", self.row, self.column)
    }
}

/// One of the programs that are counted.
struct Subject {
    /// What it is, for the check that the suite leaves out while nothing changes.
    name: &'static str,
    /// The crate that it is built from.
    package: &'static str,
    cases: fn() -> Vec<Case>,
    build: fn() -> anyhow::Result<PathBuf>,
    per_request: fn(&Path, &Case) -> anyhow::Result<f64>,
    /// What else has to hold for the program.
    holds: fn(&Path) -> anyhow::Result<()>,
}

/// What the counts depend on beside the crates.
const PATHS: [&str; 3] = [
    "xtask/src/instructions",
    "xtask/instructions.txt",
    walk::PAGE,
];

const ENGINE: Subject = Subject {
    name: "instructions of the engine",
    package: "glimmer-engine",
    cases: engine::cases,
    build: engine::build,
    per_request: engine::per_request,
    holds: |_| Ok(()),
};

const SERVER: Subject = Subject {
    name: "instructions of the server",
    package: "glimmer",
    cases: server::cases,
    build: server::build,
    per_request: server::per_request,
    holds: |server| {
        server::refuses_tls(server)?;
        walk::check(server)
    },
};

const ALONE: Subject = Subject {
    name: "instructions of tables alone",
    package: "glimmer-microbench",
    cases: alone::cases,
    build: alone::build,
    per_request: alone::per_request,
    holds: |_| Ok(()),
};

impl Counting {
    /// Counts, prints and compares.
    pub fn run(&self) -> anyhow::Result<()> {
        if !callgrind::is_here() {
            bail!("valgrind is missing");
        }
        if self.check {
            return check(Which::All);
        }
        if self.limits {
            return limits::count();
        }
        if self.walk {
            return walk::write(&server::build()?);
        }
        if self.renew {
            let counts = [ENGINE, SERVER, ALONE].map(|subject| subject.count(None));
            let counts: anyhow::Result<Vec<_>> = counts.into_iter().collect();
            return Budgets::write(&counts?.concat());
        }
        let subject = match (self.server, self.alone) {
            (true, _) => SERVER,
            (_, true) => ALONE,
            _ => ENGINE,
        };
        let ours = subject.count(None)?;
        let others = match &self.beside {
            Some(program) => subject.count(Some(program))?,
            None => Vec::new(),
        };
        let ratio = |at: usize| match others.get(at) {
            Some((_, other)) => format!("{:>9.0}{:>8.3}", other, ours[at].1 / other),
            None => String::new(),
        };
        for (at, (case, count)) in ours.iter().enumerate() {
            println!("{:<28}{count:>8.0}{}", case.name(), ratio(at));
        }
        Ok(())
    }
}

/// Fails if a count is above its budget.
pub fn check(which: Which) -> anyhow::Result<()> {
    if !callgrind::is_here() {
        println!("instructions: SKIPPED, as valgrind is missing");
        return Ok(());
    }
    let budgets = Budgets::read()?;
    let compiler = budgets::compiler()?;
    if budgets.compiler != compiler {
        println!(
            "instructions: SKIPPED, as the budgets are for {} and this is {compiler}; \
             `cargo xtask instructions --renew` on a commit that is known to be good renews them",
            budgets.compiler
        );
        return Ok(());
    }
    let mut wrong = Vec::new();
    for subject in [ENGINE, SERVER, ALONE] {
        let check = subject.unchanging()?;
        if which == Which::Changed && check.is_left_out() {
            continue;
        }
        let program = (subject.build)()?;
        let above = subject.above(&budgets, &program)?;
        if above.is_empty() {
            (subject.holds)(&program)?;
            check.note()?;
        }
        wrong.extend(above);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!(
        "more instructions than the budget and {:.0}%:\n{}",
        budgets.tolerance() * 100.0,
        wrong.join("\n")
    )
}

impl Subject {
    /// The check of its counts, with what they depend on.
    fn unchanging(&self) -> anyhow::Result<Check> {
        let inputs = Inputs {
            paths: &PATHS,
            package: Some(self.package),
            tests: &["examples"],
        };
        Check::new(self.name, inputs)
    }

    /// Counts every case, and returns the lines of those that are above their budgets.
    fn above(&self, budgets: &Budgets, program: &Path) -> anyhow::Result<Vec<String>> {
        let mut above = Vec::new();
        for (case, count) in self.count(Some(program))? {
            let budget = budgets.of(&case)?;
            let most = budget * (1.0 + budgets.tolerance());
            let count = match count > most {
                true => self.least(program, &case, count)?,
                false => count,
            };
            let line = format!("{:<28}{count:>8.0} of {budget:>6.0}", case.name());
            if count > most {
                println!("{line}  ABOVE ITS BUDGET");
                above.push(line);
            } else {
                println!("{line}");
            }
        }
        Ok(above)
    }

    /// The least of a few counts of a case, the first of which is given. A server's counts depend
    /// a little on when its requests arrive.
    fn least(&self, program: &Path, case: &Case, first: f64) -> anyhow::Result<f64> {
        let mut least = first;
        for _ in 1..COUNTS {
            least = least.min((self.per_request)(program, case)?);
        }
        Ok(least)
    }

    /// Instructions per request in every case, of a given program or of one that is built here.
    /// Two cases are counted at a time.
    fn count(&self, program: Option<&Path>) -> anyhow::Result<Vec<(Case, f64)>> {
        let built = match program {
            Some(_) => PathBuf::new(),
            None => (self.build)()?,
        };
        let (program, cases) = (program.unwrap_or(&built), (self.cases)());
        let (next, counts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let count = (self.per_request)(program, case);
                        let mut counts = counts.lock().expect("no thread panics");
                        counts.push((case.clone(), count));
                    }
                });
            }
        });
        let mut counts = counts.into_inner().expect("no thread panics");
        counts.sort_by_key(|(case, _)| cases.iter().position(|of| of.name() == case.name()));
        let counts = counts.into_iter().map(|(case, count)| Ok((case, count?)));
        counts.collect()
    }
}
