//! Commands of the neighbouring programs. Without them, the server is built in a fraction of the
//! time from a fraction of the crates.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process;

use anyhow::Context;
use glimmer_cli::{EXIT_MISSING, Missing, Program};

/// A command that another program executes.
struct Neighbour {
    /// Its name after `glimmer`.
    name: &'static str,
    /// Its line in `glimmer --help`.
    about: &'static str,
    program: Program,
    /// The program's first argument, before the rest of the command line.
    first: Option<&'static str>,
}

const NEIGHBOURS: [Neighbour; 3] = [
    Neighbour {
        name: "bench",
        about: "Benchmark this cache, and compare it with others",
        program: Program::Bench,
        first: None,
    },
    Neighbour {
        name: "figure",
        about: "Reproduce the figures of the papers",
        program: Program::Bench,
        first: Some("figure"),
    },
    Neighbour {
        name: "top",
        about: "Watch a running server in the terminal",
        program: Program::Top,
        first: None,
    },
];

/// The commands for `glimmer --help`.
pub fn commands() -> impl Iterator<Item = clap::Command> {
    NEIGHBOURS
        .iter()
        .map(|neighbour| clap::Command::new(neighbour.name).about(neighbour.about))
}

/// A call of another program.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    program: Program,
    arguments: Vec<OsString>,
}

/// The call for a command line that is not for the server. Everything after the command is passed
/// on unchanged; `help COMMAND ...` becomes `COMMAND ... --help`.
pub fn call(arguments: &[OsString]) -> Option<Call> {
    if crate::program(arguments).is_some_and(|name| name.starts_with("memcached")) {
        return None;
    }
    let (help, words) = match arguments.get(1)?.to_str()? {
        "help" => (Some(OsString::from("--help")), &arguments[2..]),
        _ => (None, &arguments[1..]),
    };
    let (name, rest) = words.split_first()?;
    let neighbour = NEIGHBOURS
        .iter()
        .find(|neighbour| *name == neighbour.name)?;
    let first = neighbour.first.map(OsString::from);
    let passed = first.into_iter().chain(rest.iter().cloned()).chain(help);
    Some(Call {
        program: neighbour.program,
        arguments: passed.collect(),
    })
}

impl Call {
    /// Replaces this process with the program, which keeps the process id, files, terminal and
    /// environment. Signals and the exit code therefore need no forwarding. Returns only on
    /// failure.
    pub fn run(self) -> anyhow::Result<()> {
        let file = self.program.find()?;
        let error = process::Command::new(&file).args(&self.arguments).exec();
        Err(error).with_context(|| format!("cannot run {}", file.display()))
    }
}

/// The exit code if a program is missing.
pub fn exit_code(error: &anyhow::Error) -> Option<u8> {
    error.is::<Missing>().then_some(EXIT_MISSING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call for a command line.
    fn called(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Call { program, arguments } = call(&words)?;
        let words = arguments.iter().map(|word| word.to_str().unwrap());
        let words: Vec<&str> = [program.name()].into_iter().chain(words).collect();
        Some(words.join(" "))
    }

    #[test]
    fn commands_become_programs() {
        for (line, program) in [
            ("glimmer bench", "glimmer-bench"),
            ("glimmer bench --help", "glimmer-bench --help"),
            (
                "/usr/bin/glimmer bench load -s cache -- x",
                "glimmer-bench load -s cache -- x",
            ),
            ("glimmer figure list", "glimmer-bench figure list"),
            ("glimmer top cache --once", "glimmer-top cache --once"),
            ("glimmer help bench", "glimmer-bench --help"),
            ("glimmer help bench versus", "glimmer-bench versus --help"),
            ("glimmer help figure", "glimmer-bench figure --help"),
            ("glimmer help top", "glimmer-top --help"),
        ] {
            assert_eq!(called(line).as_deref(), Some(program), "{line}");
        }
        for line in [
            "glimmer",
            "glimmer serve -m 64",
            "glimmer --help",
            "glimmer help",
            "glimmer help serve",
            "glimmer bnech",
            "memcached bench",
            "/opt/memcached-debug top",
        ] {
            assert_eq!(called(line), None, "{line}");
        }
    }

    #[test]
    fn help_lists_each_command() {
        let help = crate::command().render_help().to_string();
        for neighbour in &NEIGHBOURS {
            let line = help
                .lines()
                .find(|line| line.trim_start().starts_with(neighbour.name));
            assert!(
                line.is_some_and(|line| line.ends_with(neighbour.about)),
                "{help}"
            );
        }
    }
}
