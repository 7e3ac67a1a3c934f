//! Floor 2: what the three programs share. [`vocabulary`] parses values that several commands take,
//! [`AdmissionArguments`] says how they connect to a server with TLS or users,
//! [`suggest`] explains errors on the command line, and [`Program`] finds one program from another.

mod admission;
mod programs;
pub mod suggest;
pub mod vocabulary;

use std::{
    ffi::OsString,
    panic,
    process::{self, ExitCode},
};

use clap::{Command, Parser, error::ErrorKind};

pub use admission::AdmissionArguments;
pub use programs::{EXIT_MISSING, Missing, Program};

/// Runs a program: parses the command line, calls `run`, and reports a failure in one line.
pub fn run<A: Parser>(run: impl FnOnce(A) -> anyhow::Result<()>) -> ExitCode {
    end_with_the_output(A::command().get_name());
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parsed = taking_negatives(A::command()).try_get_matches_from(&arguments);
    let parsed = match parsed.and_then(|matches| A::from_arg_matches(&matches)) {
        Ok(parsed) => parsed,
        Err(error) => return explain(&error, &arguments, &A::command()),
    };
    match run(parsed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {}", A::command().get_name(), told(&error));
            let is_missing = error.chain().any(|cause| cause.is::<Missing>());
            ExitCode::from(if is_missing { EXIT_MISSING } else { 1 })
        }
    }
}

/// What a shell says of a program that SIGPIPE has ended.
const EXIT_CLOSED: i32 = 128 + 13;

/// Has the program end where what it prints can go nowhere: quietly if the reader has closed the
/// pipe, and with a line otherwise. `println!` and `eprintln!` panic there.
pub fn end_with_the_output(program: &str) {
    let (program, usual) = (program.to_owned(), panic::take_hook());
    panic::set_hook(Box::new(move |panicked| {
        let text = panicked.payload_as_str().unwrap_or_default();
        let failed = text.strip_prefix("failed printing to ");
        let Some((stream, reason)) = failed.and_then(|failed| failed.split_once(": ")) else {
            return usual(panicked);
        };
        if reason.starts_with("Broken pipe") {
            process::exit(EXIT_CLOSED);
        }
        if stream == "stdout" {
            eprintln!("{program}: cannot print: {reason}");
        }
        process::exit(1);
    }));
}

/// The command with options that take a word such as `-1`, so that what is wrong with it is said.
pub fn taking_negatives(command: Command) -> Command {
    let command = command.allow_negative_numbers(true);
    command.mut_subcommands(taking_negatives)
}

/// Prints help and version as clap does, and any other error in the command line in one line.
pub fn explain(error: &clap::Error, arguments: &[OsString], command: &Command) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A failed write means that the reader closed the pipe.
            let _ = error.print();
            ExitCode::from(error.exit_code().clamp(0, 255) as u8)
        }
        _ => {
            let complaint = suggest::complaint(error, arguments, command);
            eprintln!("{}: {complaint}", command.get_name());
            // The same exit code as memcached, whose command line this may be.
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, without repetitions: many messages end with their cause.
pub fn told(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .fold(error.to_string(), |text, cause| {
            let cause = cause.to_string();
            if text.contains(&cause) {
                text
            } else {
                format!("{text}: {cause}")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let cause = || std::io::Error::other("in use");
        let twice = anyhow::Error::new(cause()).context("cannot listen: in use");
        assert_eq!(told(&twice), "cannot listen: in use");
        let once = anyhow::Error::new(cause()).context("cannot listen");
        assert_eq!(told(&once), "cannot listen: in use");
    }
}
