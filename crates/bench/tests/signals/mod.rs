//! Signals that end a program.

use std::{
    fs,
    process::{Child, Command},
};

/// Those that are not ignored here: killed, told to end, and interrupted from a terminal.
pub fn that_end() -> impl Iterator<Item = &'static str> {
    let all = [("KILL", 9), ("TERM", 15), ("INT", 2)].into_iter();
    all.filter_map(|(signal, number)| {
        if is_ignored(number) {
            eprintln!("SKIPPED: SIG{signal} is ignored here, and by what is started here");
            return None;
        }
        Some(signal)
    })
}

/// Sends it to a process.
pub fn send(signal: &str, process: &Child) {
    let kill = Command::new("kill")
        .args(["-s", signal, &process.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// Whether this process ignores a signal. Its children inherit that: a shell in a script makes
/// background commands ignore SIGINT.
fn is_ignored(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("the kernel tells which signals are ignored");
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}
