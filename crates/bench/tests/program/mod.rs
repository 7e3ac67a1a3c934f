//! Runs the program as its users do.

// Each test program compiles all of it and uses some.
#![allow(dead_code)]

#[path = "../../../../tests/support/server_program.rs"]
mod server_program;

use std::process::Command;

use server_program::server_beside;

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

/// Its output.
pub fn bench(arguments: &[&str]) -> String {
    told(arguments).0
}

/// Its output, and its progress messages.
pub fn told(arguments: &[&str]) -> (String, String) {
    let before = priority();
    let output = program()
        .arg("--keep-priority")
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert_eq!(priority(), before, "{arguments:?} changed the priority");
    let errors = errors.into_owned();
    (String::from_utf8(output.stdout).unwrap(), errors)
}
