//! Decides whether a worker that has nothing to do polls for some turns before it sleeps.
//!
//! A client that is sent a large reply reads it, and asks again. That takes less time than the
//! worker needs to fall asleep and to wake up, and the client has to wake it. If the client sleeps
//! as well until the reply is there, both are asleep for most of the time. So a worker that was
//! woken soon after large requests takes some idle turns before it sleeps the next time. It takes
//! none after a long sleep, and so it spends little on clients that do not ask again soon.

use glimmer_base::limits::{AWAKE_IDLE_TURNS_MAX, SHORT_SLEEP_NS};

use crate::clock::Clock;

/// How long a worker has slept after large requests.
#[derive(Debug, Default)]
pub(super) struct Naps {
    /// It has served large requests since it slept.
    has_large: bool,
    /// When it fell asleep after those, in nanoseconds.
    since_ns: Option<u64>,
    /// The last such sleep was short.
    was_short: bool,
}

impl Naps {
    /// It has served large requests. Returns how many idle turns it may take before it sleeps.
    #[inline]
    pub fn note_large(&mut self) -> u32 {
        self.has_large = true;
        match self.was_short {
            true => AWAKE_IDLE_TURNS_MAX,
            false => 0,
        }
    }

    /// It falls asleep.
    #[inline]
    pub fn begin(&mut self, clock: &dyn Clock) {
        if std::mem::take(&mut self.has_large) {
            self.since_ns = Some(clock.ns());
        }
    }

    /// It is awake.
    #[inline]
    pub fn end(&mut self, clock: &dyn Clock) {
        if let Some(since_ns) = self.since_ns.take() {
            self.was_short = clock.ns() - since_ns <= SHORT_SLEEP_NS;
        }
    }
}
