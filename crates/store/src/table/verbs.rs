//! What a writer does with an item, as far as it is the same in every table.

use super::handles::{Design, EntryOf, SlotOf};
use super::shared::{Chain, Fetched, Found, Index, PlaceIn, Shared, Taken};
use super::{Absence, Stored, TableWriter, Writer, expired};
use crate::access::Access;
use crate::heap::{CasSequence, History, Item, Marks, Measured, NewItem, can_amend, write_amended};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<D: Design> TableWriter for Writer<'_, D> {
    type Place = PlaceIn<D::Shared>;

    fn draw_cas_from(&mut self, sequence: CasSequence) {
        self.ledger().cas = sequence;
    }

    #[inline(always)]
    fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Item<'_>> {
        self.lookup(keyhash, key, now).map(|found| found.item)
    }

    #[inline(always)]
    fn read<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let shared = self.shared;
        let taken = shared.take(shared.index().place(keyhash), keyhash, key, now, take);
        self.count_taken(keyhash, taken, now)
    }

    #[inline(always)]
    fn read_at<T>(
        &mut self,
        place: Self::Place,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let shared = self.shared;
        let place = shared.index().place_again(place, keyhash);
        let taken = shared.take(place, keyhash, key, now, take);
        self.count_taken(keyhash, taken, now)
    }

    #[inline]
    fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored {
        let stored = self.store(keyhash, item.measured(), now);
        stored.unwrap_or(Stored::OutOfMemory)
    }

    fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored> {
        let kept = self.find(keyhash, item.key, now)?.value().len();
        self.store(keyhash, item.measured_around(kept), now)
    }

    #[inline]
    fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let shared = self.shared;
        let Some(found) = shared.find(shared.index().place(keyhash), keyhash, key) else {
            return false;
        };
        if expired(&found.item, now) {
            self.remove_expired(&found, now);
            return false;
        }
        shared.common().counters.gone(&found.item);
        self.take_out(&found);
        D::cleared(self, found.lock);
        true
    }

    fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        self.change(keyhash, key, expiry, None, now)
    }

    fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        self.change(keyhash, key, expiry, Some(history), now)
    }

    fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        let Chain { entries, next, .. } = self.shared.index().chain(chain)?;
        for (_, entry) in entries {
            if let Some(item) = self.shared.item(entry)
                && !expired(&item, now)
            {
                visit(&item, entry.is_fetched());
            }
        }
        next
    }

    fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>) {
        let shared = self.shared;
        let Some(chain) = shared.index().chain(chain) else {
            return (0, None);
        };
        let (lock, mut removed) = (chain.lock, 0);
        for (slot, entry) in chain.entries {
            if let Some(item) = shared.item(entry)
                && expired(&item, now)
            {
                let found = Found {
                    lock,
                    slot,
                    entry,
                    item,
                };
                self.remove_expired(&found, now);
                removed += 1;
            }
        }
        if removed > 0 {
            D::cleared(self, lock);
        }
        (removed, chain.next)
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    fn stored_s(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<u32> {
        D::stored_s(self, &self.lookup(keyhash, key, now)?)
    }

    fn was_read(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let found = self.lookup(keyhash, key, now);
        found.is_some_and(|found| found.entry.is_fetched())
    }
}

impl<'a, D: Design> Writer<'a, D> {
    /// Finds the key's item, unless it has expired.
    #[inline(always)]
    pub(crate) fn lookup(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
    ) -> Option<Found<'a, D::Shared>> {
        let shared = self.shared;
        let found = shared.find(shared.index().place(keyhash), keyhash, key)?;
        (!expired(&found.item, now)).then_some(found)
    }

    #[inline(always)]
    fn count_taken<T>(
        &mut self,
        keyhash: Keyhash,
        taken: Taken<T, D::Shared>,
        now: Moment,
    ) -> Option<T> {
        let (taken, slot, entry) = taken?;
        D::count_read(self, keyhash, slot, entry, now);
        Some(taken)
    }

    /// Notes a read of the writer in the index entry.
    #[inline(always)]
    pub(crate) fn note_read(&self, slot: SlotOf<D>, entry: EntryOf<D>) {
        let (index, most) = (self.shared.index(), self.shared.reads_counted());
        if D::Access::SHARED_READS {
            index.count_read(slot, entry, most);
        } else {
            index.count_read_alone(slot, entry, most);
        }
    }

    #[inline(always)]
    fn store(&mut self, keyhash: Keyhash, new: Measured<'_>, now: Moment) -> Option<Stored> {
        if new.words_with_all > self.shared.item_words_max() {
            return Some(Stored::TooLarge);
        }
        let cas = match new.item.history.cas {
            Some(cas) => cas,
            None => self.ledger().cas.draw(),
        };
        D::store(self, keyhash, new, cas, now)
    }

    /// Follows the usual size of items, by which the pipeline knows how much of one to fetch.
    #[inline(always)]
    pub(crate) fn learn_size(&mut self, words: usize) {
        let usual = &mut self.ledger().usual_words_64;
        *usual = *usual - *usual / 64 + words as u64;
        let usual = *usual / 64;
        let shown = &self.shared.common().usual_words;
        if usual != shown.get() {
            shown.set(usual);
        }
    }

    /// Changes what an item carries beside its value: its expiry, and its history if there is a new
    /// one. Where the item lies if it has the fields for that, else by storing it again. Without a
    /// new history the change counts as a read.
    fn change(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: Option<History>,
        now: Moment,
    ) -> bool {
        let Some(found) = self.lookup(keyhash, key, now) else {
            return false;
        };
        let Found {
            slot, entry, item, ..
        } = found;
        let is_touch = history.is_none();
        let history = history.unwrap_or_else(|| item.history());
        let cas = history.cas.or(Some(item.cas()));
        let history = History { cas, ..history };
        if can_amend(&item, expiry, &history) {
            let index = self.shared.index();
            index.write_begin(found.lock, D::Access::SHARED_READS);
            write_amended(&item, expiry, &history);
            index.write_end(found.lock, D::Access::SHARED_READS);
            D::amended(self, expiry);
            if is_touch {
                D::count_read(self, keyhash, slot, entry, now);
            }
            return true;
        }
        // The entry of the copy does not know whether the item was fetched, so the item has to.
        let marks = match is_touch || entry.is_fetched() {
            true => history.marks.with(Marks::FETCHED),
            false => history.marks,
        };
        let again = NewItem {
            key,
            value: [&[], &[]],
            flags: item.flags(),
            expiry,
            history: History { marks, ..history },
        };
        matches!(self.extend(keyhash, &again, now), Some(Stored::Yes(_)))
    }

    /// Clears an item's entry, and frees its memory.
    #[inline(always)]
    fn take_out(&mut self, found: &Found<'_, D::Shared>) {
        let index = self.shared.index();
        index.write_begin(found.lock, D::Access::SHARED_READS);
        index.clear(found.slot);
        index.write_end(found.lock, D::Access::SHARED_READS);
        D::free(self, found);
    }

    /// Removes an item that has expired, counts it as one that left unfetched if it did, and
    /// reports it.
    #[inline(never)]
    pub(crate) fn remove_expired(&mut self, found: &Found<'_, D::Shared>, now: Moment) {
        let is_fetched = found.entry.is_fetched();
        (self.shared.common()).expired(&found.item, is_fetched, now);
        self.take_out(found);
    }
}
