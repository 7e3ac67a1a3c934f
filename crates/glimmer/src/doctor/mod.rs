//! `glimmer doctor`: what a command line of `serve` comes to on this machine, and what stands in
//! its way. It reads the kernel's files and those that the flags name, and binds the addresses for
//! a moment; nothing is changed.
//!
//! | file | what it looks at |
//! | --- | --- |
//! | `finding` | nothing: a finding, as a line and as JSON |
//! | `system` | nothing: the kernel's files |
//! | `process` | what the process may take: memory, cores, open files; its user |
//! | `files` | the files that the flags name: passwords, certificates, snapshot, memory file |
//! | `kernel` | what the kernel is set to: pages, queues, buffers, clock |
//! | `addresses` | whether the addresses are free, and who has them |
//! | `interface` | the interfaces of the accelerator and of the packet transport |

mod addresses;
mod files;
mod finding;
mod interface;
mod kernel;
mod process;
mod system;
#[cfg(test)]
mod tests;

use crate::config::{self, Whole};
use crate::serve::Refused;
use anyhow::Context;
use finding::{Finding, Verdict};
use glimmer_server::Config;
use std::ffi::OsString;
use std::path::Path;
use system::System;

/// memcached's settings on Debian.
const MEMCACHED_CONF: &str = "etc/memcached.conf";

/// Look at this machine, and say what serve would meet on it
///
/// Nothing is changed and nothing is started. Each line has a verdict: `ok`, `hint` for what could
/// be better, and `FAULT` for what would keep the server from starting or end it later, each with
/// what to change. The command fails if there is a fault.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    glimmer doctor\n  \
    glimmer doctor -m 4096 -t 8 -U 11211\n  \
    glimmer doctor --json --config /etc/glimmer/glimmer.toml")]
pub struct Arguments {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    /// The flags that serve would be given, such as --config FILE
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    flags: Vec<OsString>,
}

impl Arguments {
    /// Prints what is found.
    pub fn run(self) -> anyhow::Result<()> {
        let findings = findings(&self.flags, &config::environment(), &System::this());
        if self.json {
            let list = serde_json::to_string_pretty(&findings).context("cannot write JSON")?;
            println!("{list}");
        } else {
            print!("{}", finding::table(&findings));
        }
        let faults = findings.iter().filter(|it| it.verdict == Verdict::Fault);
        match faults.count() {
            0 => Ok(()),
            1 => Err(Refused::configuration("there is 1 fault").into()),
            count => Err(Refused::configuration(format!("there are {count} faults")).into()),
        }
    }
}

/// Everything that is found about a command line and a machine.
fn findings(typed: &[OsString], environment: &[(String, OsString)], on: &System) -> Vec<Finding> {
    let mut findings = Vec::new();
    let read = Whole::of(typed, environment).and_then(|whole| {
        let (_, config) = config::command::effective(&whole)?;
        Ok((whole, config))
    });
    match read {
        Ok((whole, config)) => {
            findings.extend(settings(&whole, &config));
            findings.extend(process::all(&config, on));
            findings.extend(files::all(&config));
            findings.extend(kernel::all(&config, on));
            findings.extend(addresses::all(&config, on));
            findings.extend(interface::all(&config, on));
        }
        Err(error) => {
            let advice = "correct it; what follows is about serve without flags";
            findings.push(Finding::fault(
                "settings",
                glimmer_cli::told(&error),
                advice,
            ));
            let config = Config::default();
            findings.extend(process::all(&config, on));
            findings.extend(kernel::all(&config, on));
        }
    }
    findings.extend(memcached(on));
    findings
}

/// The settings, and what the server says of them when it starts.
fn settings(whole: &Whole, config: &Config) -> Vec<Finding> {
    let file = whole.file.as_ref();
    let file = file.map_or(String::new(), |path| format!("{} and ", path.display()));
    let notices = whole.notices.iter().chain(&config.notices);
    let hints =
        notices.map(|notice| Finding::hint("settings", notice, "leave it out if not meant"));
    [Finding::ok(
        "settings",
        format!("no mistake in {file}the command line"),
    )]
    .into_iter()
    .chain(hints)
    .collect()
}

/// A configuration of memcached that could be carried over.
fn memcached(on: &System) -> Option<Finding> {
    let path = on.path(MEMCACHED_CONF);
    Path::exists(&path).then(|| {
        Finding::hint(
            "memcached",
            format!("{} is the configuration of a memcached", path.display()),
            "`glimmer config from-memcached` makes settings of it",
        )
    })
}
