//! The traffic manager in simulation.

mod bench;
mod cycles;
mod directed;
#[path = "../../../hotset/tests/support/frames.rs"]
mod frames;
mod item;
mod lookups;
mod oracle;
mod planted;
mod rooms;
mod streams;
mod twin;

use glimmer_accel_rtl::random::each_seed;
use glimmer_accel_rtl::tools::Tools;

/// What is tried: tools, width, planted bug, seed.
type Scenario = fn(&Tools, usize, Option<&'static str>, u64);

/// A scenario in both widths, with each seed.
fn both_widths(scenario: Scenario) {
    if let Some(tools) = Tools::for_test() {
        each_seed(&[], |seed| {
            scenario(&tools, 1, None, seed);
            scenario(&tools, 8, None, seed);
        });
    }
}
