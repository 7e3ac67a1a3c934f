//! The shadow directory: keyhash → slot. A writer asks it whether the key of an item is in the
//! accelerator. That costs two loads from one cache line, and one predictable branch, if it is not.
//!
//! A bucket is two words, and a word has two entries:
//!
//! ```text
//!  31      30       16 15        0
//! +---------+---------+-----------+
//! | present |   tag   |   slot    |
//! +---------+---------+-----------+
//! ```
//!
//! The tag is 15 bits of the keyhash. Where it matches, the slot's own keyhash decides. An entry
//! stays in its place from its insertion to its removal. If entries moved, a writer could look at
//! the new place before and at the old place after the move, find nothing, and leave a stale item
//! in the accelerator for ever. A key whose bucket is full is refused; with four buckets to a slot,
//! that is one of seven thousand keys when all slots are taken.
//!
//! # Order
//!
//! The entry of a key is inserted, and its slot is filled, only by the holder of the gate of the
//! key's partition. So a holder of that gate finds an entry that was inserted before. No other
//! thread inserts one while it holds the gate.
//!
//! Any thread may take a slot away from its key, to give it to another one. It first begins a write
//! of the slot, then removes the entry with release, then stores the new keyhash with release
//! ([`Writing::set_owner`](crate::layout::Writing::set_owner)). A holder of the old key's gate that
//! finds that the entry has gone, or that the slot has another keyhash, has loaded one of these
//! with acquire. So the beginning of that write, which ended the old item's hits, happened before
//! everything that the holder does next. In particular it happened before the holder acknowledges
//! a change of the old key's item.

use crate::layout::Slot;
use glimmer_base::Keyhash;
use glimmer_base::limits::HOT_SLOTS_MAX;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::{AcqRel, Acquire, Relaxed};

/// Buckets to a slot.
const BUCKETS_PER_SLOT: usize = 4;
/// Fewest buckets: 64 KiB.
const BUCKETS_MIN: usize = if cfg!(loom) { 4 } else { 1 << 12 };
/// Bytes of the directory of this number of slots.
pub const fn bytes(slots: usize) -> usize {
    let buckets = slots * BUCKETS_PER_SLOT;
    let buckets = if buckets < BUCKETS_MIN {
        BUCKETS_MIN
    } else {
        buckets
    };
    buckets * size_of::<Bucket>()
}
const PRESENT: u32 = 1 << 31;
const TAG_BITS: u32 = 15;
const SLOT_BITS: u32 = 16;

const _: () = assert!(HOT_SLOTS_MAX <= 1 << SLOT_BITS);
const _: () = assert!(1 + TAG_BITS + SLOT_BITS == 32);

/// See the module's text.
#[derive(Debug)]
pub struct Directory(Box<[Bucket]>);

#[derive(Debug)]
#[repr(align(16))]
struct Bucket([AtomicU64; 2]);

impl Directory {
    /// An empty directory of this number of slots.
    ///
    /// # Panics
    ///
    /// If there are more than [`HOT_SLOTS_MAX`].
    pub fn new(slots: usize) -> Directory {
        assert!(slots <= HOT_SLOTS_MAX);
        let buckets = (slots * BUCKETS_PER_SLOT).max(BUCKETS_MIN);
        let zero = || AtomicU64::new(0);
        Directory((0..buckets).map(|_| Bucket([zero(), zero()])).collect())
    }

    /// The slot that a key has. The caller holds the gate of the key's partition, or wants no more
    /// than a hint.
    #[inline(always)]
    pub fn find(&self, keyhash: Keyhash, slots: &[Slot]) -> Option<usize> {
        let words = self.words(keyhash);
        if words == [0, 0] {
            return None;
        }
        find_among(words, keyhash, slots)
    }

    /// Whether a key may have a slot: its bucket has an entry with its tag. The caller is as in
    /// [`find`](Self::find), which finds nothing if this says no. Not inlined, so that writers
    /// without an accelerator stay short.
    #[inline(never)]
    pub fn may_have(&self, keyhash: Keyhash) -> bool {
        has_tag(self.words(keyhash), keyhash)
    }

    /// Inserts a key. Returns false if its bucket is full. The caller holds the gate of the key's
    /// partition and writes the slot, and the key has no entry.
    pub fn insert(&self, keyhash: Keyhash, slot: usize) -> bool {
        let new = entry(keyhash, slot);
        self.replace(keyhash, 0, new)
    }

    /// Removes the entry of a key with this slot. The caller writes the slot.
    pub fn remove(&self, keyhash: Keyhash, slot: usize) {
        let removed = self.replace(keyhash, entry(keyhash, slot), 0);
        debug_assert!(removed, "the key of a slot has an entry");
    }

    /// Replaces the first entry in a key's bucket that is equal to `old`.
    fn replace(&self, keyhash: Keyhash, old: u32, new: u32) -> bool {
        let replace = |word| match halves(word) {
            [low, high] if low == old => Some(join([new, high])),
            [low, high] if high == old => Some(join([low, new])),
            _ => None,
        };
        let Bucket(words) = self.bucket(keyhash);
        let mut words = words.iter();
        words.any(|word| word.fetch_update(AcqRel, Relaxed, replace).is_ok())
    }

    #[inline(always)]
    fn words(&self, keyhash: Keyhash) -> [u64; 2] {
        let Bucket([first, second]) = self.bucket(keyhash);
        [first.load(Acquire), second.load(Acquire)]
    }

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash) -> &Bucket {
        &self.0[keyhash.bucket(self.0.len())]
    }
}

/// Whether one of the entries has the tag of a key. A quarter of the buckets have an entry, so a
/// branch for each of them would not be predictable.
#[inline(always)]
fn has_tag(words: [u64; 2], keyhash: Keyhash) -> bool {
    let wanted = entry(keyhash, 0) >> SLOT_BITS;
    let entries = words.into_iter().flat_map(halves);
    entries.fold(false, |has, found| has | (found >> SLOT_BITS == wanted))
}

#[inline(never)]
fn find_among(words: [u64; 2], keyhash: Keyhash, slots: &[Slot]) -> Option<usize> {
    words.into_iter().flat_map(halves).find_map(|found| {
        let slot = (found & 0xFFFF) as usize;
        let is_ours = found == entry(keyhash, slot) && slots.get(slot)?.keyhash() == keyhash;
        is_ours.then_some(slot)
    })
}

#[inline(always)]
fn entry(keyhash: Keyhash, slot: usize) -> u32 {
    let tag = keyhash.0 as u32 & ((1 << TAG_BITS) - 1);
    PRESENT | tag << SLOT_BITS | slot as u32
}

#[inline(always)]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[inline(always)]
fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
