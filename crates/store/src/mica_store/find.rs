//! Which entries are live, and where their items lie.

use super::name::Name;
use super::{Found, Shared, Writer};
use crate::access::Access;
use crate::heap::Item;
use crate::index::Entry;
use crate::index::chained::ChainedIndex;
use crate::memory::Words;
use crate::table::{self, Common, Taken};
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};
use std::ops::Range;

impl Found<'_> {
    /// Where in the heap the item lies.
    #[inline(always)]
    pub(super) fn at(&self) -> usize {
        Name::of(self.entry).at
    }
}

impl Shared {
    /// Whether an entry names an item: it is there, and no flush has come over it.
    #[inline(always)]
    pub(super) fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && Name::of(entry).generation == self.generation()
    }

    /// The number of the key's main bucket now.
    #[inline(always)]
    pub(super) fn place(&self, keyhash: Keyhash) -> usize {
        self.index.home(self.index.shape(), keyhash)
    }
}

impl table::Shared for Shared {
    type Index = ChainedIndex;

    #[inline(always)]
    fn index(&self) -> &ChainedIndex {
        &self.index
    }

    #[inline(always)]
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.space.item_words_max()
    }

    #[inline(always)]
    fn words(&self, entry: Entry) -> Option<Words<'_>> {
        self.is_live(entry)
            .then(|| self.space.place(Name::of(entry).at))
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, home: usize) {
        for entry in self.index.entries_to_fetch(home, keyhash.tag()) {
            let at = Name::of(entry).at;
            self.common.prefetch(at, |word| self.space.prefetch(word));
        }
    }

    /// The argument why what it returns is neither torn nor stale nor another item's stands at
    /// [`Bucket`](crate::index::Bucket) and in the [module's text](super).
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        _flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Taken<T, Self>> {
        let generation = self.generation();
        let read = |home| self.take(home, keyhash, key, now, take);
        let taken = self.index.try_read(keyhash, read)?;
        let unchanged = weakened("generation_recheck") || self.generation() == generation;
        unchanged.then_some(taken)
    }

    fn heap_bytes(&self) -> u64 {
        8 * self.index.border() as u64
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        vec![self.space.addresses()]
    }
}

impl<A: Access> Writer<'_, A> {
    /// The chain that a key belongs to.
    #[inline(always)]
    pub(super) fn home(&self, keyhash: Keyhash) -> usize {
        self.shared.place(keyhash)
    }
}
