//! What every table does with this index, whatever its heap is.

use super::ChainedIndex;
use crate::index::tags::Matches;
use crate::index::{Bucket, CHAIN_BUCKETS_MAX, Entry, Slot};
use crate::table::{Chain, Fetched, Index};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;

impl Fetched for Entry {
    #[inline(always)]
    fn is_fetched(self) -> bool {
        Entry::is_fetched(self)
    }
}

impl Index for ChainedIndex {
    /// The number of a main bucket.
    type Home = usize;
    /// The same: its version covers its chain.
    type Lock = usize;
    type Slot = Slot;
    type Entry = Entry;

    #[inline(always)]
    fn home(&self, keyhash: Keyhash) -> usize {
        self.home_in(self.shape(), keyhash)
    }

    #[inline(always)]
    fn prefetch(&self, home: usize) {
        self.prefetch_bucket(home);
    }

    /// Without an entry in the main bucket the item may be in a spare one, which is fetched
    /// instead.
    #[inline(always)]
    fn entries_to_fetch(&self, home: usize, keyhash: Keyhash) -> impl Iterator<Item = Entry> {
        let bucket = self.bucket(home);
        let mut places = bucket.tagged(keyhash.tag()).peekable();
        if places.peek().is_none()
            && let Some(spare) = self.behind(home)
        {
            self.prefetch_spare(spare);
        }
        places.map(|place| bucket.entry(place))
    }

    #[inline(always)]
    fn try_read<T>(&self, keyhash: Keyhash, read: impl FnOnce(usize) -> T) -> Option<T> {
        let shape = self.shape();
        let number = self.home_in(shape, keyhash);
        let home = self.bucket(number);
        let version = home.read_begin()?;
        let taken = read(number);
        (home.read_unchanged(version) && self.shape_is(shape)).then_some(taken)
    }

    #[inline(always)]
    fn candidates(&self, home: usize, keyhash: Keyhash) -> impl Iterator<Item = (Slot, Entry)> {
        let (bucket, tag) = (self.bucket(home), keyhash.tag());
        Candidates {
            index: self,
            tag,
            number: home,
            bucket,
            matches: bucket.tagged(tag),
            buckets_left: CHAIN_BUCKETS_MAX - 1,
        }
    }

    #[inline(always)]
    fn lock(&self, home: usize, _slot: Slot) -> usize {
        home
    }

    #[inline(always)]
    fn change<T>(&self, home: usize, shared: bool, change: impl FnOnce() -> T) -> T {
        let main = shared.then(|| self.bucket(home));
        main.inspect(|main| main.write_begin(true));
        let changed = change();
        main.inspect(|main| main.write_end(true));
        changed
    }

    #[inline(always)]
    fn clear(&self, slot: Slot) {
        self.set(slot, Entry::EMPTY);
    }

    /// Nothing else about the entry changes, and versions need not move. If the bucket has left the
    /// index by now, its memory is withheld until the batch is over (see
    /// [`Border`](super::Border)).
    #[inline(always)]
    fn count_read(&self, slot: Slot, seen: Entry, most: u8) {
        let read = seen.read_again(most);
        if read != seen {
            let cell = self.bucket(slot.bucket).cell(slot.entry);
            let _ = cell.compare_exchange(seen.raw(), read.raw(), Relaxed, Relaxed);
        }
    }

    #[inline(always)]
    fn count_read_alone(&self, slot: Slot, seen: Entry, most: u8) {
        self.set_changed(slot, seen, seen.read_again(most));
    }

    fn walk(&self, number: usize) -> Option<Chain<usize, impl Iterator<Item = (Slot, Entry)>>> {
        let mains = self.mains();
        (number < mains).then(|| {
            let home = self.main(number);
            Chain {
                lock: home,
                entries: self.slots(home),
                next: Some(number + 1).filter(|&next| next < mains),
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
