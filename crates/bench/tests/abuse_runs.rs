//! `glimmer bench abuse` gives its verdicts.

mod program;

use program::command;

/// Exposes our server to hostile clients and returns the output of `--json`, after comparing it
/// with the table and its verdicts.
fn abuse(arguments: &str) -> Vec<serde_json::Value> {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("abuse.json");
    let files = format!("--json {}", json.display());
    let line = format!("abuse --peers none --quiet-seconds 0.1 {files} {arguments}");
    let output = command(&line).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let report = std::fs::read(&json).expect(&errors);
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    let rows = report["rows"].as_array().unwrap().clone();
    for row in &rows {
        let name = row["scenario"].as_str().unwrap();
        assert!(table.contains(&format!("| {name} (")), "{name}: {table}");
        let measured = &row["measured"];
        assert!(measured["attacked"]["visits"].as_u64() > Some(0), "{row}");
        assert!(measured["resident_peak"].as_u64() > Some(0), "{row}");
        let all_within = row["checks"].as_array().unwrap().iter().all(is_within);
        assert_eq!(all_within, row["passed"].as_bool().unwrap(), "{row}");
    }
    // On a busy machine a server may fail because of its latencies, but the exit code must agree.
    let all_passed = rows.iter().all(|row| row["passed"] == true);
    assert_eq!(output.status.success(), all_passed, "{table}{errors}");
    rows
}

fn is_within(check: &serde_json::Value) -> bool {
    check["figure"].as_f64() <= check["bound"].as_f64()
}

#[test]
fn abuse_gives_a_verdict_on_every_scenario() {
    let rows = abuse("--connections 20 --seconds 0.3 --memory-limit 16");
    assert_eq!(rows.len(), glimmer_comparisons::abuse::SCENARIOS.len());
}

#[test]
fn unread_control_replies_stay_within_the_memory_limit() {
    let rows = abuse("--scenario control-replies,control-datagrams --connections 100 --seconds 2");
    for row in rows {
        let checks = row["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["what"] == "peak RSS");
        assert!(check.is_some_and(is_within), "{row}");
    }
}

#[test]
fn a_run_without_a_case_is_no_pass() {
    let line = "abuse --peers none --scenario greedy --only nothing";
    let complaint = program::refused(command(line));
    assert!(complaint.contains("nothing was run"), "{complaint}");
}
