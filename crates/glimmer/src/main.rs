//! The roof: the `glimmer` command.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod bench;
mod figure;
mod progress;
mod serve;
mod suggest;
mod top;
mod vocabulary;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

// What an executable called `memcached` is given: memcached's command line, which has no subcommand. Its help begins with the version,
// as memcached's does, hence no doc comment.
#[derive(Debug, Parser)]
#[command(name = "memcached")]
struct Memcached {
    #[command(flatten)]
    arguments: serve::Arguments,
}

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
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = match command(arguments.clone()) {
        Ok(command) => command,
        Err(error) => return explain(&error, &arguments),
    };
    let result = match command {
        Command::Serve(arguments) => arguments.run(),
        Command::Bench(arguments) => arguments.run(),
        Command::Figure(arguments) => arguments.run(),
        Command::Top(arguments) => arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glimmer: {}", told(&error));
            ExitCode::from(serve::exit_code(&error).unwrap_or(1))
        }
    }
}

/// An executable called `memcached` (a link, a copy; also `memcached-debug`, as memcached's own tests call it) serves, and takes memcached's command line.
fn command(mut arguments: Vec<OsString>) -> Result<Command, clap::Error> {
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    match program.and_then(|name| name.to_str()) {
        Some("memcached") => {}
        Some("memcached-debug") => arguments.insert(1, "--debug-commands".into()),
        _ => return Arguments::try_parse_from(arguments).map(|arguments| arguments.command),
    }
    refuse_tls_first(&mut arguments);
    // As `version` answers, by which scripts know what is installed. They look at `-V`, or at the first line of `-h`.
    let version = glimmer_server::VERSION_NUMBER;
    let name_and_version = format!("memcached {version}");
    let memcached = Memcached::command()
        .version(version)
        .about(&name_and_version)
        .long_about(&name_and_version);
    let matches = memcached.try_get_matches_from(arguments)?;
    let Memcached { arguments } = Memcached::from_arg_matches(&matches)?;
    Ok(Command::Serve(Box::new(arguments)))
}

/// memcached refuses TLS as soon as it comes to `-Z`. Clients ask with `--enable-ssl --version` whether it is there, so a version or help
/// that is asked for after `-Z` is not shown.
fn refuse_tls_first(arguments: &mut Vec<OsString>) {
    let is_tls = |argument: &OsString| argument == "-Z" || argument == "--enable-ssl";
    if let Some(first) = arguments.iter().position(is_tls) {
        arguments.truncate(first + 1);
    }
}

/// An error and what it came of, each said once: many messages end with their cause.
fn told(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .fold(error.to_string(), |text, cause| {
            let cause = cause.to_string();
            if text.ends_with(&cause) {
                text
            } else {
                format!("{text}: {cause}")
            }
        })
}

/// Help and version as clap prints them; anything wrong as one line.
fn explain(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            ExitCode::from(error.exit_code().clamp(0, 255) as u8)
        }
        _ => {
            eprintln!("glimmer: {}", suggest::complaint(error, arguments));
            // As memcached, whose command line this may be.
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        command(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        Memcached::command().debug_assert();
    }

    #[test]
    fn every_cause_is_told_once() {
        let cause = || std::io::Error::other("in use");
        let twice = anyhow::Error::new(cause()).context("cannot listen: in use");
        assert_eq!(told(&twice), "cannot listen: in use");
        let once = anyhow::Error::new(cause()).context("cannot listen");
        assert_eq!(told(&once), "cannot listen: in use");
    }

    #[test]
    fn called_memcached_it_serves() {
        for line in [
            "/usr/bin/memcached -m 64",
            "memcached-debug -m 64",
            "glimmer serve -m 64",
        ] {
            assert!(matches!(parse(line), Ok(Command::Serve(_))), "{line}");
        }
        assert!(parse("glimmer -m 64").is_err() && parse("memcached serve").is_err());
    }

    #[test]
    fn called_memcached_it_refuses_tls_before_it_says_what_it_is() {
        for line in ["memcached --enable-ssl --version", "memcached -Z -h"] {
            let Ok(Command::Serve(arguments)) = parse(line) else {
                panic!("{line}: only serving refuses TLS");
            };
            let refusal = arguments.run().unwrap_err();
            assert_eq!(serve::exit_code(&refusal), Some(64), "{refusal}");
        }
        let version = parse("memcached -V -Z").unwrap_err().to_string();
        assert!(version.starts_with("memcached 1.6."), "{version}");
    }

    #[test]
    fn called_memcached_it_says_so() {
        let version = parse("memcached -V").unwrap_err().to_string();
        assert!(version.starts_with("memcached 1.6."), "{version}");
        for flag in ["-h", "--help"] {
            let help = parse(&format!("memcached {flag}"));
            let help = help.unwrap_err().to_string();
            assert!(help.starts_with("memcached 1.6."), "{help}");
            assert!(help.contains("Usage: memcached [OPTIONS]"), "{help}");
        }
        let version = parse("glimmer --version").unwrap_err().to_string();
        assert!(version.starts_with("glimmer "), "{version}");
    }
}
