//! Changing what an item carries beside its value: its expiry, and what the meta commands leave on
//! it. Where it lies if it has the fields for that, else by writing it anew.

use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{History, Marks, NewItem, can_amend, write_amended};
use crate::table::Stored;
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Changes when the key's item expires. Says whether that was done: there may be no such item, or
    /// it had to leave to make room for its expiry. Counts as a use. The CAS unique stays: touching is
    /// no mutation.
    pub fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        let Some(found) = self.find(keyhash, key, now) else {
            return false;
        };
        self.count_use(&found);
        let history = found.item.history();
        self.amend(keyhash, key, expiry, history, now)
    }

    /// Gives the key's item another expiry and another history, of which the CAS unique stays if it
    /// names none. Says whether that was done, as [`touch`](Self::touch) does. Does not count as a use.
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
            self.amend_in_place(&found, expiry, &history);
            return true;
        }
        // The slot of the copy does not know whether the item was fetched, so the item has to.
        let marks = match found.slot.is_fetched() {
            true => history.marks.with(Marks::FETCHED),
            false => history.marks,
        };
        let history = History { marks, ..history };
        let again = NewItem {
            key,
            value: [&[], &[]],
            flags: found.item.flags(),
            expiry,
            history,
        };
        matches!(self.extend(keyhash, &again, now), Some(Stored::Yes(_)))
    }

    fn amend_in_place(&self, found: &Found<'_>, expiry: Expiry, history: &History) {
        let line = self.shared.line(found.at);
        line.write_begin(A::SHARED_READS);
        write_amended(&found.item, expiry, history);
        line.write_end(A::SHARED_READS);
    }
}
