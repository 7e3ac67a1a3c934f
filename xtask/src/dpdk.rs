//! Checks what is built with the feature `dpdk`: the transport's lints and tests, and on request a
//! whole server. The tests need root for namespaces, and neither a NIC nor huge pages.

use crate::process::{cargo, run, run_tests};
use crate::tools::{self, Tool};

const NEEDS: &[Tool] = &[
    Tool {
        probe: &["pkg-config", "--atleast-version=22.11", "libdpdk"],
        packages: &["libdpdk-dev", "pkg-config"],
        without: "what is built with DPDK",
    },
    Tool {
        probe: &["ip", "-V"],
        packages: &["iproute2"],
        without: "tests of DPDK's ports with the kernel at the other end",
    },
];

/// The transport alone: the server would be built a second time, with other features.
const TRANSPORT: [&str; 4] = ["--package", "glimmer-transport", "--features", "dpdk,xdp"];
const SERVER: [&str; 6] = [
    "--package",
    "glimmer",
    "--features",
    "dpdk",
    "--test",
    "by_dpdk",
];

/// What to check.
#[derive(clap::Args)]
pub struct Dpdk {
    /// A whole server with real clients, too
    #[arg(long)]
    server: bool,
}

impl Dpdk {
    /// Checks it.
    pub fn check(&self) -> anyhow::Result<()> {
        if !tools::install(NEEDS) {
            println!("dpdk: SKIPPED, as tools are missing");
            return Ok(());
        }
        let lints = ["--all-targets", "--", "-D", "warnings"];
        run(&mut cargo(&[&["clippy"], &TRANSPORT[..], &lints].concat()))?;
        run_tests(&mut cargo(&[&["test"], &TRANSPORT[..]].concat()))?;
        if self.server {
            run_tests(&mut cargo(&[&["test"], &SERVER[..]].concat()))?;
        }
        Ok(())
    }
}

/// The stage of the test suite.
pub fn check() -> anyhow::Result<()> {
    Dpdk { server: false }.check()
}
