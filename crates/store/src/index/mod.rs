//! The lossy concurrent hash index (MICA §4.3.2): buckets of 15 entries in two cache lines, and
//! spare buckets for the few that overflow.

mod bucket;
mod entry;
mod tags;

pub use bucket::{BUCKET_ENTRIES, Bucket};
pub use entry::{Entry, LogId};

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

    /// Calls `visit` with each entry of the chain that bears the key's tag, until it says that the
    /// entry was the right one.
    #[inline(always)]
    pub fn find<T>(
        &self,
        keyhash: Keyhash,
        mut visit: impl FnMut(Slot, Entry) -> Option<T>,
    ) -> Option<T> {
        let tag = keyhash.tag();
        for number in self.chain(self.home(keyhash)) {
            let bucket = self.bucket(number);
            for entry in bucket.tagged(tag) {
                let found = visit(
                    Slot {
                        bucket: number,
                        entry,
                    },
                    bucket.entry(entry),
                );
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Counts a read in an entry, unless the entry has changed or the count has reached `most`. Any
    /// thread may do this at any time: nothing else about the entry changes, and versions need
    /// not move.
    #[inline(always)]
    pub fn count_read(&self, slot: Slot, seen: Entry, most: u8) {
        if seen.reads() < most {
            let cell = self.bucket(slot.bucket).cell(slot.entry);
            let _ = cell.compare_exchange(
                seen.raw(),
                seen.with_reads(seen.reads() + 1).raw(),
                Relaxed,
                Relaxed,
            );
        }
    }

    /// Counts a read as [`count_read`](Index::count_read) does, for the writer where nobody else
    /// counts.
    #[inline(always)]
    pub fn count_read_alone(&self, slot: Slot, seen: Entry, most: u8) {
        if seen.reads() < most {
            self.bucket(slot.bucket)
                .set_entry(slot.entry, seen.with_reads(seen.reads() + 1));
        }
    }

    /// Fetches a key's main bucket, both lines, without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, keyhash: Keyhash) {
        let bucket: *const Bucket = self.bucket(self.home(keyhash));
        prefetch_line(bucket);
        prefetch_line(bucket.cast::<u8>().wrapping_add(64));
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.buckets.addresses()
    }
}
