//! The table of proofs and planted bugs.

use anyhow::{Context, bail, ensure};

const TABLE: &str = "accel/formal/proofs.txt";

/// Properties of a module.
#[derive(Debug)]
pub struct Proof {
    /// Its name in the table.
    pub name: String,
    /// The module, which includes its properties.
    pub module: String,
    /// The module's parameters, `NAME=value`.
    pub parameters: Vec<(String, String)>,
    /// Cycles of the induction, or the first ones after power-up.
    pub steps: u32,
    /// Whether they hold at any time, not only in the first cycles.
    pub is_induction: bool,
    /// What holds.
    pub what: String,
}

/// A planted bug.
#[derive(Debug)]
pub struct Bug {
    /// The macro that plants it.
    pub define: String,
    /// The proof that must fail.
    pub proof: String,
    /// Within these cycles after power-up.
    pub steps: u32,
    /// What is wrong.
    pub what: String,
}

/// Reads the table.
pub fn table() -> anyhow::Result<(Vec<Proof>, Vec<Bug>)> {
    let text = std::fs::read_to_string(TABLE).context(TABLE)?;
    parse(&text).context(TABLE)
}

fn parse(text: &str) -> anyhow::Result<(Vec<Proof>, Vec<Bug>)> {
    let (mut proofs, mut bugs) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            [
                kind @ ("proof" | "bounded"),
                name,
                module,
                parameters,
                steps,
                what,
            ] => {
                proofs.push(Proof {
                    name: name.into(),
                    module: module.into(),
                    parameters: parse_parameters(parameters).context(line.to_owned())?,
                    steps: steps.parse().context(line.to_owned())?,
                    is_induction: kind == "proof",
                    what: what.into(),
                });
            }
            ["bug", define, proof, steps, what] => bugs.push(Bug {
                define: define.into(),
                proof: proof.into(),
                steps: steps.parse().context(line.to_owned())?,
                what: what.into(),
            }),
            _ => bail!("{line:?}"),
        }
    }
    for proof in &proofs {
        ensure!(
            bugs.iter().any(|bug| bug.proof == proof.name),
            "the proof {} has no bug",
            proof.name
        );
    }
    for bug in &bugs {
        ensure!(
            proofs.iter().any(|proof| proof.name == bug.proof),
            "the bug {} has no proof",
            bug.define
        );
    }
    Ok((proofs, bugs))
}

fn parse_parameters(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    text.split_whitespace()
        .map(|word| {
            let (name, value) = word.split_once('=').context("NAME=value")?;
            Ok((name.into(), value.into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_proof_has_a_bug_and_every_bug_a_proof() {
        let proof = "proof\tfifo\tfifo\tWIDTH=3 DEPTH=4\t2\tno overflow\n";
        let bug = "bug\tBUG_FULL\tfifo\t8\ta full queue takes a word\n";
        let (proofs, bugs) = parse(&[proof, "# a comment\n", bug].concat()).unwrap();
        assert_eq!(proofs[0].parameters[1], ("DEPTH".into(), "4".into()));
        assert_eq!((bugs[0].steps, &*bugs[0].proof), (8, "fifo"));
        assert!(parse(proof).is_err());
        assert!(parse(bug).is_err());
    }

    #[test]
    fn the_table_is_well_formed() {
        std::env::set_current_dir(crate::process::repository()).unwrap();
        table().unwrap();
    }
}
