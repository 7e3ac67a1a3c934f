//! A killed benchmark leaves no server running.

mod signals;

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// The children of a process.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain spaces; state and parent follow it.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

/// Whether the process is running; a zombie is not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    !matches!(fields.split_whitespace().next(), None | Some("Z" | "X"))
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_benchmark_leaves_no_server_behind() {
    if Command::new("memcached").arg("-V").output().is_err() {
        eprintln!("SKIPPED: memcached is missing: apt-get install memcached");
        return;
    }
    for signal in signals::that_end() {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_glimmer-bench"))
            .args(["memory", "--without-glimmer", "--peers", "memcached"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A child is a fork of the benchmark until it has executed memcached.
        let server = wait_for("the server starts", || {
            children(bench.id()).into_iter().find(|pid| {
                fs::read_to_string(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.starts_with("memcached\0-l"))
            })
        });
        signals::send(signal, &bench);
        bench.wait().unwrap();
        wait_for("the server ends", || (!runs(server)).then_some(()));
    }
}
