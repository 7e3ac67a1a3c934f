//! The benchmarks run as their help says, small.

use std::process::Command;

fn bench(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_glimmer"))
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn memory_counts_what_our_server_keeps() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("memory.json");
    let arguments = ["memory", "--peers", "none", "-m", "32", "--items", "700000"];
    let more = ["--first", "100000", "--json", json.to_str().unwrap()];
    let table = bench(&[&arguments[..], &more].concat());
    assert!(table.contains("| glimmer |"), "{table}");

    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let row = &report["rows"][0];
    let figure = |name: &str| row[name].as_u64().unwrap();
    // An item is 48 bytes of key and value, and at most 26 beyond them; buffers take their part of so small a limit.
    assert!((250_000..700_000).contains(&figure("resident")), "{row}");
    assert!(figure("first_lost") <= 100, "{row}");
    assert!(figure("rss_peak_bytes") < (32 + 32) << 20, "{row}");
}

#[test]
fn hit_ratio_prints_a_table_of_every_rule() {
    let small = ["--keys", "10000", "--requests", "20000", "--capacity", "10"];
    let table = bench(&[&["hit-ratio", "--trace", "zipf"][..], &small].concat());
    for rule in ["**fifo**", "**s3fifo**", "SIEVE", "strict LRU"] {
        assert!(table.contains(rule), "{table}");
    }
}

#[test]
fn store_prints_operations_per_random_read() {
    let small = [
        "--items",
        "200000",
        "--cores",
        "1",
        "--seconds",
        "0.1",
        "--repeat",
        "1",
    ];
    let what = [
        "--access",
        "crew",
        "--dist",
        "uniform",
        "--gets",
        "95",
        "--without",
        "item",
    ];
    let table = bench(&[&["store"][..], &small, &what].concat());
    assert_eq!(table.matches("| crew").count(), 2, "{table}");
    assert!(table.contains("without items"), "{table}");
}
