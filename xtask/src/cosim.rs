//! The accelerator's circuit, simulated between real clients and a real server: builds what that
//! takes, and hands over to `glimmer-cosim try`.

use crate::process::{self, program};
use crate::tools::{self, Tool};
use anyhow::bail;
use std::ffi::OsString;

/// What it needs.
const TOOLS: &[Tool] = &[
    Tool {
        probe: &["verilator"],
        packages: &["verilator"],
        without: "the simulation",
    },
    Tool {
        probe: &["c++"],
        packages: &["g++"],
        without: "the simulation",
    },
    Tool {
        probe: &["ip", "-V"],
        packages: &["iproute2"],
        without: "the network around the circuit",
    },
];

/// What it is a better trial with.
const BESIDES: &[Tool] = &[
    Tool {
        probe: &["memcached", "-V"],
        packages: &["memcached"],
        without: "memcached behind the circuit",
    },
    Tool {
        probe: &["memcaslap", "-V"],
        packages: &["libmemcached-tools"],
        without: "requests of libmemcached's load generator",
    },
];

/// What is tried.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Cosimulation {
    /// Options of `glimmer-cosim try`; --help explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

impl Cosimulation {
    /// Builds the programs and tries the circuit.
    pub fn run(&self) -> anyhow::Result<()> {
        let helps: [OsString; 2] = ["-h", "--help"].map(Into::into);
        let is_question = self.options.iter().any(|option| helps.contains(option));
        let built = std::path::absolute(process::target_dir().join("debug/glimmer-cosim"))?;
        if !is_question {
            if !tools::install(TOOLS) {
                bail!("tools for the simulation are missing");
            }
            tools::install(BESIDES);
        }
        // Any build can answer a question.
        if !is_question || !built.exists() {
            // The simulation takes most of the time, and Verilator's C++ is optimised in any case.
            process::run(&mut process::cargo(&["build", "-p", "glimmer-cosim"]))?;
        }
        process::run(program(built, &["try"]).args(&self.options))
    }
}
