//! What a read tells the eviction rule.

use super::Writer;
use crate::access::Access;
use crate::index::{Entry, Slot};
use glimmer_base::{Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Lets the eviction rule know that the writer has read an item.
    #[inline(always)]
    pub(super) fn count_read(&mut self, keyhash: Keyhash, slot: Slot, entry: Entry, now: Moment) {
        if self.shared.heap.rule.reinsertion_threshold.is_some() {
            return self.count_read_or_reinsert(keyhash, slot, entry, now);
        }
        self.note_read(slot, entry);
    }

    #[cold]
    #[inline(never)]
    fn count_read_or_reinsert(&mut self, keyhash: Keyhash, slot: Slot, entry: Entry, now: Moment) {
        let id = entry.log();
        let distance = || self.geometry(id).distance(entry.offset(), self.tail(id));
        if self.shared.heap.rule.reinserts(distance, self.limit(id)) {
            self.reinsert(slot, entry, keyhash, now);
        } else {
            self.note_read(slot, entry);
        }
    }
}
