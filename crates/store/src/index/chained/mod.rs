//! The index by bulk chaining (MICA §4.3.3, Figure 9), which also grows and shrinks.
//!
//! *Bulk chaining:* a main bucket that is full gets a spare bucket chained to it. There is one
//! spare bucket to every few main ones, and any chain may take one. A spare bucket is half as large
//! as a main one: at the loads that save memory, most chains that overflow do so by a few entries.
//!
//! *Linear hashing* (Litwin 1980): main buckets are added one at a time. The first [`roots`] main
//! buckets are found by the keyhash's bucket bits as in the lossy index; each added one takes over
//! the half of one earlier bucket's entries whose next tag bit is set, so that a step touches two
//! chains and no item. With `roots << level` buckets and more, a key belongs to `root + roots *
//! (the tag's lowest level + 1 bits)`, or, where that bucket has yet to be added, to the one that
//! it will be split from. The paper fixes the number of buckets at start.
//!
//! The buckets lie in the partition's memory beside the heap or the log, numbered from its end
//! downwards: the index takes what it needs, and the heap has the rest. A number stands for a
//! line of 64 bytes; a main bucket takes two of them, and has the lower one.
//!
//! Whether the index is lossless is its writer's affair: where a chain is full and no spare bucket
//! is left, store mode refuses the item, and cache mode gives up the chain's oldest (§4.3.2).
//!
//! A reader finds its bucket by the [`Shape`], one word that says how many buckets there are. It
//! loads the word before the bucket's version and once more after everything else. A bucket that
//! was split or merged while the reader was in it has another version. One that was split or merged
//! before the reader loaded its version has the new one, but then the load synchronises with the
//! end of that change, and the last look at the shape sees the new shape. Items get memory that the
//! index has left when no reader can be in it any more: see [`Border`]. The index itself may take
//! it again at once. Between publishing the shape without that memory and writing to it lies a
//! release fence, so a reader that meets what was written there sees the shape at its last look.
//!
//! [`roots`]: ChainedIndex::new

mod border;
mod lookup;
mod rebuild;
mod recover;
mod shrink;
mod spares;

pub use super::bucket::BUCKET_WORDS;
pub use border::Border;
pub use lookup::HomeBucket;
pub use recover::{PutBack, Spares, Verdict};
pub use spares::FreeList;

use super::{
    BUCKET_ENTRIES, BUCKETS_MAX, Bucket, CHAIN_BUCKETS_MAX, Entry, SPARE_ENTRIES, SPARE_WORDS,
    Slot, store_if,
};
use crate::memory::{Record, ZeroedSlice};
use crate::table::Index;
use crossbeam_utils::CachePadded;
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, in_program_order, weakened};

/// The index may grow until this many bits of the tag say nothing about the key beyond its bucket.
/// Half of the tag is left: then one lookup in some twenty compares one key in vain.
const LEVELS_MAX: u32 = 8;

#[cfg(not(any(loom, miri)))]
const _: () = assert!(align_of::<Bucket>() == 8 * SPARE_WORDS);
const _: () = assert!(BUCKET_WORDS == 2 * SPARE_WORDS);

/// How many main buckets there are, and how often that has changed.
///
/// ```text
///  63              36 35     32 31           0
/// +------------------+---------+--------------+
/// |     changes      |  level  | main buckets |
/// +------------------+---------+--------------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape(u64);

const _: () = assert!(
    BUCKETS_MAX <= u32::MAX as usize,
    "a shape keeps the number of main buckets in 32 bits"
);

impl Shape {
    /// Number of main buckets.
    #[inline(always)]
    pub fn mains(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    fn level(self) -> u32 {
        (self.0 >> 32) as u32 & 0xF
    }

    fn with(self, mains: usize, level: u32) -> Shape {
        Shape(((self.0 >> 36) + 1) << 36 | u64::from(level) << 32 | mains as u64)
    }
}

/// See the module's text.
pub struct ChainedIndex {
    /// Of at least `capacity + 1` lines, aligned as a bucket is.
    memory: ZeroedSlice<AtomicU64>,
    /// Numbers below this may be of buckets: from each of them on, two lines are within the memory.
    capacity: usize,
    /// Main buckets at the start, and for ever the fewest.
    roots: usize,
    /// Lines to a main bucket, its own and those of spare ones, in 2^32nds.
    lines_per_main: u64,
    shape: CachePadded<AtomicU64>,
    /// The shape is kept there as well, and what is about to be rewritten.
    record: Option<Record>,
    /// What is not to be stored is stored here.
    nowhere: CachePadded<AtomicU64>,
}

impl ChainedIndex {
    /// An empty index of `roots` main buckets at the end of `memory`, with spare buckets in the
    /// ratio that `(spares, mains)` has, at most one to one.
    ///
    /// # Panics
    ///
    /// If there is no root, the memory does not hold them, or it holds more than [`BUCKETS_MAX`]
    /// buckets.
    pub fn new(
        memory: ZeroedSlice<AtomicU64>,
        roots: usize,
        (spares, mains): (usize, usize),
    ) -> Self {
        let index = ChainedIndex {
            capacity: (memory.len() / SPARE_WORDS).saturating_sub(1),
            memory,
            roots,
            lines_per_main: (2 << 32) + ((spares.min(mains) as u64) << 32).div_ceil(mains as u64),
            shape: CachePadded::new(AtomicU64::new(roots as u64)),
            record: None,
            nowhere: CachePadded::new(AtomicU64::new(0)),
        };
        assert!(index.lines() <= BUCKETS_MAX);
        // Whatever number was asked for; those of buckets that fit are as `number_of` has them.
        let wanted = (roots as u128 * u128::from(index.lines_per_main)) >> 32;
        assert!(roots >= 1 && wanted <= index.lines() as u128);
        assert!(index.memory.as_ptr().cast::<Bucket>().is_aligned());
        index
    }

    /// The shape now. What was changed before it was published is seen.
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        let weak = weakened("shape_acquire_load");
        Shape(self.shape.load(if weak { Relaxed } else { Acquire }))
    }

    /// Whether the shape is still this one: the last check of a reader, whose acquire fence comes
    /// before.
    #[inline(always)]
    fn shape_is(&self, shape: Shape) -> bool {
        weakened("shape_recheck") || self.shape.load(Relaxed) == shape.0
    }

    fn publish(&self, shape: Shape) {
        let order = if weakened("shape_release_store") {
            Relaxed
        } else {
            Release
        };
        self.shape.store(shape.0, order);
        if let Some(record) = &self.record {
            in_program_order();
            record.shape().store(shape.0, Relaxed);
            in_program_order();
        }
    }

    /// Has the record know the shape; takes the shape that it knows, if it knows one. Says whether
    /// that can be the shape of an index in this memory.
    pub fn keep_in(&mut self, record: &Record) -> bool {
        let kept = Shape(record.shape().load(Relaxed));
        let is_new = kept == Shape::default();
        let mains = kept.mains();
        let is_possible = is_new
            || mains >= self.roots
                && kept.level() < LEVELS_MAX
                && self.roots << kept.level() <= mains
                && mains <= self.roots << (kept.level() + 1)
                && self.number_of(mains) <= self.lines();
        if is_possible {
            self.record = Some(record.clone());
            let shape = if is_new { self.shape() } else { kept };
            self.publish(shape);
        }
        is_possible
    }

    /// Lines that the memory has.
    fn lines(&self) -> usize {
        self.capacity + 1
    }

    /// Number of main buckets.
    #[inline(always)]
    pub fn mains(&self) -> usize {
        self.shape().mains()
    }

    /// Number of spare buckets, in use or not.
    pub fn spares(&self) -> usize {
        let mains = self.mains();
        self.number_of(mains) - 2 * mains
    }

    /// Where in the memory the index begins now; what lies before is not its own.
    #[inline(always)]
    pub fn border(&self) -> usize {
        self.border_with(self.shape().mains())
    }

    #[inline(always)]
    fn border_with(&self, mains: usize) -> usize {
        self.lines().saturating_sub(self.number_of(mains)) * SPARE_WORDS
    }

    /// How many lines come before a main bucket; it is the main bucket's own number.
    #[inline(always)]
    fn number_of(&self, main: usize) -> usize {
        ((main as u64 * self.lines_per_main) >> 32) as usize
    }

    /// The numbers of all buckets are below this.
    pub fn numbers(&self) -> usize {
        self.number_of(self.mains())
    }

    /// The record that knows the shape, if one does.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// The spare bucket that comes with a main one, if one does.
    #[inline(always)]
    fn spare_of(&self, main: usize) -> Option<usize> {
        let number = self.number_of(main);
        (self.number_of(main + 1) - number == 3).then_some(number + 1)
    }

    /// Whether a spare bucket of the index has this number.
    fn is_spare(&self, number: usize) -> bool {
        if number >= self.numbers() {
            return false;
        }
        // The last main bucket whose number is not above this one.
        let main = (((number as u64 + 1) << 32) - 1) / self.lines_per_main;
        self.spare_of(main as usize) == Some(number)
    }

    /// The main bucket that a key belongs to, counted among main buckets.
    #[inline(always)]
    fn main_of(&self, shape: Shape, keyhash: Keyhash) -> usize {
        let root = keyhash.bucket(self.roots);
        // An index whose size was guessed right has never grown, and every key pays for this.
        if shape.mains() == self.roots {
            return root;
        }
        let bits = keyhash.tag() as usize & ((2 << shape.level()) - 1);
        let main = root + self.roots * bits;
        if main < shape.mains() {
            main
        } else {
            main - (self.roots << shape.level())
        }
    }

    /// The main bucket of a root's keys with this tag, and how many low bits of the tag its keys
    /// have in common.
    fn main_with(&self, shape: Shape, root: usize, tag: usize) -> (usize, u32) {
        let level = shape.level();
        let low = tag & ((1 << level) - 1);
        let half = self.roots << level;
        let main = root + self.roots * low;
        match (main + half < shape.mains(), tag >> level & 1) {
            (false, _) => (main, level),
            (true, 0) => (main, level + 1),
            (true, _) => (main + half, level + 1),
        }
    }

    /// The number of the main bucket that a key belongs to.
    #[inline(always)]
    fn home_in(&self, shape: Shape, keyhash: Keyhash) -> usize {
        self.number_of(self.main_of(shape, keyhash))
    }

    /// The number of the `main`-th main bucket.
    #[inline(always)]
    pub fn main(&self, main: usize) -> usize {
        self.number_of(main)
    }

    /// Number of all buckets, spare ones included.
    pub fn count(&self) -> usize {
        self.mains() + self.spares()
    }

    /// Words that they take.
    pub fn words(&self) -> usize {
        self.numbers() * SPARE_WORDS
    }

    /// A bucket by number. Of a spare one, only the first half is its own; the other half is of the
    /// bucket whose number is one less.
    #[inline(always)]
    pub fn bucket(&self, number: usize) -> &Bucket {
        assert!(number < self.capacity);
        self.bucket_on(self.line_of(number))
    }

    /// The line on which a bucket begins.
    #[inline(always)]
    fn line_of(&self, number: usize) -> usize {
        self.capacity - 1 - number
    }

    /// The number of the bucket that begins on a line.
    #[inline(always)]
    fn number_on(&self, line: usize) -> usize {
        self.capacity - 1 - line
    }

    /// The bucket that begins on a line of the memory.
    #[inline(always)]
    fn bucket_on(&self, line: usize) -> &Bucket {
        assert!(line < self.capacity);
        let at = line * SPARE_WORDS;
        // SAFETY: the memory has `capacity + 1` lines, so two lines begin at this one. `new` has
        // seen that the memory is aligned, and a line's words are as many as the alignment has.
        unsafe {
            Bucket::of(
                &*self
                    .memory
                    .as_ptr()
                    .add(at)
                    .cast::<[AtomicU64; BUCKET_WORDS]>(),
            )
        }
    }

    /// Entries of a bucket of the chain that begins at `home`.
    #[inline(always)]
    pub fn entries_of(home: usize, number: usize) -> usize {
        if number == home {
            BUCKET_ENTRIES
        } else {
            SPARE_ENTRIES
        }
    }

    /// How many buckets a chain of this many entries has.
    pub fn buckets_for(entries: usize) -> usize {
        1 + entries
            .saturating_sub(BUCKET_ENTRIES)
            .div_ceil(SPARE_ENTRIES)
    }

    /// The next bucket of a chain. None also for nonsense that a racing reader meets.
    #[inline(always)]
    pub fn behind(&self, number: usize) -> Option<usize> {
        let next = self.bucket(number).next();
        next.filter(|&next| next < self.capacity)
    }

    /// The numbers of a chain's buckets, beginning with the main bucket.
    #[inline(always)]
    pub fn chain(&self, home: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = Some(home);
        (0..CHAIN_BUCKETS_MAX).map_while(move |_| {
            let number = next?;
            next = self.behind(number);
            Some(number)
        })
    }

    /// All slots of a chain.
    #[inline(always)]
    pub fn slots(&self, home: usize) -> impl Iterator<Item = (Slot, Entry)> + '_ {
        self.chain(home).flat_map(move |bucket| {
            let count = Self::entries_of(home, bucket);
            let entries = self.bucket(bucket).entries(count).enumerate();
            entries.map(move |(entry, it)| (Slot { bucket, entry }, it))
        })
    }

    /// An empty slot of a main bucket, if it has one.
    #[inline(always)]
    pub fn empty_slot(&self, home: usize) -> Option<Slot> {
        // An empty entry's tag is zero, and no item's is.
        let entry = self.bucket(home).tagged(0).next()?;
        Some(Slot {
            bucket: home,
            entry,
        })
    }

    /// Clears the entries of a chain that are not wanted; says how many there were.
    pub fn clear_if(&self, home: usize, is_unwanted: impl Fn(Entry) -> bool, shared: bool) -> u64 {
        let unwanted = || self.slots(home).filter(|&(_, entry)| is_unwanted(entry));
        if unwanted().next().is_none() {
            return 0;
        }
        let clear = || unwanted().map(|(slot, _)| self.set(slot, Entry::EMPTY));
        self.change(home, shared, || clear().count() as u64)
    }

    /// The entry in a slot.
    #[inline(always)]
    pub fn get(&self, slot: Slot) -> Entry {
        self.bucket(slot.bucket).entry(slot.entry)
    }

    /// Changes the entry in a cell from `old`, if the new one differs, under the same rule as
    /// [`set`](Self::set). Where some entries have been read and others not, no branch could be
    /// foreseen.
    #[inline(always)]
    pub fn set_changed(&self, cell: &AtomicU64, old: Entry, new: Entry) {
        store_if(new != old, cell, new.raw(), &self.nowhere);
    }

    /// Changes an entry, as [`Bucket::set_entry`].
    #[inline(always)]
    pub fn set(&self, slot: Slot, entry: Entry) {
        self.bucket(slot.bucket).set_entry(slot.entry, entry);
    }

    /// Fetches the main bucket that begins on a line, both its lines, without waiting for it.
    #[inline(always)]
    fn prefetch_bucket_on(&self, line: usize) {
        let at = line * SPARE_WORDS;
        self.memory.prefetch(at);
        self.memory.prefetch(at + SPARE_WORDS);
    }

    /// Fetches a spare bucket without waiting for it.
    #[inline(always)]
    fn prefetch_spare(&self, number: usize) {
        self.memory.prefetch(self.line_of(number) * SPARE_WORDS);
    }
}
