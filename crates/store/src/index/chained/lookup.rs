//! What every table does with this index, whatever its heap is.

use super::{ChainedIndex, Shape};
use crate::index::tags::Matches;
use crate::index::{BUCKET_ENTRIES, Bucket, CHAIN_BUCKETS_MAX, Entry, Slot};
use crate::table::{Chain, Fetched, Index};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, in_program_order, weakened};

impl Fetched for Entry {
    #[inline(always)]
    fn is_fetched(self) -> bool {
        Entry::is_fetched(self)
    }
}

/// Where a key's entry can be: in the chain of one main bucket.
///
/// ```text
///  63          32 31    16 15             0
/// +--------------+--------+----------------+
/// |     line     |  tag   | place, or none |
/// +--------------+--------+----------------+
/// ```
///
/// The second word is one number, so that a home stays in registers. The line is the one of the
/// memory on which the main bucket begins. The place is that of the entry that is looked at first:
/// one of the main bucket's, or, counted from `BEHIND` on, one of the bucket's behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeBucket {
    /// The shape in which this is the key's chain. The default is no index's.
    shape: Shape,
    at: u64,
}

/// No place of a bucket.
const NOWHERE: u64 = BUCKET_ENTRIES as u64;
/// The first place of the bucket behind the main one.
const BEHIND: u64 = NOWHERE + 1;
/// The part of a home's second word that is the place.
const PLACE: u64 = u16::MAX as u64;

impl HomeBucket {
    #[inline(always)]
    fn new(shape: Shape, line: usize, tag: u16) -> HomeBucket {
        let at = (line as u64) << 32 | u64::from(tag) << 16 | NOWHERE;
        HomeBucket { shape, at }
    }

    #[inline(always)]
    fn line(self) -> usize {
        (self.at >> 32) as usize
    }

    #[inline(always)]
    fn tag(self) -> u16 {
        (self.at >> 16) as u16
    }

    /// The tag in the upper half. What is in the lower half does not matter.
    #[inline(always)]
    fn tag_and_place(self) -> u32 {
        self.at as u32
    }

    /// Whether an entry bears the tag.
    #[inline(always)]
    fn is_tag_of(self, entry: Entry) -> bool {
        (self.tag_and_place() ^ entry.tag_and_more()) >> 16 == 0
    }

    #[inline(always)]
    fn place(self) -> u64 {
        self.at & PLACE
    }

    #[inline(always)]
    fn set_place(&mut self, place: u64) {
        self.at = self.at & !PLACE | place;
    }
}

impl Default for HomeBucket {
    fn default() -> Self {
        HomeBucket::new(Shape::default(), 0, 0)
    }
}

impl ChainedIndex {
    /// The number of a home's main bucket.
    #[inline(always)]
    pub fn chain_of(&self, home: HomeBucket) -> usize {
        self.number_on(home.line())
    }

    /// The home of a key after the index has changed its shape. Apart, so that no part of it is
    /// reckoned before it is known to be wanted.
    #[cold]
    #[inline(never)]
    fn home_elsewhere(&self, keyhash: Keyhash) -> HomeBucket {
        self.home(keyhash)
    }
}

impl Index for ChainedIndex {
    type HomeBucket = HomeBucket;
    /// The number of a main bucket: its version covers its chain.
    type Lock = usize;
    type Slot = Slot;
    type Cell<'a> = &'a AtomicU64;
    type Entry = Entry;

    #[inline(always)]
    fn home(&self, keyhash: Keyhash) -> HomeBucket {
        let shape = self.shape();
        let line = self.line_of(self.home_in(shape, keyhash));
        HomeBucket::new(shape, line, keyhash.tag())
    }

    /// The main bucket follows from the shape and the keyhash, the tag from the keyhash alone.
    #[inline(always)]
    fn home_again(&self, home: HomeBucket, keyhash: Keyhash) -> HomeBucket {
        let is_known = home.shape != Shape::default();
        match home.shape == self.shape() || (is_known && weakened("home_recheck")) {
            true => home,
            false => self.home_elsewhere(keyhash),
        }
    }

    #[inline(always)]
    fn prefetch(&self, home: HomeBucket) {
        self.prefetch_bucket_on(home.line());
    }

    /// Without an entry in the main bucket the item may be in a spare one, which is fetched
    /// instead.
    #[inline(always)]
    fn seek(&self, home: &mut HomeBucket, mut meet: impl FnMut(Entry)) -> bool {
        let bucket = self.bucket_on(home.line());
        let mut places = bucket.tagged_as(home.tag_and_place());
        let Some(first) = places.next() else {
            let spare = self.behind(self.chain_of(*home));
            if let Some(spare) = spare {
                self.prefetch_spare(spare);
            }
            return spare.is_some();
        };
        home.set_place(first as u64);
        meet(bucket.entry(first));
        places.for_each(|place| meet(bucket.entry(place)));
        false
    }

    /// Few chains have more than one spare bucket.
    #[inline(always)]
    fn seek_behind(&self, home: &mut HomeBucket, mut meet: impl FnMut(Entry)) {
        let Some(spare) = self.behind(self.chain_of(*home)) else {
            return;
        };
        let bucket = self.bucket(spare);
        let mut places = bucket.tagged_spare(home.tag());
        if let Some(first) = places.next() {
            home.set_place(BEHIND + first as u64);
            meet(bucket.entry(first));
            places.for_each(|place| meet(bucket.entry(place)));
        }
    }

    /// Which bucket is behind the main one may have changed since the home was made.
    #[inline(always)]
    fn carried(&self, home: HomeBucket, _keyhash: Keyhash) -> Option<((Slot, Entry), &AtomicU64)> {
        let place = home.place();
        let (line, place, cell) = if place < NOWHERE {
            let (line, place) = (home.line(), place as usize);
            (line, place, self.bucket_on(line).cell(place))
        } else {
            let place = place.checked_sub(BEHIND)? as usize;
            let line = self.line_of(self.behind(self.chain_of(home))?);
            (line, place, self.bucket_on(line).cell(place))
        };
        let entry = Entry::in_cell(cell);
        let slot = Slot {
            bucket: self.number_on(line),
            entry: place,
        };
        home.is_tag_of(entry).then_some(((slot, entry), cell))
    }

    #[inline(always)]
    fn cell(&self, slot: Slot) -> &AtomicU64 {
        self.bucket(slot.bucket).cell(slot.entry)
    }

    #[inline(always)]
    fn try_read<T>(
        &self,
        home: HomeBucket,
        keyhash: Keyhash,
        read: impl FnOnce(HomeBucket) -> T,
    ) -> Option<T> {
        let home = self.home_again(home, keyhash);
        let bucket = self.bucket_on(home.line());
        let version = bucket.read_begin()?;
        let taken = read(home);
        (bucket.read_unchanged(version) && self.shape_is(home.shape)).then_some(taken)
    }

    #[inline(always)]
    fn candidates(
        &self,
        home: HomeBucket,
        _keyhash: Keyhash,
    ) -> impl Iterator<Item = (Slot, Entry)> {
        let (bucket, tag) = (self.bucket_on(home.line()), home.tag());
        Candidates {
            index: self,
            tag,
            number: self.chain_of(home),
            bucket,
            matches: bucket.tagged(tag),
            buckets_left: CHAIN_BUCKETS_MAX - 1,
        }
    }

    #[inline(always)]
    fn lock(&self, home: HomeBucket, _slot: Slot) -> usize {
        self.chain_of(home)
    }

    #[inline(always)]
    fn begin_change(&self, home: usize, shared: bool) {
        if shared {
            self.bucket(home).write_begin(true);
        }
        in_program_order();
    }

    #[inline(always)]
    fn end_change(&self, home: usize, shared: bool) {
        if shared {
            self.bucket(home).write_end(true);
        }
        in_program_order();
    }

    #[inline(always)]
    fn clear(&self, slot: Slot) {
        self.set(slot, Entry::EMPTY);
    }

    /// Nothing else about the entry changes, and versions need not move. If the bucket has left the
    /// index by now, its memory is withheld until the batch is over (see
    /// [`Border`](super::Border)).
    #[inline(always)]
    fn count_read(&self, cell: &AtomicU64, seen: Entry, most: u8) {
        let read = seen.read_again(most);
        if read != seen {
            let _ = cell.compare_exchange(seen.raw(), read.raw(), Relaxed, Relaxed);
        }
    }

    #[inline(always)]
    fn count_read_alone(&self, cell: &AtomicU64, seen: Entry, most: u8) {
        self.set_changed(cell, seen, seen.read_again(most));
    }

    /// A number is a root and a place among the keys of that root. The place is the tag with its
    /// bits in reverse, so that a chain has neighbouring places, also when it is split or joined
    /// with another: a walk passes each place once, and misses no key for what the index does
    /// meanwhile. It may meet one twice.
    fn walk(&self, number: usize) -> Option<Chain<usize, impl Iterator<Item = (Slot, Entry)>>> {
        let (root, place) = (number >> u16::BITS, number & usize::from(u16::MAX));
        (root < self.roots).then(|| {
            let tag = usize::from((place as u16).reverse_bits());
            let (main, bits) = self.main_with(self.shape(), root, tag);
            let home = self.main(main);
            let places = 1 << (u16::BITS - bits);
            // After the last place, that is the first of the next root.
            let next = (number / places + 1) * places;
            Chain {
                lock: home,
                entries: self.slots(home),
                next: Some(next).filter(|next| next >> u16::BITS < self.roots),
            }
        })
    }

    fn bytes(&self) -> u64 {
        8 * self.words() as u64
    }
}

/// The entries of a chain that bear a tag.
struct Candidates<'a> {
    index: &'a ChainedIndex,
    tag: u16,
    number: usize,
    bucket: &'a Bucket,
    matches: Matches,
    buckets_left: usize,
}

impl Iterator for Candidates<'_> {
    type Item = (Slot, Entry);

    #[inline(always)]
    fn next(&mut self) -> Option<(Slot, Entry)> {
        loop {
            if let Some(entry) = self.matches.next() {
                let slot = Slot {
                    bucket: self.number,
                    entry,
                };
                return Some((slot, self.bucket.entry(entry)));
            }
            let behind = self.bucket.next()?;
            if self.buckets_left == 0 || behind >= self.index.capacity {
                return None;
            }
            self.buckets_left -= 1;
            self.number = behind;
            self.bucket = self.index.bucket(behind);
            self.matches = self.bucket.tagged_spare(self.tag);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::heap::Offset;
    use crate::index::LogId;
    use crate::index::chained::{BUCKET_WORDS, FreeList};
    use crate::memory::{PagePolicy, ZeroedSlice};

    /// The second stage meets what is in the main bucket, and the third what is in the spare one
    /// behind it; neither meets another key's entry.
    #[test]
    fn the_stages_meet_the_entry_wherever_it_stands() {
        let memory = ZeroedSlice::new(16 * BUCKET_WORDS, PagePolicy::Small, None).unwrap();
        let index = ChainedIndex::new(memory, 1, (1, 1));
        let entry = |tag| Entry::new(tag, LogId::Main, Offset::from_raw(tag.into()), 0);
        // The tag stands in the low bits of a keyhash.
        let keyhash = |tag: u16| Keyhash(tag.into());
        let met = |tag| {
            let (mut home, mut met, mut behind) = (index.home(keyhash(tag)), vec![], vec![]);
            if index.seek(&mut home, |entry| met.push(entry)) {
                index.seek_behind(&mut home, |entry| behind.push(entry));
            }
            (met, behind)
        };
        let chain = index.main(0);
        let mut tags = 1..;
        for (slot, _) in index.slots(chain).collect::<Vec<_>>() {
            index.set(slot, entry(tags.next().unwrap()));
        }
        assert_eq!(met(1), (vec![entry(1)], vec![]));
        assert_eq!(met(999), (vec![], vec![]), "there is no spare bucket");

        let spare = FreeList::default().take(&index, chain).unwrap();
        index.bucket(chain).set_next(Some(spare));
        let behind: Vec<u16> = tags.take(ChainedIndex::entries_of(chain, spare)).collect();
        for (at, &tag) in behind.iter().enumerate() {
            index.bucket(spare).set_entry(at, entry(tag));
        }
        for tag in 1..behind[0] {
            assert_eq!(met(tag), (vec![entry(tag)], vec![]));
        }
        for tag in behind {
            assert_eq!(met(tag), (vec![], vec![entry(tag)]));
        }
        assert_eq!(met(999), (vec![], vec![]));
    }
}
