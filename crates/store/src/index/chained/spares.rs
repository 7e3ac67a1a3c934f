//! The free list of spare buckets.

use super::ChainedIndex;
use crate::index::Entry;

/// The writer's list of them. Their links lie in the buckets themselves: forwards where a chain's
/// link lies, backwards in the first entry.
#[derive(Default)]
pub struct FreeList {
    first: Option<usize>,
    /// Spare buckets of the main buckets below this one have been taken or listed before.
    looked_at: usize,
}

impl FreeList {
    /// The list as two words, for [`of_words`](Self::of_words).
    pub fn words(&self) -> [u64; 2] {
        let first = self.first.map_or(0, |number| number as u64 + 1);
        [first, self.looked_at as u64]
    }

    /// The list that had these words. None if they are those of no list of this index.
    pub fn of_words([first, looked_at]: [u64; 2], index: &ChainedIndex) -> Option<FreeList> {
        let first = (first as usize).checked_sub(1);
        let looked_at = looked_at as usize;
        let is_list = first.is_none_or(|first| index.is_spare(first));
        (is_list && looked_at <= index.mains()).then_some(FreeList { first, looked_at })
    }

    /// The spare buckets that no chain holds, where nothing else is known of them.
    pub fn rebuilt(index: &ChainedIndex, is_in_chain: impl Fn(usize) -> bool) -> FreeList {
        let mut list = FreeList {
            first: None,
            looked_at: index.mains(),
        };
        let spares = (0..index.mains()).filter_map(|main| index.spare_of(main));
        for number in spares.filter(|&number| !is_in_chain(number)) {
            list.give_back(index, number);
        }
        list
    }

    /// Takes a spare bucket, empty and without a link, for the chain that begins at `home`, if
    /// there is one.
    pub fn take(&mut self, index: &ChainedIndex, home: usize) -> Option<usize> {
        let number = self.take_any(index)?;
        index.bucket(number).set_owner(Some(home));
        Some(number)
    }

    fn take_any(&mut self, index: &ChainedIndex) -> Option<usize> {
        if let Some(number) = self.first {
            self.unlink(index, number);
            return Some(number);
        }
        let mains = index.shape().mains();
        while self.looked_at < mains {
            self.looked_at += 1;
            if let Some(number) = index.spare_of(self.looked_at - 1) {
                return Some(number);
            }
        }
        None
    }

    /// Takes back a bucket that no chain holds any more.
    pub fn give_back(&mut self, index: &ChainedIndex, number: usize) {
        let bucket = index.bucket(number);
        bucket.make_empty_spare();
        bucket.set_next(self.first);
        if let Some(first) = self.first {
            index.bucket(first).set_entry(0, back_link(Some(number)));
        }
        self.first = Some(number);
    }

    /// The numbers of all free buckets.
    pub fn free_numbers(&self, index: &ChainedIndex) -> impl Iterator<Item = usize> {
        let listed = std::iter::successors(self.first, |&number| index.bucket(number).next());
        let fresh = self.looked_at..index.shape().mains();
        listed.chain(fresh.filter_map(|main| index.spare_of(main)))
    }

    /// Takes out the spare bucket that came with the last of the main ones and is in no chain: both
    /// are to leave the index.
    pub fn remove_last(&mut self, index: &ChainedIndex, number: usize) {
        if self.looked_at == index.mains() {
            self.unlink(index, number);
        }
    }

    /// The last of the main buckets is to leave the index, and the spare one that came with it is
    /// in no list.
    pub fn forget_last(&mut self, index: &ChainedIndex) {
        self.looked_at = self.looked_at.min(index.mains() - 1);
    }

    /// Takes a certain bucket out of the list.
    fn unlink(&mut self, index: &ChainedIndex, number: usize) {
        let bucket = index.bucket(number);
        let (next, before) = (bucket.next(), bucket.entry(0).raw().checked_sub(1));
        match before {
            Some(before) => index.bucket(before as usize).set_next(next),
            None => self.first = next,
        }
        if let Some(next) = next {
            let before = before.map(|number| number as usize);
            index.bucket(next).set_entry(0, back_link(before));
        }
        bucket.set_entry(0, Entry::EMPTY);
        bucket.set_next(None);
    }
}

fn back_link(to: Option<usize>) -> Entry {
    Entry::from_raw(to.map_or(0, |number| number as u64 + 1))
}
