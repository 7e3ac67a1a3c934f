//! Runs the program as its users do.

// Each test program compiles all of it and uses some.
#![allow(dead_code)]

#[path = "../../../../tests/support/server_program.rs"]
mod server_program;
#[path = "../../../../tests/support/skipped.rs"]
pub mod skipped;

use std::{path::Path, process::Command};

use server_program::server_beside;
use skipped::can_run;

const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer-bench");

/// The program, with the server beside it.
pub fn program() -> Command {
    server_beside(PROGRAM);
    Command::new(PROGRAM)
}

/// The server.
pub fn server() -> Command {
    Command::new(server_beside(PROGRAM))
}

/// The priority of this session of processes, if the kernel groups them.
fn priority() -> Option<String> {
    std::fs::read_to_string("/proc/self/autogroup").ok()
}

/// The program with the words of this line.
pub fn command(line: &str) -> Command {
    let mut command = program();
    command.arg("--keep-priority").args(line.split_whitespace());
    command
}

/// Its output.
pub fn bench(line: &str) -> String {
    told(line).0
}

/// Its output, and its progress messages.
pub fn told(line: &str) -> (String, String) {
    let before = priority();
    let output = command(line).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    assert_eq!(priority(), before, "{line} changed the priority");
    let errors = errors.into_owned();
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// What it complains of.
pub fn refused(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// What it wrote with `--json`.
pub fn read_json(file: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Whether the test can run.
pub fn has_two_cores() -> bool {
    can_run(
        match std::thread::available_parallelism().map_or(1, usize::from) {
            1 => Err("a server and its client want a core each"),
            _ => Ok(()),
        },
    )
}
