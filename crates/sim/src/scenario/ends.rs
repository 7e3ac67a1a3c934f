//! Memory files and the ends of processes, from a seed.

use super::{End, Ending, Scenario};
use rand::Rng;
use rand::rngs::SmallRng;

/// How often a server's memory lies in a file.
const IN_FILES: f64 = 0.25;
/// How often its process ends then, at most.
const ENDS_MAX: usize = 4;
/// How often it is killed, and not stopped.
const KILLS: f64 = 0.75;
/// The largest number of steps between a call and an end: enough for a large value to arrive.
const STEPS_MAX: u64 = 200;
/// How often a process is killed in the midst of a turn.
const IN_TURNS: f64 = 0.7;
/// Points in turns that it comes to before, at most. A change of an item is a few of them.
const POINTS_MAX: usize = 100;
/// Until the next process serves, in microseconds, at most.
const DOWN_US_MAX: u64 = 100_000;

/// Draws whether the memory lies in a file, and when processes end.
pub fn draw(rng: &mut SmallRng, scenario: &mut Scenario) {
    if !rng.random_bool(IN_FILES) {
        return;
    }
    scenario.server.in_memory_file = true;
    let clients = scenario.clients.iter();
    let calls: usize = clients.map(|client| client.operations.len()).sum();
    let ends = (0..rng.random_range(1..=ENDS_MAX)).map(|_| End {
        how: match rng.random_bool(KILLS) {
            true => Ending::Killed,
            false => Ending::Stopped,
        },
        calls: rng.random_range(0..=calls),
        steps: rng.random_range(0..STEPS_MAX),
        points: match rng.random_bool(IN_TURNS) {
            true => rng.random_range(1..=POINTS_MAX),
            false => 0,
        },
        down_us: rng.random_range(0..DOWN_US_MAX),
    });
    scenario.ends = ends.collect();
    scenario.ends.sort_by_key(|end| end.calls);
}
