//! Chains made again: to split one, and to give up spare buckets that are no longer needed.

use super::{ChainedIndex, FreeList, LEVELS_MAX, Shape};
use crate::index::{CHAIN_BUCKETS_MAX, CHAIN_ENTRIES_MAX, Entry};
use crate::memory::Record;
use crate::work;
use glimmer_base::sync::{in_program_order, weakened};

const _: () = assert!(
    2 * CHAIN_ENTRIES_MAX <= Record::ENTRIES_MAX,
    "the journal holds two chains, which are merged into one"
);

/// The entries and spare buckets of a chain, taken out of it.
pub(super) struct Parts {
    entries: [Entry; CHAIN_ENTRIES_MAX],
    count: usize,
    spares: [usize; CHAIN_BUCKETS_MAX],
    spares_count: usize,
}

impl Parts {
    pub(super) const NONE: Parts = Parts {
        entries: [Entry::EMPTY; CHAIN_ENTRIES_MAX],
        count: 0,
        spares: [0; CHAIN_BUCKETS_MAX],
        spares_count: 0,
    };

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[..self.count]
    }

    /// A copy of the entries, and their number.
    pub(super) fn copied(&self) -> ([Entry; CHAIN_ENTRIES_MAX], usize) {
        (self.entries, self.count)
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries[self.count] = entry;
        self.count += 1;
    }

    pub(super) fn push_spare(&mut self, number: usize) {
        self.spares[self.spares_count] = number;
        self.spares_count += 1;
    }

    pub(super) fn pop_spare(&mut self) -> Option<usize> {
        self.spares_count = self.spares_count.checked_sub(1)?;
        Some(self.spares[self.spares_count])
    }
}

impl ChainedIndex {
    /// The live entries of a chain.
    fn parts(&self, home: usize, is_live: impl Fn(Entry) -> bool) -> Parts {
        let mut parts = Parts::NONE;
        self.add_parts(home, is_live, None, &mut parts);
        parts
    }

    /// Adds what is in a chain, except for one spare bucket: not that itself, only what is in it.
    pub(super) fn add_parts(
        &self,
        home: usize,
        is_live: impl Fn(Entry) -> bool,
        without: Option<usize>,
        parts: &mut Parts,
    ) {
        for number in self.chain(home) {
            if number != home && Some(number) != without {
                parts.push_spare(number);
            }
            let entries = self.bucket(number).entries(Self::entries_of(home, number));
            for entry in entries.filter(|&entry| !entry.is_empty() && is_live(entry)) {
                parts.push(entry);
            }
        }
    }

    /// Writes a chain: entries into the main bucket, and what it does not hold into spare ones.
    pub(super) fn write_chain(
        &self,
        home: usize,
        entries: &[Entry],
        mut spare: impl FnMut() -> usize,
    ) {
        let (mut number, mut rest) = (home, entries);
        loop {
            let here;
            let count = Self::entries_of(home, number);
            (here, rest) = rest.split_at(rest.len().min(count));
            let bucket = self.bucket(number);
            for at in 0..count {
                bucket.set_entry(at, here.get(at).copied().unwrap_or(Entry::EMPTY));
            }
            if rest.is_empty() {
                bucket.set_next(None);
                return;
            }
            let next = spare();
            self.bucket(next).set_owner(Some(home));
            bucket.set_next(Some(next));
            number = next;
        }
    }

    /// Gives up the spare buckets that a chain's live entries do not need; says how many.
    pub fn shorten(
        &self,
        home: usize,
        spares: &mut FreeList,
        is_live: impl Fn(Entry) -> bool,
        shared: bool,
    ) -> usize {
        let live = |&(_, entry): &(_, Entry)| !entry.is_empty() && is_live(entry);
        let buckets_wanted = Self::buckets_for(self.slots(home).filter(live).count());
        if self.chain(home).nth(buckets_wanted).is_none() {
            return 0;
        }
        let mut parts = self.parts(home, is_live);
        let (entries, count) = parts.copied();
        self.note_rewrite(&parts);
        let main = self.bucket(home);
        let shared = shared && !weakened("shorten_version");
        main.write_begin(shared);
        self.write_chain(home, &entries[..count], || {
            parts.pop_spare().expect("a shorter chain needs fewer")
        });
        main.write_end(shared);
        self.end_rewrite();
        self.give_back(parts, spares)
    }

    /// A chain with these entries is about to be rewritten.
    pub(super) fn note_rewrite(&self, parts: &Parts) {
        if let Some(record) = &self.record {
            record.note(parts.entries().iter().map(|entry| entry.raw()), false);
        }
    }

    /// An item is about to be moved, and may be at neither place meanwhile. These entries name it
    /// before and after.
    pub fn note_moves(&self, entries: &[Entry]) {
        if let Some(record) = &self.record {
            record.note(entries.iter().map(|entry| entry.raw()), true);
        }
    }

    /// The chain is written, or the item moved.
    pub fn end_rewrite(&self) {
        if let Some(record) = &self.record {
            record.forget();
        }
    }

    pub(super) fn give_back(&self, mut parts: Parts, spares: &mut FreeList) -> usize {
        let count = parts.spares_count;
        while let Some(number) = parts.pop_spare() {
            spares.give_back(self, number);
        }
        count
    }

    /// Whether one more main bucket is only a matter of memory.
    pub fn may_grow(&self) -> bool {
        self.level_to_grow_to(self.shape()).is_some()
    }

    /// The level that the index has with one more main bucket, if it may have that many.
    fn level_to_grow_to(&self, shape: Shape) -> Option<u32> {
        let (added, mut level) = (shape.mains(), shape.level());
        if added == self.roots << (level + 1) {
            level += 1;
        }
        (level < LEVELS_MAX && self.number_of(added + 1) <= self.lines()).then_some(level)
    }

    /// Adds one main bucket, if that leaves the memory below `kept` alone, and moves to it what
    /// belongs there now. Says how many spare buckets became free by that, or none if the index
    /// cannot grow.
    ///
    /// Like [`allocate`](crate::heap::segregated_fits::SegregatedFits::allocate), this overwrites
    /// what racing readers may be reading.
    pub fn grow(
        &self,
        kept: usize,
        spares: &mut FreeList,
        is_live: impl Fn(Entry) -> bool,
        shared: bool,
    ) -> Option<usize> {
        let shape = self.shape();
        let added = shape.mains();
        let level = self.level_to_grow_to(shape)?;
        if self.border_with(added + 1) < kept {
            return None;
        }
        self.bucket(self.number_of(added)).make_empty();
        if let Some(spare) = self.spare_of(added) {
            self.bucket(spare).make_empty_spare();
        }
        work::split();
        let bit = 1u16 << level;
        let (parent, child) = (
            self.number_of(added - (self.roots << level)),
            self.number_of(added),
        );
        let mut parts = self.parts(parent, is_live);
        self.note_rewrite(&parts);
        let (mut stay, mut go) = (Parts::NONE, Parts::NONE);
        for &entry in parts.entries() {
            if entry.tag() & bit == 0 {
                stay.push(entry);
            } else {
                go.push(entry);
            }
        }
        // The two chains need no more spare buckets together than the one had: as many entries of
        // it come to lie in a main bucket as two spare ones hold.
        let mut spare = || parts.pop_spare().expect("two chains need no more than one");
        let main = self.bucket(parent);
        let shared = shared && !weakened("split_version");
        main.write_begin(shared);
        self.write_chain(parent, stay.entries(), &mut spare);
        // A process that ends leaves no spare bucket in both chains, as each may need all others.
        in_program_order();
        self.write_chain(child, go.entries(), &mut spare);
        self.publish(shape.with(added + 1, level));
        main.write_end(shared);
        self.end_rewrite();
        Some(self.give_back(parts, spares))
    }
}

const _: () = assert!(LEVELS_MAX < u16::BITS, "the tag has a bit for every level");
