//! What the documents say of bytes, held to the plan and to the layout of items.

use super::tests::needs;
use super::*;
use glimmer_store::heap::Layout;

const MIB: usize = 1 << 20;
const KEY_BYTES: usize = 16;

const SIZING: &str = include_str!("../../../../docs/sizing.md");
const MEMORY: &str = include_str!("../../../../docs/memory.md");
const ACCESS_MODES: &str = include_str!("../../../../docs/access-modes.md");
const REFERENCE: &str = include_str!("../../../../docs/benchmarking-reference.md");
const DIFFERENCES: &str = include_str!("../../../../docs/memcached-differences.md");

/// Bytes of an item in the log.
fn log_bytes(key_len: usize, value_len: usize, flags_bytes: u8, expiry: bool) -> usize {
    let layout = Layout {
        key_len,
        value_len,
        flags_bytes,
        expiry,
        extra: false,
    };
    8 * layout.words()
}

/// Bytes of index for an item, where a whole number of doublings is complete.
fn index_bytes() -> f64 {
    INDEX_BYTES_PER_100_BUCKETS as f64 / (100 * BUCKET_ENTRIES) as f64
}

/// The cells of the rows that begin with this kind of cell, as numbers.
fn rows(text: &str, is_first: impl Fn(&str) -> bool) -> Vec<Vec<f64>> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inside = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inside.split(" | ").map(str::to_owned).collect())
    };
    let number = |cell: &String| {
        let digits: String = cell.chars().filter(|c| c.is_ascii_digit()).collect();
        digits.parse().unwrap_or(f64::NAN)
    };
    let lines = text.lines().filter_map(cells);
    let lines = lines.filter(|cells| is_first(&cells[0]));
    lines
        .map(|cells| cells.iter().map(number).collect())
        .collect()
}

/// Two digits, rounded up.
fn rounded_up(number: f64) -> f64 {
    let unit = 10_f64.powi((number.log10().floor() as i32 - 1).max(0));
    (number / unit).ceil() * unit
}

/// The words with one space between any two.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(page: &str, words: &str) {
    assert!(joined(page).contains(words), "no page says: {words}");
}

/// What an item takes, and what follows from that. What was measured is more, by what the page
/// adds for the rest of `-m`.
#[test]
fn sizing_follows_from_the_layout() {
    let (table, others) = SIZING.split_once("Runs with other limits").unwrap();
    let index = index_bytes().round() as usize;
    let is_value = |cell: &str| cell.ends_with(" B");
    let sizes = rows(table, is_value);
    assert_eq!(sizes.len(), 8);
    for row in &sizes {
        let &[value, taken, measured, ..] = &row[..] else {
            panic!("{row:?}");
        };
        let computed = log_bytes(KEY_BYTES, value as usize, 0, false) + index;
        assert_eq!(taken, computed as f64, "values of {value} bytes");
        assert!(
            measured >= taken && measured <= taken * 1.03,
            "values of {value} bytes"
        );
        for (said, items) in row[3..].iter().zip([1e6, 1e7, 1e8]) {
            let mib = rounded_up(measured * items / MIB as f64);
            assert_eq!(*said, mib, "{items} values of {value} bytes");
        }
    }
    let others = rows(others, is_value);
    assert_eq!(others.len(), 4);
    for row in &others {
        let taken = (log_bytes(KEY_BYTES, row[0] as usize, 0, false) + index) as f64;
        for (measured, most) in row[1..].iter().zip([1.08, 1.03, 1.03]) {
            let is_said = measured.is_nan() || (*measured >= taken && *measured <= taken * most);
            assert!(is_said, "{row:?}: {taken}");
        }
    }
}

#[test]
fn the_example_of_sizing_is_computed() {
    let (key, value) = (32, 600);
    let log = log_bytes(key, value, 0, true);
    let item = log + index_bytes().round() as usize;
    let mib = 5e6 * item as f64 * 1.03 / MIB as f64;
    says(
        SIZING,
        &format!(
            "8 + 3 + 32 + 600 + 5 = {log}, a multiple of 8, with the index {item} bytes. \
             5 million × {item} × 1.03 is {}",
            with_comma(mib)
        ),
    );
}

/// MiB rounded to a whole number, with a comma.
fn with_comma(mib: f64) -> String {
    let mib = mib.round() as usize;
    format!("{},{:03} MiB", mib / 1000, mib % 1000)
}

#[test]
fn the_bytes_beyond_key_and_value_are_computed() {
    let index = index_bytes();
    says(MEMORY, &format!("an item takes {index:.1} bytes of index"));
    for (said, key, value, flags_bytes, expiry) in [
        ("8 B, 8 B", 8, 8, 0, false),
        ("16 B, 32 B", 16, 32, 0, false),
        ("16 B, 32 B, with flags", 16, 32, 1, false),
        ("16 B, 32 B, with flags and expiry", 16, 32, 1, true),
        ("32 B, 1,000 B", 32, 1000, 0, false),
    ] {
        let log = log_bytes(key, value, flags_bytes, expiry);
        let beyond = (log - key - value) as f64 + index;
        let row = MEMORY.replace("**", "").replace("1,048", "1048");
        let wanted = format!("| {said} | {log} | {index:.1} | {beyond:.1} |");
        assert!(row.contains(&wanted), "docs/memory.md lacks {wanted}");
    }
}

/// What was measured differs from what is computed by no more than sizing.md adds.
#[test]
fn measured_items_are_those_that_the_bytes_have_room_for() {
    let room = |value_len: usize| {
        let item = log_bytes(KEY_BYTES, value_len, 0, false) as f64 + index_bytes();
        (256 * MIB) as f64 / item
    };
    for (value_len, said) in [(8, "6.11 million"), (102_400, "2,549")] {
        let row = format!("`--value-bytes {value_len} --items ");
        let row = MEMORY.lines().find(|line| line.contains(&row)).unwrap();
        assert!(row.contains(&format!("| {said} |")), "{row}");
        let number = said.trim_end_matches(" million").replace(',', "");
        let unit = if said.ends_with("million") { 1e6 } else { 1.0 };
        let kept = number.parse::<f64>().unwrap() * unit;
        let share = kept / room(value_len);
        assert!((0.97..=1.0).contains(&share), "{share} of the room: {row}");
    }
    // With the share that a small -m needs.
    let small = log_bytes(KEY_BYTES, 64, 0, false) as f64 + index_bytes();
    let mib = rounded_up(small * 1e6 * 1.08 / MIB as f64);
    says(
        REFERENCE,
        &format!("the default workload need about `-m {mib}`"),
    );
}

#[test]
fn partitions_and_buffers_are_those_of_the_plan() {
    let each = |mib| {
        let plan = MemoryPlan::make(needs(mib, 2, AccessMode::Crcw)).unwrap();
        plan.partitions / 2
    };
    assert_eq!(each(1024), 8);
    says(
        ACCESS_MODES,
        &format!(
            "eight partitions for each worker ({} with `-m 64`)",
            written(each(64))
        ),
    );
    let item = limits::ITEM_BYTES_DEFAULT;
    let mib = |bytes: usize| format!("{:.2} MiB", bytes as f64 / MIB as f64);
    let least = mib(buffer_bytes_min(item));
    says(
        DIFFERENCES,
        &format!("a few of the largest items: {least} with `-I 1m`"),
    );
    says(MEMORY, &format!("With `-I 1m` it is {least} at least"));
    let beside = mib(buffer_bytes_min(item) - 2 * item);
    says(
        DIFFERENCES,
        &format!("at least {beside} and two of the largest items for each worker"),
    );
}

fn written(number: usize) -> &'static str {
    [
        "none", "one", "two", "three", "four", "five", "six", "seven", "eight",
    ][number]
}
