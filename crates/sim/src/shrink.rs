//! The smallest scenario that still fails.
//!
//! Fewer clients, fewer operations, fewer faults: each attempt leaves something out, and is kept if
//! the scenario still fails. It ends when nothing more can be left out, or after a number of runs.

use crate::scenario::Scenario;
use crate::world::{Report, run};
use glimmer_transport::packet::Faults;
use glimmer_transport::stream::StreamFaults;

/// Makes a scenario that fails smaller, with this many runs at most. Returns it with its report.
pub fn shrink(scenario: Scenario, report: Report, runs_max: usize) -> (Scenario, Report) {
    let mut smallest = (scenario, report);
    let mut runs = 0;
    loop {
        let before = runs;
        let mut has_shrunk = false;
        for attempt in attempts(&smallest.0) {
            if runs == runs_max {
                return smallest;
            }
            runs += 1;
            let report = run(&attempt);
            if report.failure.is_some() {
                smallest = (attempt, report);
                has_shrunk = true;
                break;
            }
        }
        if !has_shrunk || runs == before {
            return smallest;
        }
    }
}

/// Scenarios with something left out, the largest cuts first.
fn attempts(scenario: &Scenario) -> Vec<Scenario> {
    let mut attempts = Vec::new();
    let mut attempt = |change: &dyn Fn(&mut Scenario)| {
        let mut smaller = scenario.clone();
        change(&mut smaller);
        attempts.push(smaller);
    };
    for client in 0..scenario.clients.len() {
        attempt(&|smaller| _ = smaller.clients.remove(client));
    }
    if !scenario.stalls.is_empty() {
        attempt(&|smaller| smaller.stalls.clear());
    }
    if !scenario.clock_steps.is_empty() {
        attempt(&|smaller| smaller.clock_steps.clear());
    }
    for (index, client) in scenario.clients.iter().enumerate() {
        if client.stream != StreamFaults::default() {
            attempt(&|smaller| smaller.clients[index].stream = StreamFaults::default());
        }
        if client.packets != Faults::default() {
            attempt(&|smaller| smaller.clients[index].packets = Faults::default());
        }
        if client.read_pause_us > 0 {
            attempt(&|smaller| smaller.clients[index].read_pause_us = 0);
        }
        if client.pipeline > 1 {
            attempt(&|smaller| smaller.clients[index].pipeline = 1);
        }
    }
    // Halves of each client's operations, then quarters, and in the end each operation alone.
    for (index, client) in scenario.clients.iter().enumerate() {
        let count = client.operations.len();
        let mut part = count.div_ceil(2);
        while part > 0 {
            for from in (0..count).step_by(part) {
                let range = from..count.min(from + part);
                attempt(&|smaller| _ = smaller.clients[index].operations.drain(range.clone()));
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
    }
    attempts
}
