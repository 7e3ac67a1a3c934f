//! Finding an item: tag, generation, key.

use super::name::Name;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::Item;
use crate::index::chained::Shape;
use crate::index::{Entry, Slot};
use crate::table::Absence;
use crate::table::expired;
use glimmer_base::{Keyhash, Moment};

/// Where an item was found.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub slot: Slot,
    pub entry: Entry,
    pub at: usize,
    pub item: Item<'a>,
}

impl Found<'_> {
    /// Words that the item takes.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.item.words()
    }
}

impl Shared {
    /// Whether an entry names an item: it is there, and no flush has come over it.
    #[inline(always)]
    pub(super) fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && Name::of(entry).generation == self.generation()
    }

    /// The chain that a key belongs to.
    #[inline(always)]
    pub(super) fn home(&self, shape: Shape, keyhash: Keyhash) -> usize {
        self.index.home(shape, keyhash)
    }

    /// Finds the key's item in a chain, expired or not. Safe to run while a writer works; what it
    /// finds is then to be validated.
    #[inline(always)]
    pub(super) fn find(&self, home: usize, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_>> {
        let generation = self.generation();
        for (slot, entry) in self.index.candidates(home, keyhash.tag()) {
            let name = Name::of(entry);
            // A racing reader may meet an entry that was emptied after its tag was compared.
            if entry.is_empty() || name.generation != generation {
                continue;
            }
            if let Some(item) = Item::of_key(self.space.place(name.at), key) {
                return Some(Found {
                    slot,
                    entry,
                    at: name.at,
                    item,
                });
            }
        }
        None
    }

    /// Why a read has just found nothing. What a flush has passed by is forgotten at once: its place is anybody's.
    pub(super) fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        let home = self.home(self.index.shape(), keyhash);
        match self.find(home, keyhash, key) {
            Some(_) => Absence::Expired,
            None => Absence::Other,
        }
    }

    /// The number of the key's main bucket now.
    #[inline(always)]
    pub(super) fn place(&self, keyhash: Keyhash) -> usize {
        self.home(self.index.shape(), keyhash)
    }

    /// Fetches the lines of every item in the key's main bucket that bears its tag: those that an
    /// item of the usual size has, three at most. If there is none, the item may be in a spare
    /// bucket, which is fetched instead.
    #[inline(always)]
    pub(super) fn prefetch_item(&self, keyhash: Keyhash, home: usize) {
        let bucket = self.index.bucket(home);
        let last_word = self.usual_words.get().clamp(1, 16) as usize - 1;
        let mut places = bucket.tagged(keyhash.tag()).peekable();
        if places.peek().is_none() {
            if let Some(spare) = self.index.behind(home) {
                self.index.prefetch(spare);
            }
            return;
        }
        for place in places {
            let at = Name::of(bucket.entry(place)).at;
            self.space.prefetch(at);
            self.space.prefetch(at + last_word);
            if last_word > 8 {
                self.space.prefetch(at + 8);
            }
        }
    }
}

impl<A: Access> Writer<'_, A> {
    /// The chain that a key belongs to.
    #[inline(always)]
    pub(super) fn home(&self, keyhash: Keyhash) -> usize {
        self.shared.home(self.shared.index.shape(), keyhash)
    }

    /// Finds the key's item, unless it has expired.
    #[inline(always)]
    pub fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Item<'_>> {
        let found = self.shared.find(self.home(keyhash), keyhash, key)?;
        (!expired(&found.item, now)).then_some(found.item)
    }
}
