//! Planted bugs: each has to be found by the test beside it.

use super::{Scenario, directed, rooms, twin};
use glimmer_accel_rtl::random::each_seed;
use glimmer_accel_rtl::tools::Tools;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn random_frames(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    twin::against_the_twin(tools, width, bug, seed, 1500);
}

/// The bug's macro, the width, and the test that has to fail.
const PLANTED: &[(&str, usize, &str, Scenario)] = &[
    ("BUG_TM_UDP_SUM", 1, "every_bit", directed::every_bit),
    ("BUG_TM_KEY_LENGTH", 8, "every_bit", directed::every_bit),
    ("BUG_TM_FRAME_LENGTH", 1, "random_frames", random_frames),
    (
        "BUG_TM_ROLLBACK",
        8,
        "runts_and_jumbos",
        directed::runts_and_jumbos,
    ),
    ("BUG_TM_HIT_PASSED", 1, "lengths", directed::lengths),
    ("BUG_TM_WRITE_MODE", 8, "write_mode", directed::write_mode),
    (
        "BUG_TM_DEFER_OVERFLOW",
        1,
        "a_cpu_that_sleeps",
        rooms::a_cpu_that_sleeps,
    ),
    ("BUG_TM_KEY_KEPT", 1, "random_frames", random_frames),
    ("BUG_TM_ODD", 1, "lengths", directed::lengths),
    ("BUG_TM_TOO_LONG", 8, "lengths", directed::lengths),
    ("BUG_TM_GROUP", 8, "every_address", directed::every_address),
    ("BUG_ARB_MIXES", 8, "every_address", directed::every_address),
    ("BUG_ARB_LOSES", 8, "every_address", directed::every_address),
    (
        "BUG_TM_ZERO_SUM",
        1,
        "checksum_of_zero",
        directed::checksum_of_zero,
    ),
];

#[test]
fn each_is_found() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| each_is_found_with(&tools, seed));
}

fn each_is_found_with(tools: &Tools, seed: u64) {
    let mut unfound = Vec::new();
    for &(bug, width, test, scenario) in PLANTED {
        // The circuit must be built: a bug that does not compile is not found.
        drop(super::bench::Bench::new(tools, width, Some(bug), seed));
        let result = catch_unwind(AssertUnwindSafe(|| scenario(tools, width, Some(bug), seed)));
        let found = if result.is_err() {
            "found"
        } else {
            "NOT FOUND"
        };
        println!("| {bug} | W = {width} | {test} | {found} |");
        if result.is_ok() {
            unfound.push(bug);
        }
    }
    assert_eq!(unfound, [""; 0]);
}
