//! The flags of `glimmer serve`, with their help.
//!
//! | file | flags |
//! | --- | --- |
//! | `network` | where the server listens, and the limits of its connections |
//! | `accelerator` | the hot-key accelerator |
//! | `clients` | what clients may do, and `-o` |
//! | `memory` | how much memory there is, and what is kept in it |
//! | `workers` | threads, and which of them executes a request |
//! | `process` | the process as the operating system sees it |

mod accelerator;
mod clients;
mod memory;
mod network;
mod process;
mod workers;

use clap::Args;

/// Serve memcached clients until SIGTERM or SIGINT
#[derive(Args, Debug)]
#[command(
    version,
    args_override_self = true,
    // A negative number is a wrong value, and not an unknown flag.
    allow_negative_numbers = true,
    after_help = "`glimmer serve --help` explains each option and shows examples.",
    after_long_help = EXAMPLES
)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) network: network::Network,
    #[command(flatten)]
    pub(super) accelerator: accelerator::Accelerator,
    #[command(flatten)]
    pub(super) clients: clients::Clients,
    #[command(flatten)]
    pub(super) memory: memory::Memory,
    #[command(flatten)]
    pub(super) workers: workers::Workers,
    #[command(flatten)]
    pub(super) process: process::Process,
    /// Warnings about the settings, which the server prints when it starts.
    #[arg(skip)]
    pub(super) notices: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  glimmer serve                             64 MiB on port 11211, one worker per core
  glimmer serve -m 4096 -l 127.0.0.1        4 GiB, on this machine only
  glimmer serve -m 1024 -I 8m -t 2          items up to 8 MiB, two workers
  glimmer serve -m 65536 --pin --hugepages hugetlb --item-size-hint 500
                                            a dedicated machine, items of about 500 bytes
  glimmer serve --config /etc/glimmer.toml -m 4096
                                            settings from a file, but 4 GiB
  ln -s glimmer memcached; ./memcached -m 64
                                            run under memcached's name";
