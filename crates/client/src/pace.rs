//! How many requests may be under way at once; the others wait for their turn.
//!
//! Replies that arrive faster than they are taken in overflow the kernel's buffer, and each that is lost costs a wait. How much the buffer holds depends
//! on the system and on the values. So the window is found as TCP finds its own (RFC 5681): it doubles until something is lost, is halved then, and grows
//! slowly from there on. What is lost is noticed when its first wait is over, many round trips later: so it grows once in the time of two such waits.

use crate::Settings;

/// Requests under way at the beginning: with replies that fill their datagrams, what the kernel's buffer usually holds where it may not be made larger.
const WINDOW_FIRST: usize = 256;
/// As many may be under way however much is lost,
const WINDOW_MIN: usize = 16;
/// and as many at most: no longer queue makes one server faster.
const WINDOW_MAX: usize = 8192;
/// By so many the window grows once something was lost.
const WINDOW_STEP: usize = 16;

/// The window of one server. Times are in microseconds.
#[derive(Debug)]
pub struct Pace {
    window: usize,
    /// Up to here it doubles.
    quick_until: usize,
    /// When it changed last, and when it was halved last.
    changed_us: u64,
    halved_us: u64,
    /// A request's first wait.
    wait_us: u64,
}

impl Pace {
    /// Nothing has been lost. Where nothing is sent again, losses are to be counted and not avoided: there is no window.
    pub fn new(settings: &Settings) -> Pace {
        Pace {
            window: match settings.resends {
                true => WINDOW_FIRST,
                false => usize::MAX,
            },
            quick_until: WINDOW_MAX,
            changed_us: 0,
            halved_us: 0,
            wait_us: settings.resend_first_us,
        }
    }

    /// Whether another request may be sent while so many are under way.
    #[inline]
    pub fn has_room(&self, under_way: usize) -> bool {
        under_way < self.window
    }

    /// Requests wait for their turn.
    pub fn grow(&mut self, now_us: u64) {
        if !self.has_passed(self.wait_us.saturating_mul(2), self.changed_us, now_us) {
            return;
        }
        let quick = (self.window * 2).min(self.quick_until);
        let slow = (self.window + WINDOW_STEP).min(WINDOW_MAX);
        self.window = quick.max(slow);
        self.changed_us = now_us;
    }

    /// A request has waited in vain. What is lost together counts once.
    pub fn lose(&mut self, now_us: u64) {
        if !self.has_passed(self.wait_us, self.halved_us, now_us) {
            return;
        }
        self.window = (self.window / 2).max(WINDOW_MIN);
        self.quick_until = self.window;
        (self.changed_us, self.halved_us) = (now_us, now_us);
    }

    fn has_passed(&self, us: u64, then_us: u64, now_us: u64) -> bool {
        self.window <= WINDOW_MAX && now_us.saturating_sub(then_us) >= us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(resends: bool) -> Settings {
        Settings {
            resend_first_us: 100,
            resends,
            ..Settings::default()
        }
    }

    #[test]
    fn it_doubles_until_something_is_lost_and_grows_slowly_afterwards() {
        let mut pace = Pace::new(&settings(true));
        assert!(pace.has_room(WINDOW_FIRST - 1) && !pace.has_room(WINDOW_FIRST));
        for (now_us, window) in [(199, 256), (200, 512), (399, 512), (410, 1024)] {
            pace.grow(now_us);
            assert_eq!(pace.window, window);
        }
        for (now_us, window) in [(420, 512), (421, 512), (519, 512), (520, 256)] {
            pace.lose(now_us);
            assert_eq!(pace.window, window);
        }
        for (now_us, window) in [(719, 256), (720, 256 + 16), (920, 256 + 32)] {
            pace.grow(now_us);
            assert_eq!(pace.window, window);
        }
    }

    #[test]
    fn it_has_its_bounds() {
        let mut pace = Pace::new(&settings(true));
        (1..100).for_each(|wait| pace.grow(wait * 200));
        assert_eq!(pace.window, WINDOW_MAX);
        (100..200).for_each(|wait| pace.lose(wait * 200));
        assert_eq!(pace.window, WINDOW_MIN);
        (200..1_000).for_each(|wait| pace.grow(wait * 200));
        assert_eq!(pace.window, WINDOW_MAX);
        let mut pace = Pace::new(&settings(false));
        pace.lose(1_000_000);
        assert!(pace.has_room(1 << 40));
    }
}
