//! `glimmer bench hit-ratio`: patterns, and recorded traces.

mod program;

use program::{bench, command, read_json, refused};

/// Four times as many blocks as fit, so that each server has some hits and some misses.
#[test]
fn hit_ratio_replays_a_trace_of_block_storage_against_servers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("blocks.csv");
    let replay = format!("hit-ratio --peers none --trace-file {}", file.display());
    let table = bench(&format!("{replay} --block-storage --requests 5k -m 16"));
    let row = table
        .lines()
        .find(|line| line.contains("glimmer 0"))
        .unwrap();
    let share = row
        .split('|')
        .nth(2)
        .and_then(|cell| cell.split('%').next());
    let share: f64 = share.unwrap().trim().parse().unwrap();
    assert!(share > 2.0 && share < 50.0, "{table}");
    assert!(table.contains("5000 requests"), "{table}");
    // The same trace again, as a recorded one.
    let again = bench(&format!("{replay} -m 64"));
    assert!(
        again.contains("-m 64") && again.contains("5000 requests"),
        "{again}"
    );
}

/// The error message of a replay of a trace with these lines.
fn refused_trace(lines: &str, arguments: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.txt");
    std::fs::write(&file, lines).unwrap();
    let file = file.display();
    let line = format!("hit-ratio --peers none --trace-file {file} {arguments}");
    refused(command(&line))
}

#[test]
fn a_trace_that_cannot_be_replayed_says_why() {
    let complaint = refused_trace("1\n2\n3 4\n", "-m 16");
    assert!(complaint.contains("keys.txt, line 3"), "{complaint}");
    assert!(complaint.contains("\"3 4\" is not one key"), "{complaint}");
    let complaint = refused_trace("1\n2\n3\n", "--capacity 0.5");
    assert!(complaint.contains("--copies"), "{complaint}");
}

/// All items fit, so that each read but the first of a key finds it, whatever the rule, even if it
/// follows at once.
#[test]
fn hit_ratio_replays_requests_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.txt");
    let keys: Vec<String> = (0..500u32)
        .map(|turn| (turn % 200 / 2).to_string())
        .collect();
    std::fs::write(&file, keys.join("\n")).unwrap();
    let json = directory.path().join("report.json");
    let files = format!("--trace-file {} --json {}", file.display(), json.display());
    let how = "--value-bytes 10000 --copies 20 -m 64 --evict s3fifo,fifo --peers none";
    let table = bench(&format!("hit-ratio {files} {how}"));
    assert!(table.contains("10000 requests of"), "{table}");
    assert!(table.contains("2000 keys, 19.1 MiB"), "{table}");
    for rule in ["s3fifo", "fifo"] {
        let row = table
            .lines()
            .find(|line| line.contains(&format!("--evict {rule} ")));
        let row = row.unwrap_or_else(|| panic!("no {rule} in {table}"));
        assert!(row.contains(" 80.00% (80.00%, "), "{table}");
    }
    let report = read_json(&json);
    assert_eq!(report["footprint"]["keys"], 2000);
    assert_eq!(report["rows"][0]["cells"][0]["reads"], 10_000);
}

/// Twitter's traces record the first read of a key, which missed, without a length. It asked for as
/// many bytes as the write that follows it has.
#[test]
fn a_read_that_missed_counts_with_the_bytes_of_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("twitter.csv");
    let (mut lines, mut hit_bytes, mut asked_bytes) = (String::new(), 0, 0);
    for key in 1..=100 {
        let bytes = 100 * key;
        lines += &format!("0,k{key},8,0,1,get,0\n0,k{key},8,{bytes},1,set,0\n");
        asked_bytes += bytes;
        // The larger ones are read again.
        if key > 50 {
            lines += &format!("1,k{key},8,{bytes},1,get,0\n");
            (hit_bytes, asked_bytes) = (hit_bytes + bytes, asked_bytes + bytes);
        }
    }
    std::fs::write(&file, lines).unwrap();
    let json = directory.path().join("report.json");
    let files = format!("--trace-file {} --json {}", file.display(), json.display());
    bench(&format!("hit-ratio {files} -m 64 --peers none"));
    let cell = &read_json(&json)["rows"][0]["cells"][0];
    assert_eq!(cell["reads"], 150);
    let share = |name: &str| cell[name].as_f64().unwrap();
    assert!((share("hit_ratio") - 50.0 / 150.0).abs() < 1e-9, "{cell}");
    let bytes = f64::from(hit_bytes) / f64::from(asked_bytes);
    assert!((share("byte_hit_ratio") - bytes).abs() < 1e-9, "{cell}");
}

#[test]
fn hit_ratio_prints_a_row_for_each_pattern_and_a_column_for_each_rule() {
    let small = "--keys 10000 --requests 20000 --capacity 0.1";
    let table = bench(&format!("hit-ratio --pattern zipf-0.99,lag-40 {small}"));
    for rule in [
        "**fifo**",
        "**s3fifo**",
        "SIEVE",
        "strict LRU",
        "zipf-0.99, 10%",
        "lag-40, 10%",
        "mean",
    ] {
        assert!(table.contains(rule), "{table}");
    }
}
