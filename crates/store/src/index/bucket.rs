//! One bucket: a version, a link to a spare bucket, and 15 entries, in two cache lines. A spare
//! bucket has one line and 7 entries, because most chains that need one need little of it.
//!
//! # How an optimistic reader knows that nothing changed under it
//!
//! The version of the *main* bucket covers the whole chain and, for updates in place, the items
//! that it names. One writer at a time (the owner, or under CRCW the thread that holds the
//! partition's lock):
//!
//! 1. makes the version odd, then a release fence ([`write_begin`](Bucket::write_begin));
//! 2. changes entries, links, or an item in place, all with relaxed stores;
//! 3. makes the version even again with a release store ([`write_end`](Bucket::write_end)).
//!
//! A reader:
//!
//! 1. loads the version with acquire ([`read_begin`](Bucket::read_begin)); odd means start over;
//! 2. reads entries and copies the item, all with relaxed loads;
//! 3. runs an acquire fence and loads the version again
//!    ([`read_unchanged`](Bucket::read_unchanged)); unequal means start over.
//!
//! *Not torn:* if a load of step 2 saw a store of a writer's step 2, the writer's release fence and
//! the reader's acquire fence synchronise, so the reader's last load sees the odd version or a
//! later one and the check fails. *Not stale:* the first load, if it reads an even version,
//! synchronises with the writer's last step, so step 2 sees everything written up to that version;
//! a write that was acknowledged before the read began happened before it, so its version is
//! seen. *Not foreign:* an entry names an item by offset, and the item's key is compared; the space
//! under the offset may have been given to another item only after a head beyond it was published,
//! which the reader checks as well (see [`CircularLog`](crate::heap::CircularLog)), so a key that
//! matched and a value that belongs to another item cannot both survive.

use super::entry::Entry;
use super::tags;
use crate::memory::ZeroAtomics;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, fence, in_program_order, weakened};

/// Entries of a bucket: as many as two cache lines hold, and fewer under loom, which would
/// otherwise have to try every order in which a reader may see that many.
pub const BUCKET_ENTRIES: usize = if cfg!(loom) { 5 } else { 15 };

/// Words of a main bucket.
pub const BUCKET_WORDS: usize = 1 + BUCKET_ENTRIES;

/// Words of a spare bucket.
pub const SPARE_WORDS: usize = BUCKET_WORDS / 2;

/// Entries of a spare bucket.
pub const SPARE_ENTRIES: usize = SPARE_WORDS - 1;

/// The part of a bucket's first word that is the version.
const VERSION: u64 = u32::MAX as u64;

/// Numbers that the buckets of one index have at most: a spare bucket takes one of them, a main one
/// two. A bucket keeps the number of another one, plus one, in half a word. Three are left over, so
/// that the number after the last main bucket's and its spare one's is below 2^32 as well.
pub const BUCKETS_MAX: usize = u32::MAX as usize - 3;

const _: () = assert!(
    BUCKETS_MAX as u64 <= VERSION,
    "the largest number, plus one, fits in the half of the head that the version leaves"
);

/// See the module's text. Under EREW versions are not touched.
///
/// A spare bucket is seen as one of these too, so that a chain is walked without telling them
/// apart. Its entries are the first [`SPARE_ENTRIES`]. The words after them belong to another
/// bucket.
#[cfg_attr(not(any(loom, miri)), repr(C, align(64)))]
#[cfg_attr(any(loom, miri), repr(C))]
pub struct Bucket {
    /// The version in the low half; in the high half, the number of the next bucket of the chain
    /// plus one, or zero for none. One word, so that a bucket is nothing but words and may lie
    /// where items lay before.
    head: AtomicU64,
    entries: [AtomicU64; BUCKET_ENTRIES],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 128);

// SAFETY: all fields are atomic integers, without padding between them.
unsafe impl ZeroAtomics for Bucket {
    fn zero() -> Bucket {
        Bucket {
            head: AtomicU64::new(0),
            entries: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Bucket {
    /// Words as a bucket.
    ///
    /// # Safety
    ///
    /// The words are aligned as a bucket is.
    #[inline(always)]
    pub(super) unsafe fn of(words: &[AtomicU64; BUCKET_WORDS]) -> &Bucket {
        debug_assert!(core::ptr::from_ref(words).cast::<Bucket>().is_aligned());
        // SAFETY: a bucket is these words in this order, as `repr(C)` has it; the caller answers
        // for the alignment.
        unsafe { &*core::ptr::from_ref(words).cast() }
    }

    /// Makes an empty main bucket of whatever was there. Its version is even.
    pub fn make_empty(&self) {
        self.head.store(0, Relaxed);
        for cell in &self.entries {
            cell.store(0, Relaxed);
        }
    }

    /// Makes an empty spare bucket, in no chain, of whatever was there.
    pub fn make_empty_spare(&self) {
        self.head.store(0, Relaxed);
        for cell in &self.entries[..SPARE_ENTRIES] {
            cell.store(0, Relaxed);
        }
    }

    /// The entry at a place below [`BUCKET_ENTRIES`].
    #[inline(always)]
    pub fn entry(&self, at: usize) -> Entry {
        Entry::from_raw(self.entries[at].load(Relaxed))
    }

    /// The chain that a spare bucket is in, as the number of its main bucket; none if it is in
    /// none. A spare bucket has no use for its version.
    pub fn owner(&self) -> Option<usize> {
        (self.head.load(Relaxed) as u32 as usize).checked_sub(1)
    }

    /// See [`owner`](Bucket::owner).
    pub fn set_owner(&self, home: Option<usize>) {
        let owner = home.map_or(0, |number| number as u64 + 1);
        let next = self.head.load(Relaxed) & !VERSION;
        self.head.store(next | owner, Relaxed);
    }

    #[inline(always)]
    pub(super) fn cell(&self, at: usize) -> &AtomicU64 {
        &self.entries[at]
    }

    /// Changes an entry; only between [`write_begin`](Bucket::write_begin) and
    /// [`write_end`](Bucket::write_end) of the chain's main bucket.
    #[inline(always)]
    pub fn set_entry(&self, at: usize, entry: Entry) {
        self.entries[at].store(entry.raw(), Relaxed);
    }

    /// The first `count` entries, in order.
    #[inline(always)]
    pub fn entries(&self, count: usize) -> impl Iterator<Item = Entry> + '_ {
        self.entries[..count]
            .iter()
            .map(|cell| Entry::from_raw(cell.load(Relaxed)))
    }

    /// The places of a main bucket's entries with this tag, lowest first.
    #[inline(always)]
    pub fn tagged(&self, tag: u16) -> tags::Matches {
        self.tagged_as(u32::from(tag) << 16)
    }

    /// The same for a tag in the upper half of a word. What is in the lower half does not matter.
    #[inline(always)]
    pub(super) fn tagged_as(&self, tag_and_more: u32) -> tags::Matches {
        tags::matching(self, tag_and_more)
    }

    /// The places of a spare bucket's entries with this tag, lowest first.
    #[inline(always)]
    pub fn tagged_spare(&self, tag: u16) -> tags::Matches {
        tags::matching_spare(self, u32::from(tag) << 16)
    }

    /// Number of the next bucket of the chain.
    #[inline(always)]
    pub fn next(&self) -> Option<usize> {
        ((self.head.load(Relaxed) >> 32) as usize).checked_sub(1)
    }

    /// Links another bucket after this one, or none, under the same rule as
    /// [`set_entry`](Bucket::set_entry).
    pub fn set_next(&self, next: Option<usize>) {
        let next = next.map_or(0, |number| number as u64 + 1);
        let version = self.head.load(Relaxed) & VERSION;
        self.head.store(next << 32 | version, Relaxed);
    }

    /// Begins a change. `shared`: whether optimistic readers exist.
    #[inline(always)]
    pub fn write_begin(&self, shared: bool) {
        if shared {
            self.head.store(self.head_of_next_version(), Relaxed);
            if !weakened("version_release_fence") {
                fence(Release);
            }
        }
        in_program_order();
    }

    /// Ends a change.
    #[inline(always)]
    pub fn write_end(&self, shared: bool) {
        if shared {
            let order = if weakened("version_release_store") {
                Relaxed
            } else {
                Release
            };
            self.head.store(self.head_of_next_version(), order);
        }
        in_program_order();
    }

    /// Has the version be even: nobody is at work.
    pub fn calm(&self) {
        let head = self.head.load(Relaxed);
        if head & 1 != 0 {
            self.head.store(head & !1, Relaxed);
        }
    }

    #[inline(always)]
    fn head_of_next_version(&self) -> u64 {
        let head = self.head.load(Relaxed);
        head & !VERSION | head.wrapping_add(1) & VERSION
    }

    /// The version to read under, unless a writer is at work.
    #[inline(always)]
    pub fn read_begin(&self) -> Option<u32> {
        let order = if weakened("version_acquire_load") {
            Relaxed
        } else {
            Acquire
        };
        let version = self.head.load(order) as u32;
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether everything read since [`read_begin`](Bucket::read_begin) belongs to that version.
    /// Also orders the caller's later loads of a log's head after its copy.
    #[inline(always)]
    pub fn read_unchanged(&self, version: u32) -> bool {
        if !weakened("reader_acquire_fence") {
            fence(Acquire);
        }
        weakened("version_recheck") || self.head.load(Relaxed) as u32 == version
    }
}
