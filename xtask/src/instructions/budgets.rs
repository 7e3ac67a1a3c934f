//! What each case may take: `xtask/instructions.txt`, with the compiler and the make of processor
//! that it was counted with.

use super::Case;
use crate::process::{program, repository};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a case may take beyond its budget.
const TOLERANCE: f64 = 0.02;
/// The same on a processor of another make, for which the C library chooses other functions.
const TOLERANCE_ON_ANOTHER_MAKE: f64 = 0.1;

const HEAD: &str = "\
# Instructions per request: what `cargo xtask instructions --check` allows, give or take 2%, or 10%
# on a processor of another make. `cargo xtask instructions --renew` writes this file.
";

/// The budgets of all cases.
pub struct Budgets {
    /// The compiler's version.
    pub compiler: String,
    /// The processor's make.
    make: String,
    cases: BTreeMap<String, f64>,
}

impl Budgets {
    /// Reads the file.
    pub fn read() -> anyhow::Result<Budgets> {
        let text = std::fs::read_to_string(path()).context("cannot read the budgets")?;
        let mut budgets = Budgets {
            compiler: String::new(),
            make: String::new(),
            cases: BTreeMap::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once('\t') {
                Some(("compiler", version)) => budgets.compiler = version.to_owned(),
                Some(("make", make)) => budgets.make = make.to_owned(),
                Some((case, count)) => {
                    budgets.cases.insert(case.to_owned(), count.parse()?);
                }
                None => bail!("not a line of the budgets: {line:?}"),
            }
        }
        Ok(budgets)
    }

    /// Writes the file with these counts.
    pub fn write(counts: &[(Case, f64)]) -> anyhow::Result<()> {
        let mut text = format!("{HEAD}compiler\t{}\nmake\t{}\n", compiler()?, make());
        for (case, count) in counts {
            text += &format!("{}\t{count:.0}\n", case.name());
        }
        std::fs::write(path(), text).context("cannot write the budgets")
    }

    /// What a case may take beyond its budget on this machine.
    pub fn tolerance(&self) -> f64 {
        match self.make == make() {
            true => TOLERANCE,
            false => TOLERANCE_ON_ANOTHER_MAKE,
        }
    }

    /// The budget of a case.
    pub fn of(&self, case: &Case) -> anyhow::Result<f64> {
        let budget = self.cases.get(&case.name()).copied();
        budget.with_context(|| format!("{} has no budget: use --renew", case.name()))
    }
}

/// The version of the compiler that is used here.
pub fn compiler() -> anyhow::Result<String> {
    let output = program("rustc", &["-V"])
        .output()
        .context("cannot start rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The make of this machine's processor, such as `GenuineIntel`.
fn make() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("vendor_id"));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(|| "unknown".to_owned(), |(_, make)| make.trim().to_owned())
}

fn path() -> PathBuf {
    repository().join("xtask/instructions.txt")
}
