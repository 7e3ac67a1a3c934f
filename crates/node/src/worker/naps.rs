//! Decides whether a worker that has nothing to do polls for some turns before it sleeps.
//!
//! A client that is sent a large reply reads it, and asks again. That takes less time than the
//! worker needs to fall asleep and to wake up, and the client has to wake it. If the client sleeps
//! as well until the reply is there, both are asleep for most of the time. So a worker that was
//! woken soon after large requests takes some idle turns before it sleeps the next time. It takes
//! none after a long sleep, and so it spends little on clients that do not ask again soon. Nor does
//! it on those that ask a little later than it polls: after idle turns that have been in vain twice
//! it sleeps at once, the first time once, then twice, and so on up to a limit.

use glimmer_base::limits::{AWAKE_IDLE_TURNS_MAX, SHORT_SLEEP_NS, SLEEPS_AT_ONCE_MAX};

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
    /// It has taken idle turns since it served large requests.
    has_idled: bool,
    /// Sleeps before which it takes no idle turns.
    at_once: u32,
    /// How often it has slept at once after the last idle turns in vain; none if there were none
    /// since idle turns that were not.
    lesson: Option<u32>,
}

impl Naps {
    /// It has served large requests. Returns how many idle turns it may take before it sleeps.
    #[inline]
    pub fn note_large(&mut self) -> u32 {
        if std::mem::take(&mut self.has_idled) {
            self.lesson = None;
        }
        self.has_large = true;
        match self.was_short && self.at_once == 0 {
            true => AWAKE_IDLE_TURNS_MAX,
            false => 0,
        }
    }

    /// It takes an idle turn.
    #[inline]
    pub fn idle(&mut self) {
        self.has_idled = self.has_large;
    }

    /// It falls asleep.
    #[inline]
    pub fn begin(&mut self, clock: &dyn Clock) {
        if !std::mem::take(&mut self.has_large) {
            return;
        }
        if std::mem::take(&mut self.has_idled) {
            self.at_once = match self.lesson {
                None => 0,
                Some(lesson) => (2 * lesson).clamp(1, SLEEPS_AT_ONCE_MAX),
            };
            self.lesson = Some(self.at_once);
        } else {
            self.at_once = self.at_once.saturating_sub(1);
        }
        self.since_ns = Some(clock.ns());
    }

    /// It is awake.
    #[inline]
    pub fn end(&mut self, clock: &dyn Clock) {
        if let Some(since_ns) = self.since_ns.take() {
            self.was_short = clock.ns() - since_ns <= SHORT_SLEEP_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Moment;

    /// A clock that stands.
    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Moment {
            Moment {
                ms: 0,
                epoch_unix_ms: 0,
            }
        }

        fn unix_us(&self) -> u128 {
            0
        }
    }

    /// Serves a large request, takes the idle turns that are due, and sleeps shortly; returns
    /// whether there were any.
    fn serve_and_sleep(naps: &mut Naps, clock: &Still) -> bool {
        let idles = naps.note_large() > 0;
        if idles {
            naps.idle();
        }
        naps.begin(clock);
        naps.end(clock);
        idles
    }

    #[test]
    fn it_polls_seldom_in_vain_and_again_when_that_is_worth_it() {
        let (mut naps, clock) = (Naps::default(), Still);
        assert!(
            !serve_and_sleep(&mut naps, &clock),
            "it has not slept shortly"
        );
        let polled: Vec<bool> = (0..1000)
            .map(|_| serve_and_sleep(&mut naps, &clock))
            .collect();
        let count = polled.iter().filter(|polled| **polled).count();
        assert!((10..30).contains(&count), "{count}");
        let last = polled.iter().rposition(|polled| *polled).unwrap();
        assert!(last > 1000 - 2 * SLEEPS_AT_ONCE_MAX as usize);
        // A request that comes while it polls.
        while naps.note_large() == 0 {
            naps.begin(&clock);
            naps.end(&clock);
        }
        naps.idle();
        assert!(naps.note_large() > 0);
        // It has learnt nothing from the first time in vain after that.
        let polled: Vec<bool> = (0..7).map(|_| serve_and_sleep(&mut naps, &clock)).collect();
        assert_eq!(polled, [true, true, false, true, false, false, true]);
    }
}
