//! Has a Prometheus scrape a loaded server, and compares what it stores with what was sent.

use crate::process::{self, program, run};
use anyhow::bail;

/// Fails if Prometheus is missing, or if anything differs.
pub fn check() -> anyhow::Result<()> {
    for tool in ["prometheus", "promtool"] {
        if program(tool, &["--version"]).output().is_err() {
            bail!("{tool} is not installed (Debian: prometheus)");
        }
    }
    run(&mut process::cargo(&["build", "-p", "glimmer", "--bins"]))?;
    let server = std::path::absolute(process::target_dir().join("debug/glimmer"))?;
    run(program("python3", &["tests/metrics/scrape.py"]).arg(server))
}
