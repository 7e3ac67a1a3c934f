//! A lower bound on the time at which the next item expires. No search finds an expired item before
//! that.

use glimmer_base::{Expiry, Moment};

const NEVER_MS: u64 = u64::MAX;

/// A bound that stores and touches lower, and that every whole round of the scan makes exact again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Soonest {
    /// No item expires before this many milliseconds after the epoch.
    bound_ms: u64,
    /// The same of the items that this round has met, and of those that came after it had begun.
    round_ms: u64,
    /// The round has met every item.
    is_whole: bool,
}

impl Default for Soonest {
    /// Of a partition that is empty.
    fn default() -> Self {
        Soonest {
            bound_ms: NEVER_MS,
            round_ms: NEVER_MS,
            is_whole: false,
        }
    }
}

impl Soonest {
    /// An item was given this expiry.
    #[inline(always)]
    pub fn note(&mut self, expiry: Expiry) {
        if expiry != Expiry::NEVER {
            self.bound_ms = self.bound_ms.min(expiry.ms());
            self.round_ms = self.round_ms.min(expiry.ms());
        }
    }

    /// The scan has met an item that expires then.
    #[inline(always)]
    pub fn meet(&mut self, expiry: Expiry) {
        if expiry != Expiry::NEVER {
            self.round_ms = self.round_ms.min(expiry.ms());
        }
    }

    /// A round ends and the next begins.
    pub fn begin_round(&mut self) {
        if self.is_whole {
            self.bound_ms = self.round_ms;
        }
        self.round_ms = NEVER_MS;
        self.is_whole = true;
    }

    /// Items have gone where this round has been already.
    pub fn spoil_round(&mut self) {
        self.is_whole = false;
    }

    /// Whether some item may have expired.
    #[inline(always)]
    pub fn may_be_due(&self, now: Moment) -> bool {
        self.bound_ms <= now.ms
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment {
            ms,
            epoch_unix_ms: 0,
        }
    }

    #[test]
    fn the_bound_is_exact_after_a_whole_round() {
        let mut soonest = Soonest::default();
        assert!(!soonest.may_be_due(at(NEVER_MS - 1)));
        soonest.begin_round();
        soonest.note(Expiry::NEVER);
        soonest.note(Expiry::at_ms(500));
        soonest.note(Expiry::at_ms(900));
        assert!(!soonest.may_be_due(at(499)) && soonest.may_be_due(at(500)));
        // The first of them is deleted: one round that began before, and one that did not.
        soonest.begin_round();
        assert!(soonest.may_be_due(at(500)));
        soonest.meet(Expiry::at_ms(900));
        soonest.begin_round();
        assert!(!soonest.may_be_due(at(899)) && soonest.may_be_due(at(900)));
    }

    #[test]
    fn a_round_that_may_have_missed_items_says_nothing() {
        let mut soonest = Soonest::default();
        soonest.note(Expiry::at_ms(500));
        soonest.begin_round();
        soonest.spoil_round();
        soonest.begin_round();
        assert!(soonest.may_be_due(at(500)));
        soonest.begin_round();
        assert!(!soonest.may_be_due(at(NEVER_MS - 1)));
    }
}
