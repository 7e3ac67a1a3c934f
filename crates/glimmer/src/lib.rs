//! The top floor: the server's program. It serves, and it runs the programs that are installed next
//! to it: `glimmer-bench` and `glimmer-top`.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod dispatch;
mod neighbours;
mod serve;

pub use serve::{Arguments as ServeArguments, exit_code};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use glimmer_cli::{explain, told};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

// The arguments of an executable called `memcached`: memcached's command line, which has no
// subcommand. Its help begins with the version, as in memcached, so there is no doc comment.
#[derive(Debug, Parser)]
#[command(name = "memcached")]
struct Memcached {
    #[command(flatten)]
    arguments: serve::Arguments,
}

/// An in-memory cache that replaces memcached
#[derive(Debug, Parser)]
#[command(name = "glimmer", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// `command` adds the commands of the neighbouring programs; they never get here.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Arguments>),
    Dispatch(dispatch::Arguments),
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Serve(arguments) => arguments.run(),
            Command::Dispatch(arguments) => arguments.run(),
        }
    }
}

/// The command line, including the commands of the neighbouring programs.
pub fn command() -> clap::Command {
    Arguments::command().subcommands(neighbours::commands())
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let result = match neighbours::call(&arguments) {
        Some(call) => call.run(),
        None => match parse(arguments.clone()) {
            Ok(command) => command.run(),
            Err(error) => {
                let code = explain(&error, &arguments, &command());
                return serve::exit_code_of_value(&error).map_or(code, ExitCode::from);
            }
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glimmer: {}", told(&error));
            let code = serve::exit_code(&error).or_else(|| neighbours::exit_code(&error));
            ExitCode::from(code.unwrap_or(1))
        }
    }
}

/// Parses a command line of this program. An executable called `memcached` (a link or a copy; also
/// `memcached-debug`, the name in memcached's own tests) serves and takes memcached's command line.
fn parse(mut arguments: Vec<OsString>) -> Result<Command, clap::Error> {
    match program(&arguments) {
        Some("memcached") => {}
        Some("memcached-debug") => arguments.insert(1, "--debug-commands".into()),
        _ => {
            let matches = command().try_get_matches_from(arguments)?;
            return Ok(Arguments::from_arg_matches(&matches)?.command);
        }
    }
    refuse_tls_first(&mut arguments);
    // The same version as in the reply to `version`, from which scripts recognise the server. They
    // read `-V` or the first line of `-h`.
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

/// The name under which the program was started.
fn program(arguments: &[OsString]) -> Option<&str> {
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    program.and_then(|name| name.to_str())
}

/// memcached refuses TLS as soon as it parses `-Z`. Clients use `--enable-ssl --version` to find
/// out whether it is supported, so a version or help requested after `-Z` is not shown.
fn refuse_tls_first(arguments: &mut Vec<OsString>) {
    let is_tls = |argument: &OsString| argument == "-Z" || argument == "--enable-ssl";
    if let Some(first) = arguments.iter().position(is_tls) {
        arguments.truncate(first + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        super::parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
        Memcached::command().debug_assert();
    }

    #[test]
    fn called_memcached_it_serves() {
        for line in [
            "/usr/bin/memcached -m 64",
            "memcached-debug -m 64",
            "glimmer serve -m 64",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        assert!(parse("glimmer -m 64").is_err() && parse("memcached serve").is_err());
    }

    #[test]
    fn called_memcached_it_refuses_tls_before_it_says_what_it_is() {
        for line in ["memcached --enable-ssl --version", "memcached -Z -h"] {
            let arguments = parse(line).expect("only serving refuses TLS");
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

    #[test]
    fn what_was_meant_is_suggested() {
        let complaint = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = super::parse(words.clone()).expect_err(line);
            glimmer_cli::suggest::complaint(&error, &words, &command())
        };
        for (line, meant) in [
            ("glimmer -p 11211", "`glimmer serve -p 11211`"),
            ("glimmer -m 64 -vv", "`glimmer serve -m 64 -vv`"),
            ("glimmer --port=1", "`glimmer serve --port=1`"),
            ("glimmer server", "`serve`"),
            ("glimmer bnech", "`bench`"),
            ("glimmer serve --memory 64", "`--memory-limit`"),
            ("glimmer serve --thread 4", "`--threads`"),
        ] {
            let complaint = complaint(line);
            let asked = format!("did you mean {meant}?");
            assert!(complaint.contains(&asked), "{line}: {complaint}");
            assert!(!complaint.contains('\n'), "{line}: {complaint}");
        }
        for line in [
            "glimmer --nonsense",
            "glimmer xyzzy",
            "glimmer serve --xyzzy",
            "glimmer serve -m lots",
        ] {
            let complaint = complaint(line);
            assert!(!complaint.contains("did you mean"), "{line}: {complaint}");
            assert!(complaint.ends_with("; --help explains every option"));
        }
        let complaint = complaint("glimmer serve --memory-fil x");
        let hidden = complaint.contains("memory-file");
        assert!(!hidden, "a hidden option is suggested: {complaint}");
    }
}
