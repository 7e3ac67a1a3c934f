//! Finding an item: tag, liveness, key.

use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::heap::{Item, Offset};
use crate::index::chained::Shape;
use crate::index::{Entry, Slot};
use crate::table::Absence;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::{Keyhash, Moment};

/// Where an item was found.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub(super) slot: Slot,
    pub(super) entry: Entry,
    /// The item itself.
    pub item: Item<'a>,
}

impl Shared {
    /// The chain that a key belongs to.
    #[inline(always)]
    pub(super) fn home(&self, shape: Shape, keyhash: Keyhash) -> usize {
        self.index.home(shape, keyhash)
    }

    /// Finds the key's item in a chain, expired or not. Safe to run while a writer works; what it
    /// finds is then to be validated.
    #[inline(always)]
    pub(super) fn find(&self, home: usize, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_>> {
        for (slot, entry) in self.index.candidates(home, keyhash.tag()) {
            // A racing reader may meet an entry that was emptied after its tag was compared.
            if !self.is_live(entry) {
                continue;
            }
            let log = self.log(entry.log());
            if let Some(item) =
                Item::of_key(log.place(log.geometry().position(entry.offset())), key)
            {
                return Some(Found { slot, entry, item });
            }
        }
        None
    }

    /// Why a read has just found nothing. Only what bears the key's tag is looked at, so that a plain miss costs one look at its bucket.
    #[inline(always)]
    pub(super) fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        let home = self.home(self.index.shape(), keyhash);
        for (_, entry) in self.index.candidates(home, keyhash.tag()) {
            let log = self.log(entry.log());
            let is_live = log.is_live(entry.offset());
            if entry.is_empty() || !is_live && !self.is_flushed(entry) {
                continue;
            }
            let item = Item::read(log.place(log.geometry().position(entry.offset())));
            if item.is_some_and(|item| item.key_is(key)) {
                return if is_live {
                    Absence::Expired
                } else {
                    Absence::Flushed
                };
            }
        }
        Absence::Other
    }

    /// Whether the last flush passed an item by, of which the index still knows.
    fn is_flushed(&self, entry: Entry) -> bool {
        let id = entry.log() as usize;
        let [from, to] = [&self.flushed_from, &self.flushed_to]
            .map(|places| Offset::from_raw(places[id].load(Relaxed)));
        let (geometry, offset) = (self.logs[id].geometry(), entry.offset());
        from != to
            && geometry.is_live(offset, from)
            && geometry.distance(from, offset) < geometry.distance(from, to)
    }

    /// The number of the key's main bucket now.
    #[inline(always)]
    pub(super) fn place(&self, keyhash: Keyhash) -> usize {
        self.home(self.index.shape(), keyhash)
    }

    /// Fetches the lines of every item in the key's main bucket that bears its tag: those that an
    /// item of the usual size has, three at most, which is where the processor's own prefetching
    /// has caught on. If there is none, the item may be in a spare bucket, which is fetched instead.
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
            let entry = bucket.entry(place);
            let log = self.log(entry.log());
            let at = log.geometry().position(entry.offset());
            log.prefetch(at);
            log.prefetch(at + last_word);
            if last_word > 8 {
                log.prefetch(at + 8);
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
    pub fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Found<'_>> {
        let found = self.shared.find(self.home(keyhash), keyhash, key)?;
        (!expired(&found.item, now)).then_some(found)
    }
}
