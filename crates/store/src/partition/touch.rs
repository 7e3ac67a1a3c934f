//! Changing what an item carries beside its value: its expiry, and what the meta commands leave on it. Where it lies if it has the
//! fields for that, else by writing it anew.

use super::{Found, Mark, Writer};
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::{History, Item, Marks, NewItem, can_amend, write_amended};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Changes when the key's item expires; says whether there was one. Counts as a read. The CAS
    /// unique stays: touching is no mutation.
    pub fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        let Some(found) = self.find(keyhash, key, now) else {
            return false;
        };
        let (Found { slot, entry, item }, history) = (found, found.item.history());
        if can_amend(&item, expiry, &history) {
            if item.layout().expiry {
                self.amend_in_place(keyhash, &found, expiry, &history);
            }
            self.count_read(keyhash, Mark { slot, entry }, now);
        } else {
            let copy = copied(&found.item);
            // The new entry does not know that this was a fetch, so the item has to.
            let marks = history.marks.with(Marks::FETCHED);
            let history = History { marks, ..history };
            self.write_anew(keyhash, key, copy, (expiry, history), now);
        }
        true
    }

    /// Gives the key's item another expiry and another history, of which the CAS unique stays if it names none. Says whether there was an
    /// item. Does not count as a read.
    pub fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        let Some(found) = self.find(keyhash, key, now) else {
            return false;
        };
        let cas = history.cas.or(Some(found.item.cas()));
        let history = History { cas, ..history };
        if can_amend(&found.item, expiry, &history) {
            self.amend_in_place(keyhash, &found, expiry, &history);
        } else {
            let copy = copied(&found.item);
            let marks = match found.entry.is_fetched() {
                true => history.marks.with(Marks::FETCHED),
                false => history.marks,
            };
            let history = History { marks, ..history };
            self.write_anew(keyhash, key, copy, (expiry, history), now);
        }
        true
    }

    fn amend_in_place(
        &self,
        keyhash: Keyhash,
        found: &Found<'_>,
        expiry: Expiry,
        history: &History,
    ) {
        let index = &self.shared.index;
        let home = index.bucket(self.home(keyhash));
        home.write_begin(A::SHARED_READS);
        write_amended(&found.item, expiry, history);
        home.write_end(A::SHARED_READS);
    }

    /// Stores a copy of the item, with the CAS unique that the history names.
    fn write_anew(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        (value, flags): (Vec<u8>, u32),
        (expiry, history): (Expiry, History),
        now: Moment,
    ) {
        let again = NewItem {
            key,
            value: [&value, &[]],
            flags,
            expiry,
            history,
        };
        self.put(keyhash, &again, now);
    }
}

/// An item's value and flags.
fn copied(item: &Item<'_>) -> (Vec<u8>, u32) {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    (value, item.flags())
}
