//! The process as the operating system sees it.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args};
use glimmer_base::limits;
use glimmer_notation as notation;
use glimmer_server::LogFormat;
use std::path::PathBuf;

/// The process as the operating system sees it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Process")]
pub struct Process {
    /// File of settings, in TOML: each is a flag under its long name, such as memory-limit = 1024
    ///
    /// A flag comes before a variable of the environment (GLIMMER_MEMORY_LIMIT=1024), and a
    /// variable before the file. SIGHUP reads the file again. `glimmer config` checks a file,
    /// prints the settings in effect, and converts memcached's file.
    #[arg(long, value_name = "FILE")]
    pub(in crate::serve) config: Option<PathBuf>,

    /// Run in the background
    ///
    /// The command returns when the server is ready, or with the reason why it is not.
    #[arg(short, long)]
    pub(in crate::serve) daemon: bool,

    /// Allow core files of any size
    #[arg(short = 'r', long)]
    pub(in crate::serve) enable_coredumps: bool,

    /// Print the licence and exit
    #[arg(short = 'i', long)]
    pub(in crate::serve) license: bool,

    /// File for the process id; removed at the end
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(in crate::serve) pidfile: Option<PathBuf>,

    /// User to become after binding the addresses; only when started as root
    ///
    /// memcached refuses to run as root without this option. This server prints a warning and
    /// continues.
    #[arg(short, long, value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::serve) user: Option<String>,

    /// Log more: -v shows the memory layout, the stop of the server, logins and administrative
    /// commands, -vv also `stats`
    ///
    /// Requests are never logged. A client can change the level with `verbosity`, but not that of
    /// the lines for auditors, which begin with `audit:`.
    #[arg(short, long, action = ArgAction::Count)]
    pub(in crate::serve) verbose: u8,

    /// Milliseconds from which on a request is slow, for `stats slow`; 0 for never
    ///
    /// The server keeps the last 128 slow requests of a sample, with what their time went to.
    /// `stats slow MS` sets another time while the server runs.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = limits::SLOW_MS_DEFAULT,
        value_parser = notation::count,
    )]
    pub(in crate::serve) slow_ms: u64,

    /// How log lines are written: text or json
    ///
    /// json: each line is an object with timestamp, level, message, target, and what the line says
    /// in particular.
    #[arg(long, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(in crate::serve) log_format: LogFormat,
}
