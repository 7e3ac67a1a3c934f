//! Real clients against the running server, again and again.

use super::Budget;
use super::record::Record;
use crate::clients;

/// Runs all client tests whose names contain `name` as often as the budget says.
pub fn run(name: &str, budget: impl Fn() -> Budget, record: &Record) -> anyhow::Result<()> {
    let ready = clients::prepare()?;
    record.begin();
    let budget = budget();
    for round in 1..=budget.times {
        if budget.is_spent() {
            break;
        }
        let seed = record.seed();
        let mut command = ready.command(&["-rA", "-k", name]);
        let output = command.env("GLIMMER_SEED", seed.to_string()).output()?;
        record.count(1);
        record.count_round();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            let tests = failed(&text).join(" ");
            let repeats = format!(
                "GLIMMER_SEED={seed} GLIMMER_BIN=target/debug/glimmer .venv/bin/python -m pytest \
                 {tests}"
            );
            record.failed(repeats, &format!("clients-{seed}.log"), &output.stdout)?;
        }
        println!("round {round} of {}: {}", budget.times, record.line());
    }
    Ok(())
}

/// The tests that failed, in what `pytest -rA` prints.
fn failed(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| {
        let (result, rest) = line.split_once(' ')?;
        let name = rest.split(" - ").next()?;
        ["FAILED", "ERROR"].contains(&result).then_some(name)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::failed;

    #[test]
    fn failed_tests_are_named() {
        let text =
            "..F\nPASSED x.py::one\nFAILED x.py::two - assert 1 == 2\nSKIPPED [1] x.py:3: no\n";
        assert_eq!(failed(text), ["x.py::two"]);
    }
}
