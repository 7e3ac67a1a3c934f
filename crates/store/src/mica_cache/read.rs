//! What a read tells an eviction rule that moves what is read.

use super::{MicaCache, Writer};
use crate::access::Access;
use crate::index::{Entry, Slot};
use crate::table::{Index, note_read};
use glimmer_base::{Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Puts an item that the writer has read at the tail, or notes the read.
    #[cold]
    #[inline(never)]
    pub(super) fn count_read_or_reinsert(
        &mut self,
        keyhash: Keyhash,
        (slot, entry): (Slot, Entry),
        now: Moment,
    ) {
        let id = entry.log();
        let distance = || self.geometry(id).distance(entry.offset(), self.tail(id));
        if self
            .shared
            .heap
            .rule
            .reinserts(distance, self.lap_words(id))
        {
            self.reinsert(slot, entry, keyhash, now);
        } else {
            let cell = self.shared.index.cell(slot);
            note_read::<MicaCache<A>>(self.shared, cell, entry);
        }
    }
}
