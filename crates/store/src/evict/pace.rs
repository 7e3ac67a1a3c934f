//! A bound on how many used items CLOCK spares for each word that is stored.
//!
//! A rule of the CLOCK kind spares every item that was used since the head last passed it. If all
//! were, but for the newest, the head would go past them at once, come to the newest, which have
//! had no time to be used, and take those. An item is not to be judged before it has had its time
//! in the log.
//!
//! So the head spares a bounded number of words for each word that is stored: one in the first lap,
//! and in each other lap [`FASTER`] times as many as in the lap before it, if that is more than
//! one. When they are spent, the oldest item goes although it was used.
//!
//! With one word for each, the head is through a log of n words after n / 2 words were stored. No
//! item is judged before that, and from then on the log has as many items that were spared as new
//! ones, everywhere. If those that were spared are not used again, one in two that the head comes
//! to is free to go, and the head keeps that pace by itself. If most of them are used again, the
//! head has the pace that this takes a few laps later: a rule that spares 4 of 5 items spares four
//! words for each that is stored.

/// How much faster than in the last lap the head may go.
const FASTER: u64 = 3;
/// What was not spared when it could be is not made up for later, but for this part (1 / n) of a
/// lap: else the head would run ahead where it comes to items that were used after others that were
/// not.
const ARREARS_PART: u64 = 64;

/// The pace of a log's head in a lap of its tail.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Words that may be spared for each word that is stored.
    spared_per_stored: u64,
    /// Words that were spared in this lap.
    spared: u64,
    /// The same, and those that can no longer be spared as they were not in time.
    spent: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            spared_per_stored: 1,
            spared: 0,
            spent: 0,
        }
    }
}

impl Pace {
    /// Whether an item that was used may be spared, when `appended` words have been put at the tail
    /// in this lap of `lap_words` words, stored ones and spared ones.
    pub fn allows(&mut self, appended: u64, lap_words: u64) -> bool {
        let ratio = self.spared_per_stored;
        let most = (u128::from(appended) * u128::from(ratio) / u128::from(ratio + 1)) as u64;
        self.spent = (self.spent).max(most.saturating_sub(lap_words / ARREARS_PART));
        self.spent <= most
    }

    /// An item was spared.
    pub fn spare(&mut self, words: u64) {
        self.spared += words;
        self.spent += words;
    }

    /// A lap has ended in which `appended` words were put at the tail.
    pub fn end_lap(&mut self, appended: u64) {
        let stored = appended.saturating_sub(self.spared).max(1);
        *self = Pace {
            spared_per_stored: (FASTER * self.spared / stored).max(1),
            ..Pace::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spares what it may while `stored` words are stored one at a time. Returns the words spared.
    fn lap(pace: &mut Pace, stored: u64, is_used: impl Fn(u64) -> bool) -> u64 {
        let (mut appended, mut spared) = (0, 0);
        for number in 0..stored {
            while is_used(number) && appended < 10 * stored && pace.allows(appended, stored) {
                pace.spare(1);
                appended += 1;
                spared += 1;
            }
            appended += 1;
        }
        pace.end_lap(appended);
        spared
    }

    #[test]
    fn it_begins_with_as_much_as_is_stored_and_grows_by_a_factor() {
        let mut pace = Pace::default();
        assert!((990..=1_010).contains(&lap(&mut pace, 1_000, |_| true)));
        assert!((2_950..=3_050).contains(&lap(&mut pace, 1_000, |_| true)));
        lap(&mut pace, 1_000, |_| false);
        assert!((990..=1_010).contains(&lap(&mut pace, 1_000, |_| true)));
    }

    #[test]
    fn what_was_not_spared_is_not_made_up_for() {
        let mut pace = Pace::default();
        let spared = lap(&mut pace, 1_000, |number| number >= 500);
        assert!((500..=600).contains(&spared), "{spared}");
    }
}
