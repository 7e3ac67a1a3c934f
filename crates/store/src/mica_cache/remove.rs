//! Removing an item: its index entry goes, its bytes are passed by when the head comes (MICA
//! §4.3.2).

use super::Writer;
use crate::access::Access;
use crate::index::Entry;
use glimmer_base::{Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Removes the key's item; says whether there was one that had not expired.
    #[inline]
    pub fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let shared = self.shared;
        let home = self.home(keyhash);
        let Some(found) = shared.find(home, keyhash, key) else {
            return false;
        };
        let was_visible = !super::expired(&found.item, now);
        shared.counters.gone(&found.item);
        let home = shared.index.bucket(home);
        home.write_begin(A::SHARED_READS);
        shared
            .index
            .bucket(found.slot.bucket)
            .set_entry(found.slot.entry, Entry::EMPTY);
        home.write_end(A::SHARED_READS);
        was_visible
    }
}
