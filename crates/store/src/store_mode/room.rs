//! What is done before a store is refused for want of room: expired items are looked for, and the
//! index takes memory that the heap does not need, or gives back what it does not need itself.

use super::Writer;
use crate::access::Access;
use crate::heap::Measured;
use glimmer_base::{Keyhash, Moment};

/// What a store lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanting {
    /// Words in the heap.
    Words,
    /// A slot in the chain.
    Slot,
}

/// Chains that are scanned, and main buckets that are added, for one store at most: together some
/// tens of microseconds.
const STEPS_MAX: usize = 256;

/// Main buckets that are merged for one store at most: some hundred microseconds.
const MERGES_MAX: usize = 1 << 11;

impl<A: Access> Writer<'_, A> {
    /// Stores an item for which there is no room yet; says whether room was found.
    #[inline(never)]
    pub(super) fn put_in_room_to_be_found(
        &mut self,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> bool {
        let mut steps_left = STEPS_MAX;
        while let Err(wanting) = self.try_put(keyhash, new, cas, now) {
            let found = match wanting {
                Wanting::Slot => {
                    self.grow_index(&mut steps_left) || self.reclaim(&mut steps_left, now)
                }
                Wanting::Words => {
                    self.gather(new.words)
                        || self.take_from_index(new.words)
                        || self.reclaim(&mut steps_left, now)
                }
            };
            if !found {
                self.shared.counters.refused.add(1);
                return false;
            }
        }
        true
    }

    /// Adds one main bucket, if there is memory between heap and index.
    fn grow_index(&mut self, steps_left: &mut usize) -> bool {
        let shared = self.shared;
        if *steps_left == 0 {
            return false;
        }
        *steps_left -= 1;
        let kept = self.state.fits.top();
        let is_live = |entry| shared.is_live(entry);
        let grown = shared
            .index
            .grow(kept, &mut self.state.spares, is_live, A::SHARED_READS);
        let Some(spares_freed) = grown else {
            return false;
        };
        shared.counters.spares_used.sub(spares_freed as u64);
        shared.counters.buckets_added.add(1);
        true
    }

    /// Merges idle buckets until there is room for so many words between heap and index; says whether there is. What has been merged stays
    /// so.
    fn take_from_index(&mut self, words: usize) -> bool {
        for _ in 0..MERGES_MAX {
            if self.state.fits.top() + words <= self.shared.index.border() {
                return true;
            }
            if !self.shrink_index() {
                break;
            }
        }
        false
    }

    /// Merges the last main bucket with the one that it was split from, if buckets are idle; says whether that was done.
    #[inline(always)]
    pub(super) fn shrink_index(&mut self) -> bool {
        self.shared.index.is_idle(self.shared.counters.items.get()) && self.merge_last_bucket()
    }

    #[inline(never)]
    fn merge_last_bucket(&mut self) -> bool {
        let shared = self.shared;
        let is_live = |entry| shared.is_live(entry);
        let spares = &mut self.state.spares;
        let Some(spares_freed) = shared.index.shrink(spares, is_live, A::SHARED_READS) else {
            return false;
        };
        shared.counters.spares_used.sub(spares_freed as u64);
        shared.counters.buckets_merged.add(1);
        self.state.scan.soonest.spoil_round();
        true
    }

    /// Scans chains until one has given something back. Where nothing has expired nothing is scanned, so that a store that is refused takes no longer
    /// than one that is not.
    fn reclaim(&mut self, steps_left: &mut usize, now: Moment) -> bool {
        while *steps_left > 0 && self.has_to_scan(now) {
            *steps_left -= 1;
            if self.scan_next(now) {
                return true;
            }
        }
        false
    }
}
