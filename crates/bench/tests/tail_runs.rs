//! `glimmer bench tail` runs as its help says, at a small scale.

mod program;

use program::{bench, command, has_two_cores, read_json, refused, told};

/// Each of our policies appears by itself, at two rates, with and without large requests.
#[test]
fn tail_shows_small_requests_beside_large_ones() {
    if !has_two_cores() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [json, picture] = ["tail.json", "tail.png"].map(|name| directory.path().join(name));
    let small = "tail --peers none --threads 1,2 --rate 1k,2k --keys 3200 --seconds 0.2 \
                 --warm-up 0.2 --repeat 1 --memory-limit 64 --workload minos:10%:20k";
    let files = format!("--json {} --picture {}", json.display(), picture.display());
    let (table, progress) = told(&format!("{small} {files}"));
    let report = read_json(&json);
    let rows = report["rows"].as_array().unwrap();
    let policies = glimmer_comparisons::tail::policies();
    assert!(
        policies.iter().any(|name| name == "keyhash"),
        "{policies:?}"
    );
    // It needs a worker that dispatches and one that executes.
    assert!(
        table.contains("glimmer handoff -t 1 is left out"),
        "{table}"
    );
    for policy in &policies {
        let rows_each = if policy == "handoff" { 2 } else { 4 };
        for load in ["alone", "beside large"] {
            let row = format!("| glimmer {policy}, {load} ");
            assert_eq!(table.matches(&row).count(), rows_each, "{row}: {table}");
        }
        let ours: Vec<_> = rows
            .iter()
            .filter(|row| row["server"] == format!("glimmer {policy}"))
            .collect();
        assert_eq!(ours.len(), 2 * rows_each, "{policy}");
        for row in ours {
            let sample = &row["samples"][0];
            // A machine that does something else may give the client no time at all.
            if sample["saturated"] == true {
                assert!(table.contains("SATURATED"), "{table}");
                continue;
            }
            // The client may also have lost most of the time of the measurement.
            assert!(sample["small"]["count"].as_u64() > Some(10), "{row}");
            assert_eq!(sample["large"].is_null(), row["load"] == "alone", "{row}");
            assert_eq!(sample["misses"], 0, "{row}");
        }
    }
    assert!(
        table.contains("The client runs on core 1, of its own."),
        "{table}"
    );
    let (_, place) = table.split_once("\nMeasured at ").expect(&table);
    assert!(
        place.contains("glimmer-bench") && place.contains(" tail "),
        "{table}"
    );
    assert!(progress.contains("this takes about"), "{progress}");
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn tail_takes_only_what_it_can_measure() {
    for (arguments, hint) in [
        ("--dispatch nonsense", "keyhash"),
        ("--workload small", "use etc or minos"),
        ("--picture tail.gif", ".svg or .png"),
        ("--dispatch none --peers none", "name --peers"),
        ("--large-connections 1 --large-threads 2", "divided among 2"),
    ] {
        let error = refused(command(&format!("tail {arguments}")));
        assert!(error.contains(hint), "{arguments}: {error}");
    }
}

/// Native clients reach the ports of all workers, and large requests need no rate.
#[test]
fn tail_drives_native_clients_beside_large_requests_without_a_rate() {
    if !has_two_cores() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [json, picture] = ["tail.json", "tail.svg"].map(|name| directory.path().join(name));
    let small = "tail --peers none --protocol native,memcached --dispatch keyhash,size-aware \
                 --threads 2 --rate 1k --large-pace saturating --keys 3200 --seconds 0.2 \
                 --warm-up 0.2 --repeat 1 --memory-limit 64 --workload minos:10%:20k";
    let files = format!("--json {} --picture {}", json.display(), picture.display());
    let table = bench(&format!("{small} {files}"));
    assert!(table.contains("as fast as they are answered"), "{table}");
    let report = read_json(&json);
    let rows = report["rows"].as_array().unwrap();
    for policy in ["keyhash", "size-aware"] {
        for protocol in [", native", ""] {
            let server = format!("glimmer {policy}{protocol}");
            let ours: Vec<_> = rows.iter().filter(|row| row["server"] == server).collect();
            assert_eq!(ours.len(), 2, "{server}: {table}");
            for row in ours {
                let sample = &row["samples"][0];
                assert_eq!(sample["misses"], 0, "{row}");
                let large_per_s = sample["large_per_s"].as_f64().unwrap();
                assert_eq!(large_per_s > 0.0, row["load"] == "beside-large", "{row}");
            }
        }
    }
}

/// Small requests are also measured beside slow readers, in the protocol of each server.
#[test]
fn tail_measures_small_requests_beside_slow_readers() {
    if !has_two_cores() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [json, picture] = ["tail.json", "tail.svg"].map(|name| directory.path().join(name));
    let small = "tail --peers memcached,redis --dispatch keyhash --threads 1 --rate 1k \
                 --keys 3200 --seconds 0.2 --warm-up 0.2 --repeat 1 --memory-limit 64 \
                 --workload minos:10%:1000000 --slow-readers 8";
    let files = format!("--json {} --picture {}", json.display(), picture.display());
    let table = bench(&format!("{small} {files}"));
    let about = "8 connections take a value of 1000000 bytes";
    assert!(table.contains(about), "{table}");
    let report = read_json(&json);
    let rows = report["rows"].as_array().unwrap();
    // Peers that are not installed are left out.
    assert_eq!(rows.len() % 3, 0, "{table}");
    let slow = rows.iter().filter(|row| row["load"] == "beside-slow");
    for row in slow.clone() {
        let sample = &row["samples"][0];
        assert!(sample["server_mib"].as_f64() > Some(1.0), "{row}");
        assert!(sample["large"].is_null(), "{row}");
        assert_eq!(
            (&sample["misses"], &sample["closed"]),
            (&0.into(), &0.into()),
            "{row}"
        );
    }
    assert_eq!(slow.count(), rows.len() / 3, "{table}");
    assert!(
        table.contains("| glimmer keyhash, beside slow readers "),
        "{table}"
    );
}
