//! Memory that has several requests under way and answers them in order.

use super::Pace;
use glimmer_accel_rtl::memory::Line;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// Requests on their way, each with the cycle of its answer.
#[derive(Debug, Default)]
pub struct OnTheWay(VecDeque<(u64, u64, Line)>);

impl OnTheWay {
    /// Takes a request in this cycle.
    pub fn take(&mut self, rng: &mut SmallRng, pace: &Pace, cycle: u64, address: u64, data: Line) {
        let due = cycle + rng.random_range(pace.latency.clone());
        self.0.push_back((due, address, data));
    }

    /// The answer that is due, by address.
    pub fn due(&self, cycle: u64) -> Option<(u64, Line)> {
        let &(due, address, data) = self.0.front()?;
        (due <= cycle).then_some((address, data))
    }

    /// The answer was taken.
    pub fn answered(&mut self) {
        self.0.pop_front();
    }
}
