//! Memory that the partitions of one store share.
//!
//! Keys are spread evenly over the partitions, bytes are not: of a few hundred large values, some
//! partitions get twice as many as others. So each partition has a minimum, and claims more as it
//! fills. Once nothing is left, each one goes round in what it has claimed.
//!
//! From then on the partitions come to equal shares in the course of laps: one that has more than
//! that gives some back when another one has found nothing left.
//!
//! This is a number and no memory. Each partition has mapped addresses for more than it will ever
//! claim, and touches only what it has claimed. No partition reads what another one wrote, so the
//! number synchronises nothing. It is released and acquired only so that memory which a partition
//! gives back has left the process before another one touches as much.

use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::{AcqRel, Acquire, Relaxed};
use glimmer_base::sync::{AtomicBool, AtomicU64};
use std::sync::Arc;

/// See the module's text. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct Commons(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    words: u64,
    partitions: u64,
    /// Words that no partition has claimed.
    left: CachePadded<AtomicU64>,
    /// Whether partitions may have more than equal shares: until one of them finds nothing left.
    is_filling: AtomicBool,
    /// Whether a partition with less than an equal share has found nothing left.
    is_wanted: AtomicBool,
}

/// When at least this part of the memory is free again, as after a flush, partitions fill it as
/// they did at first.
const FREE_PART: u64 = 4;

impl Commons {
    /// `bytes` for `partitions` partitions together.
    ///
    /// # Panics
    ///
    /// Without partitions.
    pub fn new(bytes: usize, partitions: usize) -> Commons {
        assert!(partitions > 0);
        let words = bytes as u64 / 8;
        Commons(Arc::new(Inner {
            words,
            partitions: partitions as u64,
            left: CachePadded::new(AtomicU64::new(words)),
            is_filling: AtomicBool::new(true),
            is_wanted: AtomicBool::new(false),
        }))
    }

    /// Words of all partitions together.
    pub fn words(&self) -> u64 {
        self.0.words
    }

    /// Words that are left to be claimed.
    pub fn left(&self) -> u64 {
        self.0.left.load(Relaxed)
    }

    /// An equal part of what is left.
    pub fn left_each(&self) -> u64 {
        self.left() / self.0.partitions
    }

    /// Claims as many words, or says that not as many are left.
    #[must_use]
    pub fn claim(&self, words: u64) -> bool {
        let claimed = |left: u64| left.checked_sub(words);
        (self.0.left.fetch_update(AcqRel, Acquire, claimed)).is_ok()
    }

    /// Gives back words that were claimed. Their pages have left the process.
    pub fn give_back(&self, words: u64) {
        let before = self.0.left.fetch_add(words, AcqRel);
        debug_assert!(before + words <= self.0.words);
        if (before + words) * FREE_PART >= self.0.words {
            self.0.is_filling.store(true, Relaxed);
        }
    }

    /// Whether partitions may claim more than equal shares.
    pub fn is_filling(&self) -> bool {
        self.0.is_filling.load(Relaxed)
    }

    /// A partition has found too little left. `is_wanted`: it has less than an equal share.
    pub fn note_lack(&self, is_wanted: bool) {
        self.0.is_filling.store(false, Relaxed);
        if is_wanted {
            self.0.is_wanted.store(true, Relaxed);
        }
    }

    /// Whether a partition has lacked memory of an equal share since this was last asked.
    pub fn take_want(&self) -> bool {
        self.0.is_wanted.load(Relaxed) && self.0.is_wanted.swap(false, Relaxed)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    /// Threads claim and give back at random. What they hold and what is left is all there is.
    #[test]
    fn no_word_is_claimed_twice_or_lost() {
        const WORDS: u64 = 10_000;
        let commons = Commons::new(8 * WORDS as usize, 4);
        let turns = |nth: u64| {
            let (mut held, mut step) = (0, nth);
            for _ in 0..100_000 {
                step = step.wrapping_mul(6_364_136_223_846_793_005) + 1;
                let words = (step >> 33) % 3_000;
                if words.is_multiple_of(2) && commons.claim(words) {
                    held += words;
                } else if held >= words {
                    commons.give_back(words);
                    held -= words;
                }
                assert!(held <= WORDS);
            }
            held
        };
        let held: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4).map(|nth| scope.spawn(move || turns(nth))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(held + commons.left(), WORDS);
        assert!(!commons.claim(WORDS + 1));
    }
}
