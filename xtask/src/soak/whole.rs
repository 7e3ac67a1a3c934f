//! Stages that are programs of their own, and count their seeds themselves.

use super::Budget;
use super::record::Record;
use crate::process::{cargo, run, run_until, target_dir};
use crate::{fuzz, loom, miri, sim, stages};
use anyhow::Context as _;
use std::io::{Read as _, Seek as _};
use std::process::{Command, Output, Stdio};

/// Seconds of the simulator between two lines of progress.
const SIMULATED_S: f64 = 120.0;
/// The simulator ends when it has failed this often.
const FAILURES_MAX: usize = 20;

/// Simulates seeds one after the other, from a random one on.
pub fn simulator(budget: impl Fn() -> Budget, record: &Record) -> anyhow::Result<()> {
    run(&mut cargo(&[
        "build",
        "--profile=soak",
        "--package=glimmer-sim",
    ]))?;
    let program = target_dir().join("soak/glimmer-sim");
    record.begin();
    let budget = budget();
    let wanted_s = f64::from(budget.times) * sim::SUITE_SECONDS;
    let mut seed = u64::from(miri::Seeds::default().first()) << 24;
    let (mut simulated_s, mut failures) = (0.0, 0);
    while simulated_s < wanted_s && !budget.is_spent() && failures < FAILURES_MAX {
        let left_s = (wanted_s - simulated_s).min(budget.left().as_secs_f64());
        let seconds = left_s.min(SIMULATED_S);
        let output = output(
            Command::new(&program)
                .args(["--seed", &seed.to_string()])
                .args(["--seconds", &seconds.to_string()]),
        )?;
        let text = text(&output);
        let passed = match number_between(&text, "sim: ", " seeds passed") {
            Some(passed) => passed,
            None => {
                failures += 1;
                let fails = number_between(&text, "sim: seed ", " fails");
                // Without a line about it, the program has crashed at some seed.
                let repeats = match fails {
                    Some(fails) => format!("cargo xtask sim --replay {fails}"),
                    None => format!("target/soak/glimmer-sim --seed {seed}"),
                };
                record.failed(repeats, &format!("sim-{seed}.log"), text.as_bytes())?;
                fails.map_or(1, |fails| fails - seed + 1)
            }
        };
        record.count(passed);
        seed += passed;
        simulated_s += seconds;
        record.count_rounds(seconds / sim::SUITE_SECONDS);
        println!("{}", record.line());
    }
    Ok(())
}

/// Runs each test of the model checker with one switch between threads more than continuous
/// integration allows it. It tries every order, and its tests count as seeds. A test that takes
/// more than its share of the time is given up, which is no failure.
pub fn loom(budget: impl Fn() -> Budget, record: &Record) -> anyhow::Result<()> {
    let mut tests = Vec::new();
    for program in loom::built_all()? {
        let names = program.tests("")?.into_iter();
        tests.extend(names.map(|name| (program.clone(), name)));
    }
    record.begin();
    let budget = budget();
    let count = tests.len() as u32;
    for (place, (program, name)) in (0..).zip(&tests) {
        let share = budget.left() / (count - place);
        let mut output = tempfile::tempfile().context("a file for the output")?;
        let mut command = program.command(&["--exact", name]);
        command
            .env("GLIMMER_LOOM_MORE", "1")
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        match run_until(&mut command, share)? {
            None => println!("{} {name}: not to its end", program.selected),
            Some(status) => {
                record.count(1);
                if !status.success() {
                    let repeats = format!("GLIMMER_LOOM_MORE=1 cargo xtask loom ({name})");
                    let mut said = Vec::new();
                    output.rewind()?;
                    output.read_to_end(&mut said)?;
                    record.failed(repeats, &format!("loom-{name}.log"), &said)?;
                }
            }
        }
        println!("{name}: {}", record.line());
    }
    record.count_round();
    Ok(())
}

/// Takes seeds one after the other under Miri, one per core at a time.
pub fn miri(budget: Budget, record: &Record) -> anyhow::Result<()> {
    if !miri::is_here() {
        return Ok(());
    }
    miri::unit_tests()?;
    record.begin();
    let count = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let first = miri::Seeds::default().first();
    let mut from = first;
    let rounds = || budget.begun.elapsed().as_secs_f64() / miri::STAGE.as_secs_f64();
    while rounds() < f64::from(budget.times) && !budget.is_spent() {
        let output = output(&mut miri::with_seeds(from, count))?;
        if !output.status.success() {
            let repeats = format!("cargo xtask miri --seed {from} --seeds {count}");
            record.failed(
                repeats,
                &format!("miri-{from}.log"),
                text(&output).as_bytes(),
            )?;
        }
        record.count(u64::from(count));
        from = from.saturating_add(count);
        println!("{}", record.line());
    }
    record.count_rounds(rounds());
    Ok(())
}

/// Runs each fuzz target for the same time. Its inputs count as seeds.
pub fn fuzz(budget: Budget, record: &Record) -> anyhow::Result<()> {
    let Some(built) = fuzz::build()? else {
        return Ok(());
    };
    record.begin();
    let targets = fuzz::targets()?;
    let share_s = budget.time.as_secs() / targets.len().max(1) as u64;
    let wanted_s = u64::from(budget.times) * u64::from(stages::FUZZ_SECONDS);
    let seconds = share_s.min(wanted_s).max(1) as u32;
    for name in &targets {
        let output = output(&mut built.command(name, seconds)?)?;
        let text = text(&output);
        if !output.status.success() {
            let repeats = format!("cargo xtask fuzz {name}, with the input that its output names");
            record.failed(repeats, &format!("fuzz-{name}.log"), text.as_bytes())?;
        }
        let inputs = text
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        record.count(inputs.and_then(|n| n.trim().parse().ok()).unwrap_or(0));
        println!("{}", record.line());
    }
    record.count_rounds(f64::from(seconds) / f64::from(stages::FUZZ_SECONDS));
    Ok(())
}

fn output(command: &mut Command) -> anyhow::Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The number between two parts of a line.
fn number_between(text: &str, before: &str, after: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (number, _) = line.strip_prefix(before)?.split_once(after)?;
        number.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_of_the_simulator_are_in_what_it_prints() {
        let passed = "sim: from seed 7, for 5 s\nsim: 31 seeds passed, 6.2 a second; 5 operations";
        assert_eq!(number_between(passed, "sim: ", " seeds passed"), Some(31));
        let fails = "sim: from seed 7, for 5 s\nsim: seed 9 fails after 0.1 s\n";
        assert_eq!(number_between(fails, "sim: ", " seeds passed"), None);
        assert_eq!(number_between(fails, "sim: seed ", " fails"), Some(9));
    }
}
