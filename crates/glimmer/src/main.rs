//! The roof: the `glimmer` command.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An in-memory cache that memcached's clients can use
#[derive(Debug, Parser)]
#[command(name = "glimmer", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Bench(arguments) => arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glimmer: {error:#}");
            ExitCode::FAILURE
        }
    }
}
