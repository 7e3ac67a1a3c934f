//! The congestion window: how many requests may be in flight to one server. Further requests are
//! queued.
//!
//! Replies that arrive faster than the client reads them overflow the kernel's receive buffer, and
//! each lost reply costs a timeout. How many replies the buffer holds depends on the system and on
//! the sizes of the values. The window therefore adapts as TCP's does (RFC 5681): it doubles until
//! a request is lost, is then halved, and grows linearly afterwards. A loss is noticed only when
//! the request's first timeout expires, many round trips later. The window therefore grows once per
//! two such timeouts.

use crate::Settings;

/// Requests in flight at the start. Their replies fill the receive buffer that the kernel usually
/// grants without privileges, if each reply fills a datagram.
const WINDOW_FIRST: usize = 256;
/// The window never becomes smaller, however many requests are lost.
const WINDOW_MIN: usize = 16;
/// The window never becomes larger: a longer queue does not make one server faster.
const WINDOW_MAX: usize = 8192;
/// Requests by which the window grows after the first loss.
const WINDOW_STEP: usize = 16;

/// The congestion window of one server. Times are in microseconds.
#[derive(Debug)]
pub struct CongestionWindow {
    window: usize,
    /// The window doubles up to this size (TCP's slow start threshold).
    quick_until: usize,
    /// When the window last changed, and when it was last halved.
    changed_us: u64,
    halved_us: u64,
    /// A request's first timeout.
    wait_us: u64,
}

impl CongestionWindow {
    /// A window with no losses so far. Without retransmissions the caller wants to count losses
    /// rather than avoid them, so the window is unlimited.
    pub fn new(settings: &Settings) -> CongestionWindow {
        CongestionWindow {
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

    /// Whether another request may be sent while this many are in flight.
    #[inline]
    pub fn has_room(&self, under_way: usize) -> bool {
        under_way < self.window
    }

    /// Requests are queued: enlarges the window if it is time.
    pub fn grow(&mut self, now_us: u64) {
        if !self.has_passed(self.wait_us.saturating_mul(2), self.changed_us, now_us) {
            return;
        }
        let quick = (self.window * 2).min(self.quick_until);
        let slow = (self.window + WINDOW_STEP).min(WINDOW_MAX);
        self.window = quick.max(slow);
        self.changed_us = now_us;
    }

    /// A request timed out: halves the window. Losses within one timeout count once.
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
        let mut congestion = CongestionWindow::new(&settings(true));
        assert!(congestion.has_room(WINDOW_FIRST - 1) && !congestion.has_room(WINDOW_FIRST));
        for (now_us, window) in [(199, 256), (200, 512), (399, 512), (410, 1024)] {
            congestion.grow(now_us);
            assert_eq!(congestion.window, window);
        }
        for (now_us, window) in [(420, 512), (421, 512), (519, 512), (520, 256)] {
            congestion.lose(now_us);
            assert_eq!(congestion.window, window);
        }
        for (now_us, window) in [(719, 256), (720, 256 + 16), (920, 256 + 32)] {
            congestion.grow(now_us);
            assert_eq!(congestion.window, window);
        }
    }

    #[test]
    fn it_has_its_bounds() {
        let mut congestion = CongestionWindow::new(&settings(true));
        (1..100).for_each(|wait| congestion.grow(wait * 200));
        assert_eq!(congestion.window, WINDOW_MAX);
        (100..200).for_each(|wait| congestion.lose(wait * 200));
        assert_eq!(congestion.window, WINDOW_MIN);
        (200..1_000).for_each(|wait| congestion.grow(wait * 200));
        assert_eq!(congestion.window, WINDOW_MAX);
        let mut congestion = CongestionWindow::new(&settings(false));
        congestion.lose(1_000_000);
        assert!(congestion.has_room(1 << 40));
    }
}
