//! Whether the items of the main log that have proved themselves leave new ones enough of it.
//!
//! A [`Setting`](super::Setting) may have new items enter the main log at once, where they have a
//! lap's time to be used. What was used stays, and loses a use with each lap, so that it leaves
//! when it is used no more. But as long as new items have more than enough room there, nothing has
//! to leave for them, and to forget who was used makes room for items that are used less. So uses
//! are lost only while new items take less than their part of the log. (A segmented LRU bounds what
//! is protected in the same way: Karedla, Love, Wherry: Caching strategies to improve disk system
//! performance, IEEE Computer 27(3), 1994.)

/// Of the main log, new items have at least this part.
const NEW_PERCENT: u64 = 30;

/// What new items took in a lap of the main log's tail.
#[derive(Clone, Copy, Debug)]
pub struct Probation {
    /// Words of new items that entered in this lap.
    words: u64,
    /// Whether they were few in the lap before.
    is_short: bool,
}

impl Default for Probation {
    fn default() -> Probation {
        Probation {
            words: 0,
            is_short: true,
        }
    }
}

impl Probation {
    /// A new item enters the main log at once.
    #[inline(always)]
    pub fn enter(&mut self, words: u64) {
        self.words += words;
    }

    /// A lap has ended in which `appended` words were put at the tail.
    pub fn end_lap(&mut self, appended: u64) {
        let percent = u128::from(self.words) * 100;
        *self = Probation {
            words: 0,
            is_short: percent < u128::from(appended) * u128::from(NEW_PERCENT),
        };
    }

    /// Whether an item loses a use when it goes round the log again.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        self.is_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_lost_while_new_items_take_less_than_their_part() {
        let mut probation = Probation::default();
        let mut lap = |entered: &[u64]| {
            entered.iter().for_each(|&words| probation.enter(words));
            probation.end_lap(1_000);
            probation.is_short()
        };
        assert!(lap(&[100, 199]), "new items took 29.9%");
        assert!(!lap(&[100, 200]), "they took 30%");
        assert!(!lap(&[1_000]));
        assert!(lap(&[]), "a lap counts alone");
    }
}
