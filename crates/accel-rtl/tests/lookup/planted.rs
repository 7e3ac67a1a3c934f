//! Planted bugs: the sources have each of them behind a macro, and the test named beside it must
//! fail with it.

use crate::directed::Situation;
use crate::{against_model, directed};
use glimmer_accel_rtl::lookup::Shape;
use glimmer_accel_rtl::random::each_seed;
use glimmer_accel_rtl::tools::Tools;
use std::panic::{AssertUnwindSafe, catch_unwind};

const RANDOM: Situation = |tools, shape, seed| against_model::agrees(tools, shape, seed, 20_000);

/// The macro, the width, and what must notice it.
const BUGS: &[(&str, usize, Situation)] = &[
    // The key memory has one half: the next key overwrites the one that is compared.
    ("BUG_HALVES", 1, directed::a_mode_switch_loses_no_get),
    // The bytes behind a key's end are whatever lay on the port.
    ("BUG_PADDING", 8, directed::lengths_at_their_bounds),
    // A key's length is not compared.
    ("BUG_LENGTH", 1, directed::lengths_are_compared),
    // The secondary slot is taken before the primary one.
    ("BUG_SECONDARY_FIRST", 1, RANDOM),
    // An equal weight is enough.
    ("BUG_EQUAL_WEIGHT", 1, directed::equal_hashes_leave_one_slot),
    // A count starts again from zero after its maximum.
    ("BUG_SATURATE", 1, directed::counts_saturate),
    // Until the sweep has come by, a count is what it was before the reset.
    ("BUG_SWEEP", 1, directed::counts_are_exact_during_the_sweep),
    // The end of a value is not checked.
    ("BUG_BOUND", 1, directed::a_value_stays_within_the_memory),
    // The value memory goes on while its reader waits.
    (
        "BUG_STALL",
        1,
        directed::a_delete_waits_for_the_value_that_streams,
    ),
    // One of the banks takes its byte from the wrong row.
    ("BUG_BANKS", 8, directed::values_lie_side_by_side),
    // The memory handler leaves a line one byte too early.
    ("BUG_LINE", 1, directed::lengths_at_their_bounds),
    // The switch to write mode does not wait for lookups under way.
    ("BUG_DRAIN", 1, directed::a_mode_switch_loses_no_get),
];

#[test]
fn every_planted_bug_is_found() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| each_is_found_with(&tools, seed));
}

fn each_is_found_with(tools: &Tools, seed: u64) {
    let mut missed = Vec::new();
    for &(bug, width, situation) in BUGS {
        let small = Shape::small(width);
        let shape = Shape {
            bug: Some(bug),
            ..small
        };
        let found = catch_unwind(AssertUnwindSafe(|| situation(tools, shape, seed)));
        let (result, by) = match &found {
            Ok(()) => ("MISSED", ""),
            Err(panic) => ("found", message(panic.as_ref())),
        };
        println!(
            "{bug:<20} {width} {result}: {}",
            by.lines().next().unwrap_or_default()
        );
        // A bug that does not even build proves nothing.
        assert!(!by.contains("verilator"), "{by}");
        if found.is_ok() {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("")
}
