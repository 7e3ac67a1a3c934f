//! The index gives memory back: its last main bucket is merged into the one that it was split from.

use super::rebuild::Parts;
use super::{ChainedIndex, FreeList};
use crate::index::{BUCKET_ENTRIES, CHAIN_BUCKETS_MAX, Entry};
use crate::work;
use glimmer_base::sync::Ordering::Release;
use glimmer_base::sync::{fence, weakened};

/// A merged chain has at most this many buckets, fewer than a chain may have: a longer one would be
/// split again at once.
const MERGED_BUCKETS_MAX: usize = 3;

/// Buckets are worth merging while the items would fill less than this percentage of the main ones.
/// Stores make an index grow when it is more than twice as full, so that it does not do both in
/// turn.
const IDLE_PERCENT: u64 = 20;

impl ChainedIndex {
    /// Whether this many items need far fewer main buckets than there are.
    #[inline(always)]
    pub fn is_idle(&self, items: u64) -> bool {
        items * 100 < (self.mains() * BUCKET_ENTRIES) as u64 * IDLE_PERCENT
    }

    /// Removes the last main bucket and the spare one that came with it, if one did. Says how many
    /// fewer spare buckets are in use; none, and no entry has moved to another chain, if the index
    /// has no more than it began with, or if the entries would not fit.
    ///
    /// The memory between the old border and the new is the caller's to overwrite once
    /// [`Border`](super::Border) says so.
    pub fn shrink(
        &self,
        spares: &mut FreeList,
        is_live: impl Fn(Entry) -> bool,
        shared: bool,
    ) -> Option<usize> {
        let shape = self.shape();
        let removed = shape.mains() - 1;
        if removed < self.roots {
            return None;
        }
        let level = (removed / self.roots).ilog2();
        let (parent, child) = (
            self.number_of(removed - (self.roots << level)),
            self.number_of(removed),
        );
        let live = |home: usize| {
            let slots = self.slots(home);
            slots.filter(|&(_, entry)| !entry.is_empty() && is_live(entry))
        };
        let entries = live(parent).count() + live(child).count();
        let buckets_wanted = Self::buckets_for(entries);
        let chains = || {
            [parent, child]
                .into_iter()
                .flat_map(|it| self.chain(it).skip(1))
        };
        let leaving = self.spare_of(removed);
        let staying = chains().filter(|&spare| Some(spare) != leaving).count();
        if buckets_wanted > MERGED_BUCKETS_MAX.min(1 + staying)
            || chains().count() > CHAIN_BUCKETS_MAX
        {
            return None;
        }
        let owner = leaving.map(|number| (number, self.bucket(number).owner()));
        let freed = match owner {
            None => 0,
            Some((number, None)) => {
                spares.remove_last(self, number);
                0
            }
            Some((_, Some(home))) if home == parent || home == child => 1,
            Some((number, Some(home))) => self.replace(home, number, spares, &is_live, shared)?,
        };
        work::split();
        spares.forget_last(self);
        let mut parts = Parts::NONE;
        for home in [parent, child] {
            self.add_parts(home, &is_live, leaving, &mut parts);
        }
        self.note_rewrite(&parts);
        let (main, last) = (self.bucket(parent), self.bucket(child));
        // Spare buckets of both chains are written; the last bucket's version stays odd for ever,
        // so that no reader finishes there.
        last.write_begin(shared);
        let is_shared = shared && !weakened("merge_version");
        main.write_begin(is_shared);
        let (merged, count) = parts.copied();
        self.write_chain(parent, &merged[..count], || {
            parts
                .pop_spare()
                .expect("it was seen that there are enough")
        });
        self.publish(shape.with(removed, level));
        main.write_end(is_shared);
        self.end_rewrite();
        // Items wait for the memory, but the index itself may take it again at once. A reader that
        // meets what it writes there sees the shape too.
        if shared && !weakened("shape_release_fence") {
            fence(Release);
        }
        Some(freed + self.give_back(parts, spares))
    }

    /// Takes a certain spare bucket out of the chain that begins at `home` and puts another in its
    /// place, if there is one. Says how many fewer are in use.
    fn replace(
        &self,
        home: usize,
        number: usize,
        spares: &mut FreeList,
        is_live: impl Fn(Entry) -> bool,
        shared: bool,
    ) -> Option<usize> {
        let other = spares.take(self, home)?;
        let mut parts = Parts::NONE;
        self.add_parts(home, is_live, Some(number), &mut parts);
        parts.push_spare(other);
        self.note_rewrite(&parts);
        let main = self.bucket(home);
        let shared = shared && !weakened("replace_version");
        main.write_begin(shared);
        let (entries, count) = parts.copied();
        self.write_chain(home, &entries[..count], || {
            parts.pop_spare().expect("as many as before are enough")
        });
        main.write_end(shared);
        self.end_rewrite();
        Some(self.give_back(parts, spares))
    }
}
