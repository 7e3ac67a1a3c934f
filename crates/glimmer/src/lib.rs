//! The top floor: the server's program. It serves, and it runs the programs that are installed next
//! to it: `glimmer-bench` and `glimmer-top`.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod config;
mod copy;
mod dispatch;
mod doctor;
mod health;
mod neighbours;
mod progress;
mod running;
mod serve;
mod snapshot;

pub use serve::{Arguments as ServeArguments, exit_code};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use glimmer_cli::suggest::complaint;
use glimmer_cli::{end_with_the_output, explain, taking_negatives, told};
use glimmer_server::{Reader, Reread};
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
    Copy(copy::Arguments),
    Config(config::command::Arguments),
    Doctor(doctor::Arguments),
    Health(health::Arguments),
    Snapshot(snapshot::Arguments),
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Serve(arguments) => arguments.run(),
            Command::Dispatch(arguments) => arguments.run(),
            Command::Copy(arguments) => arguments.run(),
            Command::Config(arguments) => arguments.run(),
            Command::Doctor(arguments) => arguments.run(),
            Command::Health(arguments) => arguments.run(),
            Command::Snapshot(arguments) => arguments.run(),
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
        None => match with_settings(&arguments, &config::environment()) {
            Err(mistakes) => Err(mistakes),
            Ok((words, whole)) => match parse(words.clone()) {
                Ok(Command::Serve(serve)) => {
                    let served = serve.noting(whole.notices.clone());
                    let served = served.serve(Some(reader(arguments, whole.clone())));
                    served.map_err(|error| whole.blamed(error))
                }
                Ok(command) => {
                    end_with_the_output("glimmer");
                    command.run()
                }
                Err(error) => {
                    let code = explain(&error, &words, &command());
                    let code = serve::exit_code_of_value(&error).map_or(code, ExitCode::from);
                    return match whole.has_mistake() {
                        true => ExitCode::from(serve::CONFIGURATION),
                        false => code,
                    };
                }
            },
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

/// The command line of a server with what a file and the environment add to it. Other command
/// lines stay as they are.
fn with_settings(
    typed: &[OsString],
    environment: &[(String, OsString)],
) -> anyhow::Result<(Vec<OsString>, config::Whole)> {
    let before = match (program(typed), typed.get(1)) {
        (Some("memcached" | "memcached-debug"), _) => 1,
        (_, Some(command)) if command == "serve" => 2,
        _ => return Ok((typed.to_vec(), config::Whole::default())),
    };
    let (before, typed) = typed.split_at(before);
    let whole = config::Whole::of(typed, environment)?;
    Ok(([before, &whole.words].concat(), whole))
}

/// What reads the settings again after SIGHUP, from the same file and the same variables.
fn reader(mut typed: Vec<OsString>, mut last: config::Whole) -> Reader {
    let environment = config::environment();
    let file = last
        .file
        .as_ref()
        .map(|path| ["--config".into(), path.into()]);
    typed.extend(file.into_iter().flatten());
    let first = last.clone();
    Reader::new(move || {
        let read = with_settings(&typed, &environment).map_err(|mistakes| told(&mistakes))?;
        let (words, whole) = read;
        let parsed = parse(words.clone());
        let parsed = parsed.map_err(|error| complaint(&error, &words, &command()))?;
        let Command::Serve(arguments) = parsed else {
            return Err("the command line has changed".to_owned());
        };
        let reread = Reread {
            config: arguments.config().map_err(|error| told(&error))?,
            changed: whole.changed_since(&last),
            not_of_start: whole.changed_since(&first),
        };
        last = whole;
        Ok(reread)
    })
}

/// Parses a command line of this program. An executable called `memcached` (a link or a copy; also
/// `memcached-debug`, the name in memcached's own tests) serves and takes memcached's command line.
fn parse(mut arguments: Vec<OsString>) -> Result<Command, clap::Error> {
    match program(&arguments) {
        Some("memcached") => {}
        Some("memcached-debug") => arguments.insert(1, "--debug-commands".into()),
        _ => {
            own_words_first(&mut arguments);
            let matches = taking_negatives(command()).try_get_matches_from(arguments)?;
            return Ok(Arguments::from_arg_matches(&matches)?.command);
        }
    }
    if !cfg!(feature = "tls") {
        refuse_tls_first(&mut arguments);
    }
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

/// Commands that take the flags of `serve` take all that follows for such. A wish for help among
/// these is for their own, and so is one for JSON. The version is that of the program.
fn own_words_first(arguments: &mut Vec<OsString>) {
    let words = arguments.get(1..).unwrap_or_default();
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (command, flags) = match &words[..] {
        ["doctor", flags @ ..] => (2, flags),
        ["config", "print", flags @ ..] => (3, flags),
        _ => return,
    };
    if let Some(&help) = flags.iter().find(|&&word| word == "--help" || word == "-h") {
        let help = help.into();
        arguments.truncate(command);
        arguments.push(help);
    } else if flags
        .iter()
        .any(|&word| word == "--version" || word == "-V")
    {
        arguments.truncate(1);
        arguments.push("--version".into());
    } else if command == 2
        && let Some(at) = arguments.iter().position(|word| word == "--json")
    {
        let json = arguments.remove(at);
        arguments.insert(command, json);
    }
}

/// Without TLS, memcached refuses it as soon as it parses `-Z`. Clients use `--enable-ssl
/// --version` to find out whether it is supported, so a version or help requested after `-Z` is not
/// shown.
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

    /// Clients' test suites find out by it whether there is TLS.
    #[test]
    fn called_memcached_it_says_whether_it_has_tls() {
        let version = parse("memcached --enable-ssl --version");
        if cfg!(feature = "tls") {
            let version = version.unwrap_err().to_string();
            assert!(version.starts_with("memcached 1.6."), "{version}");
            return;
        }
        for line in ["memcached --enable-ssl --version", "memcached -Z -h"] {
            let arguments = parse(line).expect("only serving refuses TLS");
            let refusal = arguments.run().unwrap_err();
            assert_eq!(serve::exit_code(&refusal), Some(64), "{refusal}");
        }
        let version = parse("memcached -V -Z").unwrap_err().to_string();
        assert!(version.starts_with("memcached 1.6."), "{version}");
    }

    #[test]
    fn help_after_flags_of_serve_is_that_of_the_command() {
        for line in [
            "glimmer doctor -m 64 --help",
            "glimmer config print -m 64 --help",
            "glimmer config print --help",
        ] {
            let help = parse(line).expect_err(line).to_string();
            assert!(help.contains("[FLAGS]..."), "{line}: {help}");
        }
    }

    #[test]
    fn version_after_flags_of_serve_is_that_of_the_program() {
        for line in [
            "glimmer doctor -V",
            "glimmer doctor -m 64 --version",
            "glimmer config print -V",
            "glimmer config print -m 64 --version",
        ] {
            let version = parse(line).expect_err(line).to_string();
            let plain = parse("glimmer --version").unwrap_err().to_string();
            assert_eq!(version, plain, "{line}");
        }
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
            ("glimmer serve --memory-lim 64", "`--memory-limit`"),
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
        let complaint = complaint("glimmer serve --napi-id x");
        let hidden = complaint.contains("napi-ids");
        assert!(!hidden, "a hidden option is suggested: {complaint}");
    }
}
