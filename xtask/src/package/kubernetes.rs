//! The resources for Kubernetes in `contrib/kubernetes`.

use crate::process::{self, program, run};
use crate::venv;
use std::path::{Path, PathBuf};

const PINS: &str = "xtask/pins/kubernetes.txt";
const CHECK: &str = "xtask/src/package/kubernetes.py";
const SERVERS: &str = "contrib/kubernetes/glimmer.yaml";
const MONITOR: &str = "contrib/kubernetes/servicemonitor.yaml";

/// Validates them against the schemas of Kubernetes, against one another, and against the server.
pub fn check(_folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let python = venv::python(
        &process::target_dir().join("tools/kubernetes"),
        Path::new(PINS),
    )?;
    run(&mut process::cargo(&["build", "-p", "glimmer"]))?;
    let server = process::target_dir().join("debug/glimmer");
    run(program(&python, &[CHECK])
        .args([&server])
        .args([SERVERS, MONITOR]))?;
    Ok(vec![SERVERS.into(), MONITOR.into()])
}
