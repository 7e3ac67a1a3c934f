//! What every table does with this index, whatever its heap is.

use super::ChainedIndex;
use crate::index::{Entry, Slot};
use crate::table::{Chain, Fetched, Index};
use glimmer_base::Keyhash;

impl Fetched for Entry {
    #[inline(always)]
    fn is_fetched(self) -> bool {
        Entry::is_fetched(self)
    }
}

impl Index for ChainedIndex {
    /// The number of a main bucket.
    type Place = usize;
    /// The same: its version covers its chain.
    type Lock = usize;
    type Slot = Slot;
    type Entry = Entry;

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> usize {
        self.home(self.shape(), keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, home: usize) {
        self.prefetch(home);
    }

    #[inline(always)]
    fn candidates(&self, home: usize, keyhash: Keyhash) -> impl Iterator<Item = (Slot, Entry)> {
        ChainedIndex::candidates(self, home, keyhash.tag())
    }

    #[inline(always)]
    fn lock(&self, home: usize, _slot: Slot) -> usize {
        home
    }

    #[inline(always)]
    fn write_begin(&self, home: usize, is_shared: bool) {
        self.bucket(home).write_begin(is_shared);
    }

    #[inline(always)]
    fn write_end(&self, home: usize, is_shared: bool) {
        self.bucket(home).write_end(is_shared);
    }

    #[inline(always)]
    fn clear(&self, slot: Slot) {
        self.set(slot, Entry::EMPTY);
    }

    #[inline(always)]
    fn count_read(&self, slot: Slot, entry: Entry, most: u8) {
        ChainedIndex::count_read(self, slot, entry, most);
    }

    #[inline(always)]
    fn count_read_alone(&self, slot: Slot, entry: Entry, most: u8) {
        ChainedIndex::count_read_alone(self, slot, entry, most);
    }

    fn chain(&self, number: usize) -> Option<Chain<usize, impl Iterator<Item = (Slot, Entry)>>> {
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
