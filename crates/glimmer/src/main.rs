//! The roof: the `glimmer` command.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod bench;
mod figure;
mod progress;
mod serve;
mod top;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
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
    Serve(Box<serve::Arguments>),
    Bench(bench::Arguments),
    Figure(figure::Arguments),
    Top(top::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(under_memcacheds_name(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    let result = match arguments.command {
        Command::Serve(arguments) => arguments.run(),
        Command::Bench(arguments) => arguments.run(),
        Command::Figure(arguments) => arguments.run(),
        Command::Top(arguments) => arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glimmer: {error:#}");
            ExitCode::from(serve::exit_code(&error).unwrap_or(1))
        }
    }
}

/// An executable called `memcached` (a link, a copy; also `memcached-debug`, as memcached's own tests call it) takes memcached's command line,
/// which has no subcommand.
fn under_memcacheds_name(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let name = arguments
        .first()
        .and_then(|program| Path::new(program).file_name());
    let extra: &[&str] = match name.and_then(|name| name.to_str()) {
        Some("memcached") => &["serve"],
        Some("memcached-debug") => &["serve", "--debug-commands"],
        _ => &[],
    };
    let extra: Vec<OsString> = extra.iter().map(OsString::from).collect();
    arguments.splice(arguments.len().min(1)..arguments.len().min(1), extra);
    arguments
}

/// Help and version as clap prints them; anything wrong as one line.
fn explain(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            ExitCode::from(error.exit_code().clamp(0, 255) as u8)
        }
        _ => {
            let text = error.render().to_string();
            let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
            let what: Vec<&str> = what.split_whitespace().collect();
            let what = what.join(" ");
            let what = what.strip_prefix("error: ").unwrap_or(&what);
            eprintln!("glimmer: {what}; --help explains every option");
            // As memcached, whose command line this may be.
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn named(program: &str) -> Vec<OsString> {
        under_memcacheds_name([program, "-m", "64"].into_iter().map(OsString::from))
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn called_memcached_it_serves() {
        assert_eq!(
            named("/usr/bin/memcached"),
            ["/usr/bin/memcached", "serve", "-m", "64"]
        );
        assert_eq!(
            named("memcached-debug"),
            ["memcached-debug", "serve", "--debug-commands", "-m", "64"]
        );
        assert_eq!(named("glimmer"), ["glimmer", "-m", "64"]);
        Arguments::try_parse_from(named("memcached")).unwrap();
    }
}
