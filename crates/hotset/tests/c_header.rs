//! The C header describes the same bytes as the types do.
#![cfg(not(loom))]

use glimmer_base::limits::{HOT_VALUE_BYTES_MAX, KEY_BYTES_MAX};
use glimmer_hotset::layout::{Control, LAYOUT_VERSION, SLOT_BYTES, State, TALLIES, Tally, offsets};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const HEADER: &str = include_str!("../include/glimmer_hotset.h");

#[test]
fn every_number_of_the_header_is_ours() {
    let mut theirs = BTreeMap::new();
    for line in HEADER.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["#define", name, value] = words[..] {
            theirs.insert(name.to_owned(), value.parse::<usize>().unwrap());
        }
    }
    let mut ours: BTreeMap<String, usize> = [
        ("HOT_LAYOUT_VERSION", LAYOUT_VERSION as usize),
        ("HOT_KEY_BYTES_MAX", KEY_BYTES_MAX),
        ("HOT_VALUE_BYTES_MAX", HOT_VALUE_BYTES_MAX),
        ("HOT_STATE_LIVE", State::LIVE as usize),
        ("HOT_STATE_WRITING", State::WRITING as usize),
        ("HOT_SLOT_BYTES", SLOT_BYTES),
        ("HOT_CONTROL_BYTES", size_of::<Control>()),
        ("HOT_TALLIES", TALLIES),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for (name, offset) in offsets::ALL {
        ours.insert(format!("HOT_SLOT_{name}"), *offset);
    }
    for tally in Tally::all() {
        let name = tally.name().to_uppercase();
        ours.insert(format!("HOT_TALLY_{name}"), *tally as usize);
    }
    assert_eq!(theirs, ours);
}

/// The assertions in the header hold. Machines without a C compiler leave this out.
#[test]
fn the_structures_of_the_header_have_these_numbers() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/glimmer_hotset.h");
    let compiler = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c"])
        .arg(header)
        .status();
    match compiler {
        Ok(status) => assert!(status.success()),
        Err(error) => println!("SKIPPED: cc: {error}"),
    }
}
