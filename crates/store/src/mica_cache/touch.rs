//! Changing what an item carries beside its value: its expiry, and what the meta commands leave on it. Where it lies if it has the
//! fields for that, else by writing it anew.

use super::{Found, Mark, Writer};
use crate::access::Access;
use crate::heap::{History, Marks, NewItem, can_amend, write_amended};
use crate::table::Stored;
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Changes when the key's item expires. Says whether that was done: there may be no such item, or
    /// it had to leave to make room for its expiry. Counts as a read. The CAS unique stays: touching is
    /// no mutation.
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
            return true;
        }
        // The new entry does not know that this was a fetch, so the item has to.
        let marks = history.marks.with(Marks::FETCHED);
        let history = History { marks, ..history };
        self.write_anew(keyhash, key, item.flags(), (expiry, history), now)
    }

    /// Gives the key's item another expiry and another history, of which the CAS unique stays if it names none. Says whether that was
    /// done, as [`touch`](Self::touch) does. Does not count as a read.
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
            return true;
        }
        let marks = match found.entry.is_fetched() {
            true => history.marks.with(Marks::FETCHED),
            false => history.marks,
        };
        let history = History { marks, ..history };
        self.write_anew(keyhash, key, found.item.flags(), (expiry, history), now)
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

    /// Stores the item anew with its value, and with the CAS unique that the history names. Says whether that was done.
    fn write_anew(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        flags: u32,
        (expiry, history): (Expiry, History),
        now: Moment,
    ) -> bool {
        let again = NewItem {
            key,
            value: [&[], &[]],
            flags,
            expiry,
            history,
        };
        matches!(self.extend(keyhash, &again, now), Some(Stored::Yes(_)))
    }
}
