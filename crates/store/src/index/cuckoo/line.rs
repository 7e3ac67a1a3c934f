//! One cache line of the cuckoo index: three buckets of four slots, and the version that covers
//! them.
//!
//! ```text
//! word 0   | tags of bucket 1 | tags of bucket 0 |      four tags of a byte each; zero: empty
//! word 1   |     version      | tags of bucket 2 |
//! word 2   |  bucket 0 slot 1 |  bucket 0 slot 0 |      a slot: CLOCK, FETCHED, offset (30 bits)
//! word 3   |  bucket 0 slot 3 |  bucket 0 slot 2 |
//!   ...
//! word 7   |  bucket 2 slot 3 |  bucket 2 slot 2 |
//! ```
//!
//! A slot thus costs 5 1/3 bytes, version included. The paper keeps an array of 8192 version
//! counters apart, by keyhash; here the counters are striped over the lines, so that looking at one
//! costs no access of its own, there are as many as lines, and a change of the table does not
//! disturb readers of other lines.
//!
//! # How an optimistic reader knows that nothing changed under it
//!
//! The version of a line covers its slots *and the items that they name*. There is one writer at a
//! time. Whenever it changes a slot, or an item in place, it
//!
//! 1. makes the version of the slot's line odd, then a release fence
//!    ([`write_begin`](Line::write_begin));
//! 2. changes slots, or the item, with relaxed stores;
//! 3. makes the version even again with a release store ([`write_end`](Line::write_end)).
//!
//! Where an item moves to its other bucket the version of the line that it leaves stands for both.
//! The memory of an item is written again only after the slot that named it was changed in this
//! way, and a new item is written before a slot names it. A reader, which looks for a key in two
//! buckets,
//!
//! 1. loads the versions of both lines with acquire ([`read_begin`](Line::read_begin)); odd means
//!    start over;
//! 2. reads tags and slots and copies the item, all with relaxed loads;
//! 3. runs an acquire fence and loads both versions again
//!    ([`read_unchanged`](Line::read_unchanged)); unequal means start over.
//!
//! *Not torn, not foreign:* if a load of step 2 saw a slot that was changed, or a word of an item
//! that was changed or whose memory was given away, then the writer's release fence before that
//! store and the reader's acquire fence synchronise, and the store that made the version of the
//! slot's line odd is visible to the last load. The slot that an item moved to is covered by the
//! line that it left: bucket and tag together determine the other bucket, so a reader that finds
//! the tag there validates that line as well. *Never missed:* if a load of step 2 saw that an item
//! had left one of its buckets, the same fences show the odd version of that line to the last load,
//! so the first one can only have read the even version after it, or a later one, and synchronises
//! with the writer's last step: the item is seen in its other bucket, unless a later move took it
//! away from there, of which the same holds; and one of the moves seen is the last. *Not stale:*
//! the first loads, if they read even versions, synchronise with the writer's last step, so
//! everything acknowledged before the read began is seen.
//!
//! Noting a read in a slot, with its bits for CLOCK and FETCHED, is no change. Any thread may do it
//! with [`mark_read`](Cell::mark_read) at any time in the batch in which it has found the slot, and
//! the writer may lose such bits when it stores a word. A line that leaves the index is not written
//! by others before that batch is over: see [`batches`](crate::batches).

use crate::index::store_if;
use crate::memory::LINE_WORDS;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, fence, in_program_order, weakened};

/// Buckets of a line.
pub const LINE_BUCKETS: usize = 3;
/// Slots of a bucket (MemC3 §3: the index is 4-way set-associative).
pub const BUCKET_SLOTS: usize = 4;

/// A copy of an index slot: where an item lies, whether it was used since the hand of CLOCK
/// passed, and whether it was fetched since it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    const RECENT: u32 = 1 << 31;
    const FETCHED: u32 = 1 << 30;
    /// What a read sets.
    const READ: u32 = Self::RECENT | Self::FETCHED;
    /// Offsets are smaller than this many words.
    pub const OFFSETS: usize = 1 << Self::READ.trailing_zeros();

    /// A slot for the item at a word offset, not used so far.
    #[inline(always)]
    pub fn new(offset: usize) -> Slot {
        debug_assert!(offset < Self::OFFSETS);
        Slot(offset as u32)
    }

    /// Where the item lies, in words.
    #[inline(always)]
    pub fn offset(self) -> usize {
        (self.0 & !Self::READ) as usize
    }

    /// Whether the item was used.
    #[inline(always)]
    pub fn is_recent(self) -> bool {
        self.0 & Self::RECENT != 0
    }

    /// Whether the item is known to have been fetched since it was stored.
    #[inline(always)]
    pub fn is_fetched(self) -> bool {
        self.0 & Self::FETCHED != 0
    }

    /// The same slot for an item that lies elsewhere.
    pub fn at(self, offset: usize) -> Slot {
        Slot(self.0 & Self::READ | Slot::new(offset).0)
    }

    /// The same slot with the CLOCK bit set or cleared.
    #[inline(always)]
    pub fn with_recent(self, recent: bool) -> Slot {
        Slot(self.0 & !Self::RECENT | if recent { Self::RECENT } else { 0 })
    }
}

/// A line where it lies in memory. See the module's text.
#[derive(Clone, Copy)]
pub struct Line<'a>(pub(super) &'a [AtomicU64; LINE_WORDS]);

/// The half of a word that a 32-bit field takes.
#[inline(always)]
fn shift(half: usize) -> usize {
    32 * (half & 1)
}

impl<'a> Line<'a> {
    #[inline(always)]
    fn load(self, word: usize, half: usize) -> u32 {
        (self.0[word].load(Relaxed) >> shift(half)) as u32
    }

    #[inline(always)]
    fn store(self, word: usize, half: usize, value: u32) {
        let old = self.0[word].load(Relaxed);
        let new = old & !(u64::from(u32::MAX) << shift(half)) | u64::from(value) << shift(half);
        self.0[word].store(new, Relaxed);
    }

    /// The four tags of a bucket, the first one in the low byte.
    #[inline(always)]
    pub fn tags(self, bucket: usize) -> u32 {
        self.load(bucket / 2, bucket)
    }

    /// The tag of a slot; zero if that is empty.
    #[inline(always)]
    pub fn tag(self, bucket: usize, place: usize) -> u8 {
        (self.tags(bucket) >> (8 * place)) as u8
    }

    /// A slot of a bucket.
    #[inline(always)]
    pub fn slot(self, bucket: usize, place: usize) -> Slot {
        Slot(self.load(2 + 2 * bucket + place / 2, place))
    }

    /// Changes a slot and its tag; only between [`write_begin`](Line::write_begin) and
    /// [`write_end`](Line::write_end). The tag comes last: if the process ends in between, and the
    /// line lies in a [file](crate::memory::MemoryFile), what has a tag there names an item.
    #[inline(always)]
    pub fn set(self, bucket: usize, place: usize, tag: u8, slot: Slot) {
        self.store(2 + 2 * bucket + place / 2, place, slot.0);
        in_program_order();
        self.store_tag(bucket, place, tag);
    }

    /// Empties a slot, under the same rule. The tag goes first.
    #[inline(always)]
    pub fn clear(self, bucket: usize, place: usize) {
        self.store_tag(bucket, place, 0);
        in_program_order();
        self.store(2 + 2 * bucket + place / 2, place, 0);
    }

    #[inline(always)]
    fn store_tag(self, bucket: usize, place: usize, tag: u8) {
        let tags = self.tags(bucket) & !(0xFF << (8 * place)) | u32::from(tag) << (8 * place);
        self.store(bucket / 2, bucket, tags);
    }

    /// Sets or clears a slot's CLOCK bit; for the writer.
    #[inline(always)]
    pub fn set_recent(self, bucket: usize, place: usize, recent: bool) {
        let slot = self.slot(bucket, place);
        if slot.is_recent() != recent {
            let word = 2 + 2 * bucket + place / 2;
            self.store(word, place, slot.with_recent(recent).0);
        }
    }

    /// The memory of a slot.
    #[inline(always)]
    pub fn cell(self, bucket: usize, place: usize) -> Cell<'a> {
        Cell {
            word: &self.0[2 + 2 * bucket + place / 2],
            shift: shift(place) as u32,
        }
    }

    /// Empties the whole line of memory that had another use; no other thread looks at it yet.
    pub fn format(self) {
        self.0.iter().for_each(|word| word.store(0, Relaxed));
    }

    #[inline(always)]
    fn version(self, order: glimmer_base::sync::Ordering) -> u32 {
        (self.0[1].load(order) >> 32) as u32
    }

    #[inline(always)]
    fn next_version(self, order: glimmer_base::sync::Ordering) {
        let word = self.0[1].load(Relaxed);
        self.0[1].store(word.wrapping_add(1 << 32), order);
    }

    /// Begins a change. `shared`: whether optimistic readers exist.
    #[inline(always)]
    pub fn write_begin(self, shared: bool) {
        if shared {
            self.next_version(Relaxed);
            if !weakened("cuckoo_release_fence") {
                fence(Release);
            }
        }
        in_program_order();
    }

    /// Has the version be even: nobody is at work.
    pub fn calm(self) {
        if !self.version(Relaxed).is_multiple_of(2) {
            self.next_version(Relaxed);
        }
    }

    /// Ends a change.
    #[inline(always)]
    pub fn write_end(self, shared: bool) {
        if shared {
            let weak = weakened("cuckoo_release_store");
            self.next_version(if weak { Relaxed } else { Release });
        }
        in_program_order();
    }

    /// The version to read under, unless a writer is at work.
    #[inline(always)]
    pub fn read_begin(self) -> Option<u32> {
        let weak = weakened("cuckoo_acquire_load");
        let version = self.version(if weak { Relaxed } else { Acquire });
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether the line still has this version. To be asked after an acquire fence.
    #[inline(always)]
    pub fn read_unchanged(self, version: u32) -> bool {
        self.version(Relaxed) == version
    }
}

/// The memory of one slot: half of a word.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    word: &'a AtomicU64,
    shift: u32,
}

impl Cell<'_> {
    /// The slot.
    #[inline(always)]
    pub fn slot(self) -> Slot {
        Slot((self.word.load(Relaxed) >> self.shift) as u32)
    }

    /// Notes that the item was written over: used, but not fetched since. For the writer, as are
    /// all that take a place for what is not to be stored.
    #[inline(always)]
    pub fn set_written_over(self, nowhere: &AtomicU64) {
        self.mark(Slot::RECENT, Slot::FETCHED, nowhere);
    }

    /// Notes a read, as [`mark_read`](Cell::mark_read) does, for a writer beside which no other
    /// thread reads.
    #[inline(always)]
    pub fn set_read(self, nowhere: &AtomicU64) {
        self.mark(Slot::READ, 0, nowhere);
    }

    /// Sets bits of the slot and clears others, without a branch on what they were.
    #[inline(always)]
    fn mark(self, set: u32, cleared: u32, nowhere: &AtomicU64) {
        let old = self.word.load(Relaxed);
        let new = (old & !(u64::from(cleared) << self.shift)) | u64::from(set) << self.shift;
        store_if(new != old, self.word, new, nowhere);
    }

    /// Notes a read, if the slot is still the one that was seen. Any thread may do this at any
    /// time.
    #[inline(always)]
    pub fn mark_read(self, seen: Slot) {
        if seen.0 & Slot::READ == Slot::READ {
            return;
        }
        let old = self.word.load(Relaxed);
        if (old >> self.shift) as u32 == seen.0 {
            let new = old | u64::from(Slot::READ) << self.shift;
            let _ = self.word.compare_exchange(old, new, Relaxed, Relaxed);
        }
    }
}

/// The places of a bucket's (or, with `u64`, of two buckets') tags that equal `tag`, as the high
/// bits of their bytes.
#[inline(always)]
pub fn matching(tags: u64, tag: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let differing = tags ^ (u64::from(tag) * 0x0101_0101_0101_0101);
    !(((differing & LOW) + LOW) | differing | LOW)
}

/// The first empty slot among a bucket's tags.
#[inline(always)]
pub fn first_empty(tags: u32) -> Option<usize> {
    // The upper half is made of tags that are not empty.
    let empty = matching(u64::from(tags) | u64::from(u32::MAX) << 32, 0);
    (empty != 0).then(|| empty.trailing_zeros() as usize / 8)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn slots_and_tags_do_not_disturb_one_another() {
        let words: [AtomicU64; LINE_WORDS] = Default::default();
        let line = Line(&words);
        let mut model = [[(0u8, Slot(0)); BUCKET_SLOTS]; LINE_BUCKETS];
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        for step in 0..if cfg!(miri) { 30 } else { 10_000u32 } {
            let (bucket, place) = (rng.random_range(0..3), rng.random_range(0..4));
            let slot = Slot(rng.random());
            model[bucket][place] = (rng.random(), slot);
            line.write_begin(true);
            assert_eq!(line.read_begin(), None);
            line.set(bucket, place, model[bucket][place].0, slot);
            line.write_end(true);
            assert_eq!(line.read_begin(), Some(2 * step + 2));
            for (bucket, slots) in model.iter().enumerate() {
                for (place, &(tag, slot)) in slots.iter().enumerate() {
                    assert_eq!(line.tags(bucket).to_le_bytes()[place], tag);
                    assert_eq!(line.slot(bucket, place), slot);
                }
                let first = slots.iter().position(|(tag, _)| *tag == 0);
                assert_eq!(first_empty(line.tags(bucket)), first);
            }
        }
    }

    #[test]
    fn matches_are_exact() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..if cfg!(miri) { 30 } else { 100_000 } {
            let bytes: [u8; 8] = core::array::from_fn(|_| rng.random_range(0..4) * 85);
            let tag = rng.random_range(0..4) * 85;
            let expected = (0..8)
                .filter(|&i| bytes[i] == tag)
                .fold(0u64, |all, i| all | 0x80 << (8 * i));
            assert_eq!(matching(u64::from_le_bytes(bytes), tag), expected);
        }
    }

    #[test]
    fn marking_sets_the_bits_of_the_slot_that_was_seen_and_no_other() {
        let words: [AtomicU64; LINE_WORDS] = Default::default();
        let (line, nowhere) = (Line(&words), AtomicU64::new(0));
        line.set(1, 2, 9, Slot::new(77));
        line.cell(1, 2).mark_read(Slot::new(78));
        assert!(!line.slot(1, 2).is_recent());
        line.cell(1, 2).mark_read(Slot::new(77));
        assert!(line.slot(1, 2).is_recent() && !line.slot(1, 3).is_recent());
        assert!(line.slot(1, 2).is_fetched() && !line.slot(1, 3).is_fetched());
        assert_eq!(line.slot(1, 2).offset(), 77);
        line.set_recent(1, 2, false);
        assert!(line.slot(1, 2).is_fetched());
        line.cell(1, 2).set_written_over(&nowhere);
        assert_eq!(line.slot(1, 2), Slot::new(77).with_recent(true));
        line.cell(1, 2).set_read(&nowhere);
        assert!(line.slot(1, 2).is_fetched());
        assert_eq!(line.slot(1, 2).offset(), 77);
    }
}
