//! The lossy concurrent hash index (MICA §4.3.2): buckets of 15 entries in two cache lines, and
//! spare buckets for the few that overflow.

mod bucket;
pub mod chained;
pub mod cuckoo;
mod entry;
mod tags;

pub use bucket::{BUCKET_ENTRIES, Bucket};
pub use entry::{Entry, LogId};
use tags::Matches;

use crate::memory::{PagePolicy, ZeroedSlice, prefetch_line};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;
use std::io;
use std::ops::Range;

/// Buckets in one chain at most. A reader that races with a writer may follow a link that is being
/// changed; this bounds how far.
pub const CHAIN_BUCKETS_MAX: usize = 8;

/// Main buckets, found by keyhash, and spare buckets, reached through a full main bucket.
pub struct Index {
    buckets: ZeroedSlice<Bucket>,
    mains: usize,
}

/// One entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The bucket that holds the entry, by number; main buckets come first.
    pub bucket: usize,
    /// Which of its entries.
    pub entry: usize,
}

impl Index {
    /// An empty index. No page is touched.
    pub fn new(
        mains: usize,
        spares: usize,
        policy: PagePolicy,
        node: Option<u32>,
    ) -> io::Result<Index> {
        assert!(mains >= 1 && mains + spares < u32::MAX as usize);
        Ok(Index {
            buckets: ZeroedSlice::new(mains + spares, policy, node)?,
            mains,
        })
    }

    /// The number of main buckets.
    pub fn mains(&self) -> usize {
        self.mains
    }

    /// The number of spare buckets; they are numbered from [`mains`](Index::mains) on.
    pub fn spares(&self) -> usize {
        self.buckets.len() - self.mains
    }

    /// Bytes of all buckets.
    pub fn bytes(&self) -> u64 {
        self.buckets.len() as u64 * size_of::<Bucket>() as u64
    }

    /// Bytes that the kernel was asked for beyond the buckets, to fill whole pages.
    pub fn rounding_bytes(&self) -> usize {
        self.addresses().len().saturating_sub(self.bytes() as usize)
    }

    /// The number of the main bucket that a key belongs to.
    #[inline(always)]
    pub fn home(&self, keyhash: Keyhash) -> usize {
        keyhash.bucket(self.mains)
    }

    /// A bucket by number.
    #[inline(always)]
    pub fn bucket(&self, number: usize) -> &Bucket {
        &self.buckets[number]
    }

    /// The numbers of a chain's buckets, beginning with the main bucket.
    #[inline(always)]
    pub fn chain(&self, home: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = Some(home);
        (0..CHAIN_BUCKETS_MAX).map_while(move |_| {
            let number = next?;
            next = self.bucket(number).next();
            Some(number)
        })
    }

    /// The entry in a slot.
    #[inline(always)]
    pub fn get(&self, slot: Slot) -> Entry {
        self.bucket(slot.bucket).entry(slot.entry)
    }

    /// The entries of the key's chain that bear its tag.
    #[inline(always)]
    pub fn candidates(&self, keyhash: Keyhash) -> Candidates<'_> {
        let (tag, number) = (keyhash.tag(), self.home(keyhash));
        let matches = self.bucket(number).tagged(tag);
        Candidates {
            index: self,
            tag,
            number,
            matches,
            buckets_left: CHAIN_BUCKETS_MAX - 1,
        }
    }

    /// Notes a read in an entry, unless the entry has changed: that there was one, and how many, up
    /// to `most`. Any thread may do this at any time: nothing else about the entry changes, and
    /// versions need not move.
    #[inline(always)]
    pub fn count_read(&self, slot: Slot, seen: Entry, most: u8) {
        if let Some(read) = seen.read_again(most) {
            let cell = self.bucket(slot.bucket).cell(slot.entry);
            let _ = cell.compare_exchange(seen.raw(), read.raw(), Relaxed, Relaxed);
        }
    }

    /// Notes a read as [`count_read`](Index::count_read) does, for the writer where nobody else
    /// counts.
    #[inline(always)]
    pub fn count_read_alone(&self, slot: Slot, seen: Entry, most: u8) {
        if let Some(read) = seen.read_again(most) {
            self.bucket(slot.bucket).set_entry(slot.entry, read);
        }
    }

    /// Fetches a bucket, both lines, without waiting for it.
    #[inline(always)]
    pub fn prefetch_bucket(&self, number: usize) {
        let bucket: *const Bucket = self.bucket(number);
        prefetch_line(bucket);
        prefetch_line(bucket.cast::<u8>().wrapping_add(64));
    }

    /// Fetches a key's main bucket, both lines, without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, keyhash: Keyhash) {
        self.prefetch_bucket(self.home(keyhash));
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.buckets.addresses()
    }
}

/// See [`Index::candidates`].
pub struct Candidates<'a> {
    index: &'a Index,
    tag: u16,
    number: usize,
    matches: Matches,
    buckets_left: usize,
}

impl Iterator for Candidates<'_> {
    type Item = (Slot, Entry);

    #[inline(always)]
    fn next(&mut self) -> Option<(Slot, Entry)> {
        loop {
            let bucket = self.index.bucket(self.number);
            if let Some(entry) = self.matches.next() {
                return Some((
                    Slot {
                        bucket: self.number,
                        entry,
                    },
                    bucket.entry(entry),
                ));
            }
            self.number = bucket.next().filter(|_| self.buckets_left > 0)?;
            self.buckets_left -= 1;
            self.matches = self.index.bucket(self.number).tagged(self.tag);
        }
    }
}
