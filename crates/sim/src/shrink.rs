//! The smallest scenario that still fails.
//!
//! Fewer clients, fewer operations, fewer faults: each attempt leaves something out, and is kept if
//! the scenario still fails. It ends when nothing more can be left out, or at a limit.

use crate::scenario::Scenario;
use crate::world::Report;
use glimmer_transport::packet::Faults;
use glimmer_transport::stream::StreamFaults;
use std::time::{Duration, Instant};

/// Makes a scenario that fails smaller, with new runs for this long at most. Returns it with its
/// report.
pub fn shrink(
    scenario: Scenario,
    report: Report,
    limit: Duration,
    mut run: impl FnMut(&Scenario) -> Report,
) -> (Scenario, Report) {
    let mut smallest = (scenario, report);
    let begun = Instant::now();
    loop {
        let mut has_shrunk = false;
        for attempt in attempts(&smallest.0) {
            if begun.elapsed() > limit {
                return smallest;
            }
            let report = run(&attempt);
            if report.failure.is_some() {
                smallest = (attempt, report);
                has_shrunk = true;
                break;
            }
        }
        if !has_shrunk {
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
    if !scenario.switches.is_empty() {
        attempt(&|smaller| smaller.switches.clear());
    }
    for (index, end) in scenario.ends.iter().enumerate() {
        attempt(&|smaller| _ = smaller.ends.remove(index));
        if end.calls > 0 {
            attempt(&|smaller| smaller.ends[index].calls /= 2);
            attempt(&|smaller| smaller.ends[index].calls -= 1);
        }
        if end.steps > 0 {
            attempt(&|smaller| smaller.ends[index].steps /= 2);
        }
        if end.points > 0 {
            attempt(&|smaller| smaller.ends[index].points = 0);
            attempt(&|smaller| smaller.ends[index].points -= 1);
        }
        if end.down_us > 0 {
            attempt(&|smaller| smaller.ends[index].down_us = 0);
        }
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
        if client.is_encrypted {
            attempt(&|smaller| smaller.clients[index].is_encrypted = false);
        }
        if client.is_quiet {
            attempt(&|smaller| smaller.clients[index].is_quiet = false);
        }
        if !client.calm.is_empty() {
            attempt(&|smaller| smaller.clients[index].calm.clear());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Operation;
    use crate::world::Failure;

    /// A run that fails if some client counts, and another one reads.
    fn report(scenario: &Scenario) -> Report {
        let operations = |client: &crate::scenario::ClientPlan| client.operations.clone();
        let asks = |is_asked: fn(&Operation) -> bool| {
            let clients = scenario.clients.iter().enumerate();
            let asking = clients.filter(|(_, client)| {
                (operations(client).iter()).any(|(_, operation)| is_asked(operation))
            });
            asking.map(|(number, _)| number).collect::<Vec<_>>()
        };
        let counting = asks(|one| matches!(one, Operation::Increment(..) | Operation::Count(..)));
        let reading = asks(|one| matches!(one, Operation::Get(_)));
        let is_wrong = (counting.iter()).any(|one| reading.iter().any(|other| one != other));
        Report {
            failure: is_wrong.then(|| Failure {
                what: "it was wrong".into(),
                key: None,
            }),
            trace: 0,
            steps: 0,
            calls: Vec::new(),
            undecided: 0,
            evicted: 0,
            hits: 0,
            kills: 0,
            kills_in_turns: 0,
            stops: 0,
            lost: 0,
        }
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        for seed in 1..20 {
            let scenario = Scenario::from_seed(seed);
            let first = report(&scenario);
            assert!(
                first.failure.is_some(),
                "seed {seed}: every scenario has both"
            );
            let (smallest, last) = shrink(scenario, first, Duration::MAX, report);
            assert!(last.failure.is_some());
            assert_eq!((smallest.clients.len(), smallest.operations()), (2, 2));
            assert!(smallest.stalls.is_empty() && smallest.clock_steps.is_empty());
            assert!(smallest.ends.is_empty());
        }
    }
}
