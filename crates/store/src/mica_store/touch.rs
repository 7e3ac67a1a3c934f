//! Changing what an item carries beside its value: its expiry, and what the meta commands leave on
//! it. Where it lies if it has the fields for that, else by writing it anew.

use super::Writer;
use super::find::Found;
use super::read::READS_COUNTED;
use crate::access::Access;
use crate::heap::{History, Marks, NewItem, can_amend, write_amended};
use crate::table::{Stored, expired};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Changes when the key's item expires; says whether that was done. It is not if there is no
    /// such item, or if it has no room for an expiry and there is none to be had. The CAS unique
    /// stays: touching is no mutation.
    pub fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        self.change(keyhash, key, expiry, None, now)
    }

    /// Gives the key's item another expiry and another history, of which the CAS unique stays if it
    /// names none. Says whether that was done, as [`touch`](Self::touch) does.
    pub fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        self.change(keyhash, key, expiry, Some(history), now)
    }

    fn change(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: Option<History>,
        now: Moment,
    ) -> bool {
        let home = self.home(keyhash);
        let Some(found) = self.shared.find(home, keyhash, key) else {
            return false;
        };
        if expired(&found.item, now) {
            self.take_out_expired(home, found, now);
            return false;
        }
        let Found {
            item, slot, entry, ..
        } = found;
        let is_touch = history.is_none();
        let history = history.unwrap_or_else(|| item.history());
        let cas = history.cas.or(Some(item.cas()));
        let history = History { cas, ..history };
        if can_amend(&item, expiry, &history) {
            let main = self.shared.index.bucket(home);
            main.write_begin(A::SHARED_READS);
            write_amended(&item, expiry, &history);
            main.write_end(A::SHARED_READS);
            self.state.scan.soonest.note(expiry);
            if is_touch {
                self.shared.index.count_read(slot, entry, READS_COUNTED);
            }
            return true;
        }
        // The entry of the copy does not know whether the item was fetched, so the item has to.
        let history = match is_touch || entry.is_fetched() {
            true => History {
                marks: history.marks.with(Marks::FETCHED),
                ..history
            },
            false => history,
        };
        let again = NewItem {
            key,
            value: [&[], &[]],
            flags: item.flags(),
            expiry,
            history,
        };
        matches!(self.extend(keyhash, &again, now), Some(Stored::Yes(_)))
    }
}
