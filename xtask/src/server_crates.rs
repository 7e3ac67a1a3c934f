//! Limits the number of crates from which the server is built. The server builds in about a minute
//! because it depends on few crates, and everyone who builds it pays for each new one.

use crate::process;
use anyhow::{Context, bail};
use std::collections::BTreeSet;

/// Maximum number of crates compiled for the server: its own, their dependencies, and those of
/// build scripts and procedural macros.
const CRATES_MAX: usize = 100;

/// Fails with the names of the crates if there are too many.
pub fn check() -> anyhow::Result<()> {
    let mut tree = process::cargo(&["tree", "--package", "glimmer"]);
    let output = tree
        .args(["--edges", "normal,build", "--prefix", "none"])
        .output()
        .context("cannot start cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = String::from_utf8(output.stdout)?;
    let crates = distinct(&tree);
    bounded(&crates, CRATES_MAX)?;
    println!(
        "the server is built from {} crates, of {CRATES_MAX} at most",
        crates.len()
    );
    Ok(())
}

/// Each crate in the output of `cargo tree --prefix none`, once. A line is a name, a version, and
/// optionally a path, `(proc-macro)`, or `(*)` for a repetition.
fn distinct(tree: &str) -> BTreeSet<&str> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty()).collect()
}

fn bounded(crates: &BTreeSet<&str>, crates_max: usize) -> anyhow::Result<()> {
    if crates.len() > crates_max {
        let names: Vec<&str> = crates.iter().copied().collect();
        bail!(
            "the server is built from {} crates, of {crates_max} at most:\n  {}",
            crates.len(),
            names.join("\n  ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
glimmer v0.1.0 (/src/crates/glimmer)
anyhow v1.0.100
clap_derive v4.6.7 (proc-macro)
glimmer-base v0.1.0 (/src/crates/base)
glimmer-base v0.1.0 (/src/crates/base) (*)
syn v2.0.119
syn v3.0.9
";

    #[test]
    fn a_crate_counts_once_and_each_of_its_versions() {
        let crates = distinct(TREE);
        assert_eq!(crates.len(), 6, "{crates:?}");
        assert!(bounded(&crates, 6).is_ok());
        let fault = bounded(&crates, 5).unwrap_err().to_string();
        assert!(
            fault.contains("6 crates, of 5") && fault.contains("\n  syn v3.0.9"),
            "{fault}"
        );
    }
}
