//! Checks what is built with the feature `dpdk`: lints and tests of the transport and the client
//! library, and on request a whole server. The tests need root for namespaces, and neither a NIC
//! nor huge pages.

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

/// Not the server: it would be built a second time, with other features.
const LIBRARIES: [&str; 6] = [
    "--package",
    "glimmer-transport",
    "--package",
    "glimmer-client",
    "--features",
    "glimmer-client/dpdk,glimmer-client/xdp,glimmer-client/tokio",
];
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
        run(&mut cargo(&[&["clippy"], &LIBRARIES[..], &lints].concat()))?;
        run_tests(&mut cargo(&[&["test"], &LIBRARIES[..]].concat()))?;
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
