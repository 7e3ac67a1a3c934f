//! Planted bugs: each has to be found by the test beside it.

use super::{receive, transmit};
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::tops::{DMA_RX, DMA_TX, Top};
use glimmer_accel_rtl::verilate::Variant;
use rand::rngs::SmallRng;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Scenario = fn(&Tools, usize, Option<&'static str>, &mut SmallRng);

/// The bug's macro, its top, the width, and the test that has to fail.
const PLANTED: &[(&str, Top, usize, Scenario)] = &[
    ("BUG_DMA_RX_NO_PAD", DMA_RX, 1, receive::all_lengths),
    ("BUG_DMA_RX_TAIL_LOST", DMA_RX, 8, receive::all_lengths),
    ("BUG_DMA_RX_BUFFER_OVERRUN", DMA_RX, 8, receive::all_lengths),
    ("BUG_DMA_RX_COUNT_EARLY", DMA_RX, 8, receive::random),
    ("BUG_DMA_RX_IRQ_LOST", DMA_RX, 8, receive::short_ones),
    (
        "BUG_DMA_RX_RING_OVERFLOW",
        DMA_RX,
        8,
        receive::full_and_empty,
    ),
    ("BUG_DMA_RX_NO_BUFFER", DMA_RX, 8, receive::full_and_empty),
    ("BUG_DMA_TX_ALIGNED_ONLY", DMA_TX, 8, transmit::all_lengths),
    ("BUG_DMA_TX_IRQ_LOST", DMA_TX, 8, transmit::short_ones),
    (
        "BUG_DMA_TX_QUEUE_OVERFLOW",
        DMA_TX,
        1,
        transmit::full_and_empty,
    ),
    (
        "BUG_DMA_TX_RING_OVERFLOW",
        DMA_TX,
        8,
        transmit::full_and_empty,
    ),
    ("BUG_DMA_TX_AHEAD_OF_POST", DMA_TX, 8, transmit::all_lengths),
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
    for &(bug, top, width, scenario) in PLANTED {
        // The circuit must be built: a bug that does not compile is not found.
        let lines = if width == 1 { 2 } else { 8 };
        let mut variant = Variant::new(top).with("W", width as u64).with_bug(bug);
        if top == DMA_TX {
            variant = variant.with("QUEUE_LINES", lines);
        }
        variant.build(tools);
        let mut rng = from_seed(seed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            scenario(tools, width, Some(bug), &mut rng);
        }));
        if result.is_ok() {
            unfound.push(bug);
        }
    }
    assert_eq!(unfound, [""; 0]);
}
