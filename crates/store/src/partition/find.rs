//! Finding an item: tag, liveness, key.

use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::Item;
use crate::index::{Entry, Slot};
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
    /// Finds the key's item, expired or not. Safe to run while a writer works; what it finds is
    /// then to be validated.
    #[inline(always)]
    pub(super) fn find(&self, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_>> {
        self.index.find(keyhash, |slot, entry| {
            let log = self.log(entry.log());
            // A racing reader may meet an entry that was emptied after its tag was compared.
            if entry.is_empty() || !log.is_live(entry.offset()) {
                return None;
            }
            let item = Item::read(log, log.geometry().position(entry.offset()))?;
            item.key_is(key).then_some(Found { slot, entry, item })
        })
    }

    /// Fetches the first two lines of every item in the key's main bucket that bears its tag.
    #[inline(always)]
    pub(super) fn prefetch_item(&self, keyhash: Keyhash) {
        let bucket = self.index.bucket(self.index.home(keyhash));
        for place in bucket.tagged(keyhash.tag()) {
            let entry = bucket.entry(place);
            let log = self.log(entry.log());
            let at = log.geometry().position(entry.offset());
            log.prefetch(at);
            log.prefetch(at + 2);
        }
    }
}

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Finds the key's item, unless it has expired.
    #[inline(always)]
    pub fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Found<'_>> {
        self.shared
            .find(keyhash, key)
            .filter(|found| !expired(&found.item, now))
    }
}
