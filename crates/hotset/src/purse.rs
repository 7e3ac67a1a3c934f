//! A purse: the time that a key's hits have saved, less the time that its changes have cost.
//!
//! Hits add what they save, and every change and every fill is paid from the purse, at the measured
//! [prices](crate::prices). A change that the purse cannot pay is not carried out in the
//! slot: the key leaves, and takes along what is left.
//!
//! A purse bounds the loss and not the number of changes in a row. All that a key costs it has
//! saved before, or it was lent: [`Purse::START_CHANGES`] to a key that nobody knows, and a
//! [sixteenth](LENT) of what reads would have saved to one that is out. A key that saves more than
//! it costs fills its purse, however its changes lie: a purse holds
//! [`HOT_PURSE_CHANGES_MAX`] changes. One that saves a
//! little less runs out slowly and comes back soon, so that the share of its reads that are
//! answered falls with what it saves, without a step.
//!
//! A body may report hits late. Then a purse runs out although there were hits, and the key comes
//! back by what is lent. When the hits are reported, its purse is as full as it would have been.
//! What is reported while the key is out counts when it comes back, unless another key had the
//! slot.

use crate::prices::Prices;
use glimmer_base::Keyhash;
use glimmer_base::limits::HOT_PURSE_CHANGES_MAX;

/// A read of a key that is out lends it one part of this many of what a hit would have saved. So
/// the accelerator costs at most that part of what such reads cost anyway.
pub const LENT: u64 = 16;

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purse {
    /// Whose it is: the key that is or was last in the slot.
    owner: Option<Keyhash>,
    has_ns: u64,
    /// The slot's hits when they were last counted into the purse.
    hits: u64,
}

impl Purse {
    /// The changes that a key can pay of which nothing is known.
    pub const START_CHANGES: u64 = 3;

    /// What a key has of which nothing is known, before it is brought in.
    pub fn start_ns(prices: Prices) -> u64 {
        (Purse::START_CHANGES + 1) * prices.change_ns()
    }

    /// A key that has this much is brought into the slot, which has had this many hits so far.
    pub fn begin(&mut self, owner: Keyhash, has_ns: u64, hits: u64, prices: Prices) {
        let is_back = self.owner == Some(owner);
        *self = Purse {
            owner: Some(owner),
            has_ns: has_ns.saturating_sub(prices.change_ns()),
            hits: if is_back { self.hits } else { hits },
        };
    }

    /// The key's item has changed.
    ///
    /// # Errors
    ///
    /// What the key has left, if that is too little.
    pub fn pay(&mut self, hits: u64, prices: Prices) -> Result<(), u64> {
        let gained = hits.wrapping_sub(self.hits);
        self.hits = hits;
        let most_ns = HOT_PURSE_CHANGES_MAX.saturating_mul(prices.change_ns());
        let gained_ns = gained.saturating_mul(prices.hit_ns());
        self.has_ns = self.has_ns.saturating_add(gained_ns).min(most_ns);
        let left_ns = self.has_ns.checked_sub(prices.change_ns());
        self.has_ns = left_ns.ok_or(self.has_ns)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hit pays two changes.
    fn prices() -> Prices {
        Prices::new(50, 100)
    }

    fn purse(hits: u64) -> Purse {
        let mut purse = Purse::default();
        purse.begin(Keyhash(1), Purse::start_ns(prices()), hits, prices());
        purse
    }

    #[test]
    fn late_hits_are_those_of_the_key_that_had_them() {
        let mut late = purse(100);
        assert!((0..4).any(|_| late.pay(100, prices()).is_err()));
        for (key, changes) in [(1, 10), (2, 0)] {
            let mut purse = late;
            purse.begin(Keyhash(key), 50, 105, prices());
            let paid = (0..100).take_while(|_| purse.pay(105, prices()).is_ok());
            assert_eq!(paid.count(), changes);
        }
    }

    #[test]
    fn the_fourth_change_without_a_hit_is_one_too_many() {
        let mut purse = purse(100);
        let paid = [(); 4].map(|()| purse.pay(100, prices()));
        assert_eq!(paid, [Ok(()), Ok(()), Ok(()), Err(0)]);
    }

    #[test]
    fn a_key_whose_hits_save_what_changes_cost_stays() {
        let mut paid = purse(0);
        assert!((1..1000).all(|change| paid.pay(change / 2, prices()).is_ok()));
        let mut paid = purse(0);
        assert!((1..1000).any(|change| paid.pay(change / 3, prices()).is_err()));
    }

    #[test]
    fn a_burst_is_paid_by_what_was_saved_before_it() {
        let mut purse = purse(0);
        for burst in 1..=10 {
            for _ in 0..1000 {
                assert_eq!(purse.pay(burst * 600, prices()), Ok(()));
            }
        }
    }

    #[test]
    fn a_purse_is_bounded() {
        let mut purse = purse(0);
        assert_eq!(purse.pay(u64::MAX / 2, prices()), Ok(()));
        let paid = (0..).take_while(|_| purse.pay(u64::MAX / 2, prices()).is_ok());
        assert_eq!(paid.count() as u64, HOT_PURSE_CHANGES_MAX - 1);
    }
}
