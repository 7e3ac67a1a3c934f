//! `glimmer bench accelerator` runs as its help says, at a small scale, and leaves nothing behind.

mod program;
mod signals;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use glimmer_comparisons::lab::Namespaces;
use program::{bench, command, has_two_cores, program, read_json, refused, skipped::can_run};

const SMALL: &str = "accelerator --keys 2k --seconds 0.1 --repeat 1 --memory-limit 64";

/// Runs it with these further arguments, and returns its table and what it wrote as JSON.
fn report(arguments: &str) -> (String, serde_json::Value) {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("report.json");
    let line = format!("{SMALL} {arguments} --json {}", json.display());
    (bench(&line), read_json(&json))
}

/// The names of the servers in a case.
fn servers<'a>(report: &'a serde_json::Value, case: &str) -> Vec<&'a str> {
    let rows = report["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["case"] == case);
    rows.map(|row| row["server"].as_str().unwrap()).collect()
}

/// The network interfaces of this namespace.
fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = text.lines().filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_model_is_measured_on_loopback_without_rights() {
    if !has_two_cores() {
        return;
    }
    let (table, report) = report("--loopback --without-memcached");
    let ours = ["glimmer", "glimmer model"];
    for case in [
        "sockets64 one",
        "sockets64 zipf",
        "plain one",
        "batches zipf",
        "alone one",
        "misses",
        "misses-alone",
        "sets",
        "ycsb-a",
        "hit-ratio",
    ] {
        assert_eq!(servers(&report, case), ours, "{case}: {table}");
    }
    for row in report["rows"].as_array().unwrap() {
        let sample = &row["samples"][0];
        assert_eq!(sample["hit_share"].is_null(), row["body"] == "off", "{row}");
        assert_eq!(sample["refused"], 0, "{row}");
    }
    assert!(table.contains("All on loopback."), "{table}");
    assert!(table.contains("glimmer xdp is left out"), "{table}");
    assert!(table.contains("| held to"), "{table}");
}

#[test]
fn servers_and_client_run_in_two_namespaces_that_vanish() {
    if !has_two_cores() || !can_run(Namespaces::check()) {
        return;
    }
    let before = interfaces();
    let (table, report) = report("--body model --scenario alone,sets --keys-by one,etc");
    for case in ["alone one", "alone etc", "sets"] {
        let servers = servers(&report, case);
        assert!(servers.ends_with(&["glimmer", "glimmer model"]), "{table}");
    }
    assert!(table.contains("a veth pair for each server"), "{table}");
    assert_eq!(interfaces(), before);
}

/// The packet program answers in a thread of the interface, and not in the client's system calls.
#[test]
fn a_thread_receives_for_servers_with_a_program() {
    if !has_two_cores() || !can_run(Namespaces::check()) {
        return;
    }
    let (table, report) =
        report("--receive-thread --without-memcached --body xdp --scenario plain --keys-by one");
    let servers = servers(&report, "plain one");
    let all = ["glimmer", "glimmer, empty program", "glimmer xdp"];
    assert_eq!(servers, all, "{table}");
    assert_eq!(report["receiver"], "thread");
    assert!(
        table.contains("with a thread on the server's core"),
        "{table}"
    );
    let hits = &report["rows"][2]["samples"][0]["hit_share"];
    assert!(hits.as_f64().unwrap() > 0.5, "{table}");
}

#[test]
fn it_takes_only_what_it_knows() {
    for (arguments, hint) in [
        ("--body nonsense", "xdp-native"),
        ("--scenario nonsense", "ycsb-a"),
        ("--keys-by nonsense", "pareto"),
        ("--keys 0", "--keys"),
        ("--slots 255", "256 to 65536"),
        ("--slots 70000", "256 to 65536"),
        ("--receive-thread --loopback", "cannot be used with"),
    ] {
        let error = refused(command(&format!("accelerator {arguments}")));
        assert!(error.contains(hint), "{arguments}: {error}");
    }
}

/// The processes whose network namespace this is.
fn processes_in(namespace: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let processes = processes.map(|entry| entry.path());
    let is_in = |process: &PathBuf| {
        fs::read_link(process.join("ns/net")).is_ok_and(|found| found == namespace)
    };
    processes.filter(is_in).collect()
}

/// The servers' namespace, found by the processes that a program started.
fn namespace_of_children(program: &Child) -> Option<PathBuf> {
    let pid = program.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let child = children.split_whitespace().next()?;
    let own = fs::read_link("/proc/self/ns/net").ok()?;
    let found = fs::read_link(format!("/proc/{child}/ns/net")).ok()?;
    (found != own).then_some(found)
}

/// However it ends.
#[test]
fn a_program_that_is_killed_leaves_nothing_behind() {
    if !has_two_cores() || !can_run(Namespaces::check()) {
        return;
    }
    let before = interfaces();
    for signal in signals::that_end() {
        let mut bench = program()
            .args("accelerator --keep-priority --body model --scenario alone".split(' '))
            .args("--keys 2k --seconds 60 --repeat 1 --memory-limit 64".split(' '))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says what it does when its servers run.
        let mut lines = BufReader::new(bench.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains("storing"));
        let namespace = namespace_of_children(&bench).expect("servers in a namespace of their own");
        assert!(!processes_in(&namespace).is_empty());
        signals::send(signal, &bench);
        bench.wait().unwrap();
        let begin = Instant::now();
        while !processes_in(&namespace).is_empty() {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "a server lives on"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(interfaces(), before);
}
