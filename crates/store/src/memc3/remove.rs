//! Removing an item: its slot is emptied, then its chunk is free.

use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::index::cuckoo::{Slot, SlotAt};
use glimmer_base::{Keyhash, Moment};

impl Shared {
    /// Empties a slot: nobody who looks from now on finds its item.
    #[inline(always)]
    pub(super) fn unlink(&self, at: SlotAt, shared: bool) {
        let line = self.line(at);
        line.write_begin(shared);
        line.set(at.bucket, at.place, 0, Slot::new(0));
        line.write_end(shared);
    }
}

impl<A: Access> Writer<'_, A> {
    /// Removes the key's item; says whether there was one that had not expired.
    #[inline]
    pub fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let shared = self.shared;
        let Some(found) = shared.find(&shared.directory.home(keyhash), key) else {
            return false;
        };
        let was_visible = !expired(&found.item, now);
        shared.counters.gone(&found.item);
        shared.unlink(found.at, A::SHARED_READS);
        self.state.slabs.free(&shared.pool, found.slot.offset());
        was_visible
    }
}
