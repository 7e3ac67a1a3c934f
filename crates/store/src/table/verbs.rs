//! What a writer does with an item, as far as it is the same in every table.

use super::handles::{Design, note_read};
use super::shared::{Chain, Fetched, Heap, Index};
use super::{Absence, Common, Draft, Found, Ledger, Stored, TableWriter, Upload, Writer, expired};
use crate::access::Access;
use crate::heap::{CasSequence, History, Item, Marks, NewItem, Put, can_amend, write_amended};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<D: Design> TableWriter for Writer<'_, D> {
    #[cold]
    #[inline(never)]
    fn bring(&mut self, draft: Option<Draft>) {
        if let Some(draft) = std::mem::replace(&mut self.ledger().draft, draft) {
            D::abandon(self, draft.place);
        }
    }

    #[cold]
    #[inline(never)]
    fn with_upload(
        &mut self,
        upload: Upload,
        execute: &mut dyn FnMut(&mut dyn TableWriter, &[u8]),
    ) {
        self.execute_with_upload(upload, execute);
    }

    fn cas_sequence(&mut self) -> &mut CasSequence {
        &mut self.ledger().cas
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
        let Some(found) = self.lookup(keyhash, key, now) else {
            self.shared.was_missed(keyhash, now);
            return None;
        };
        let (taken, entry) = (take(&found.item), found.entry);
        self.count_read(keyhash, found, now);
        self.shared.was_hit(keyhash, entry, now);
        Some(taken)
    }

    fn show(&mut self, keyhash: Keyhash, key: &[u8], now: Moment, take: &mut dyn FnMut(&Item<'_>)) {
        self.read(keyhash, key, now, take);
    }

    #[inline]
    fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored {
        match self.shared.common.birth_of(item.key) {
            0 => self.put_unborn(keyhash, item, now),
            birth => {
                let put = Put::of(item, keyhash, now).born(birth);
                let stored = self.store_born(put, D::store);
                stored.unwrap_or(Stored::OutOfMemory)
            }
        }
    }

    fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored> {
        let kept = self.find(keyhash, item.key, now)?.value().len();
        match self.shared.common.birth_of(item.key) {
            0 => self.store(Put::around(item, kept, keyhash, now), D::extend),
            birth => {
                let put = Put::around(item, kept, keyhash, now).born(birth);
                self.store_born(put, D::extend)
            }
        }
    }

    #[inline]
    fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let shared = self.shared;
        if shared.common.flushes.knows_groups() && self.remove_dead(keyhash, key, now) {
            return false;
        }
        let Some(found) = shared.find_in_either(self.home(keyhash), keyhash, key) else {
            return false;
        };
        if expired(&found.item, now) {
            self.remove_expired(found, now);
            return false;
        }
        shared.common.counters.gone(&found.item);
        shared.was_removed(keyhash);
        self.take_out(&found);
        D::cleared(self, found.lock);
        true
    }

    fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        self.change(keyhash, key, (expiry, None), now)
    }

    fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        self.change(keyhash, key, (expiry, Some(history)), now)
    }

    fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        let Chain { entries, next, .. } = self.shared.index.walk(chain)?;
        for (_, entry) in entries {
            if let Some(item) = self.shared.item(entry)
                && !self.shared.common.has_ended(&item, now)
            {
                visit(&item, entry.is_fetched());
            }
        }
        next
    }

    fn walk_on(&mut self, chain: Option<usize>, visit: &mut dyn FnMut(&[u8])) -> bool {
        D::walk_on(self, chain, visit)
    }

    fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>) {
        let shared = self.shared;
        let Some(chain) = shared.index.walk(chain) else {
            return (0, None);
        };
        let (lock, mut removed) = (chain.lock, 0);
        for (slot, entry) in chain.entries {
            if let Some(item) = shared.item(entry)
                && shared.common.has_ended(&item, now)
            {
                self.remove_expired(shared.found(lock, (slot, entry), item), now);
                removed += 1;
            }
        }
        if removed > 0 {
            D::cleared(self, lock);
        }
        (removed, chain.next)
    }

    fn begin_sweep(&mut self) -> u64 {
        D::begin_sweep(self)
    }

    fn has_swept(&mut self, name: u64) -> bool {
        D::has_swept(self, name)
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

/// See [`Writer::learn_size`].
#[inline(always)]
pub(crate) fn learn_size(common: &Common, ledger: &mut Ledger, words: usize) {
    let usual = &mut ledger.usual_words_64;
    *usual = *usual - *usual / 64 + words as u64;
    common.expect_size(*usual / 64);
}

/// The expiry and the history that an item gets by a change of it. It keeps its CAS unique if the
/// history names none, and its history if there is no new one.
fn changed(item: &Item<'_>, (expiry, history): (Expiry, Option<History>)) -> (Expiry, History) {
    let history = history.unwrap_or_else(|| item.history());
    let cas = history.cas.or(Some(item.cas()));
    (expiry, History { cas, ..history })
}

impl<'a, D: Design> Writer<'a, D> {
    /// Finds the key's item, unless it has expired or its group was invalidated.
    #[inline(always)]
    pub(crate) fn lookup(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
    ) -> Option<Found<'a, D::Heap>> {
        let shared = self.shared;
        if shared.has_dead(keyhash, key) {
            return None;
        }
        let found = shared.find_in_either(self.home(keyhash), keyhash, key)?;
        (!expired(&found.item, now)).then_some(found)
    }

    /// Lets the eviction rule know that the writer has read an item.
    #[inline(always)]
    fn count_read(&mut self, keyhash: Keyhash, found: Found<'a, D::Heap>, now: Moment) {
        match self.shared.heap.moves_what_is_read() {
            true => D::count_read_or_move(self, keyhash, (found.slot, found.entry), now),
            false => note_read::<D>(self.shared, found.cell, found.entry),
        }
    }

    /// [`put`](TableWriter::put) of an item without a birth.
    #[inline(always)]
    pub(super) fn put_unborn(
        &mut self,
        keyhash: Keyhash,
        item: &NewItem<'_>,
        now: Moment,
    ) -> Stored {
        let stored = self.store(Put::of(item, keyhash, now), D::store);
        stored.unwrap_or(Stored::OutOfMemory)
    }

    /// [`store`](Self::store) of an item with a birth, which the limit does not count.
    #[cold]
    fn store_born(
        &mut self,
        put: Put<'_>,
        store: impl FnOnce(&mut Self, &Put<'_>) -> Option<Stored>,
    ) -> Option<Stored> {
        match put.words > self.shared.heap.item_words_max() {
            true => Some(Stored::TooLarge),
            false => self.store(put, store),
        }
    }

    #[inline(always)]
    pub(super) fn store(
        &mut self,
        mut put: Put<'_>,
        store: impl FnOnce(&mut Self, &Put<'_>) -> Option<Stored>,
    ) -> Option<Stored> {
        if put.words_with_all > self.shared.heap.item_words_max() {
            return Some(Stored::TooLarge);
        }
        put.cas = match put.item.history.cas {
            Some(cas) => cas,
            None => self.ledger().cas.draw(),
        };
        self.shared.was_written(&put);
        store(self, &put)
    }

    /// Follows the usual size of items, by which the pipeline knows how much of one to fetch.
    #[inline(always)]
    pub(crate) fn learn_size(&mut self, words: usize) {
        let shared = self.shared;
        learn_size(&shared.common, self.ledger(), words);
    }

    /// Changes what an item carries beside its value: its expiry, and its history if there is a new
    /// one. Where the item lies if it has the fields for that, else by storing it again. Without a
    /// new history the change counts as a read.
    fn change(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        change: (Expiry, Option<History>),
        now: Moment,
    ) -> bool {
        let Some(found) = self.lookup(keyhash, key, now) else {
            return false;
        };
        let is_touch = change.1.is_none();
        let (expiry, history) = changed(&found.item, change);
        if self.change_in_place(&found, expiry, &history) {
            if is_touch {
                self.count_read(keyhash, found, now);
            }
            return true;
        }
        let Found { entry, item, .. } = found;
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

    /// Gives an item this expiry and this history where it lies, if it has the fields for that.
    fn change_in_place(
        &mut self,
        found: &Found<'_, D::Heap>,
        expiry: Expiry,
        history: &History,
    ) -> bool {
        let can_amend = can_amend(&found.item, expiry, history);
        if can_amend {
            let amend = || write_amended(&found.item, expiry, history);
            (self.shared.index).change(found.lock, D::Access::SHARED_READS, amend);
            D::amended(self, expiry);
        }
        can_amend
    }

    /// [`change`](Self::change) of an item that does not need to be stored again. It does not count
    /// as a read.
    pub(super) fn change_if_in_place(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        change: (Expiry, Option<History>),
        now: Moment,
    ) -> bool {
        let Some(found) = self.lookup(keyhash, key, now) else {
            return false;
        };
        let (expiry, history) = changed(&found.item, change);
        self.change_in_place(&found, expiry, &history)
    }

    /// Clears an item's entry, and frees its memory.
    #[inline(always)]
    fn take_out(&mut self, found: &Found<'_, D::Heap>) {
        let index = &self.shared.index;
        let clear = || index.clear(found.slot);
        index.change(found.lock, D::Access::SHARED_READS, clear);
        D::free(self, found);
    }

    /// Removes the key's item if its group was invalidated. Says whether it did.
    #[cold]
    #[inline(never)]
    fn remove_dead(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let dead = self.shared.find_dead(keyhash, key);
        if let Some(found) = dead {
            self.remove_expired(found, now);
        }
        dead.is_some()
    }

    /// Removes an item that has expired, or whose group was invalidated, counts it as one that
    /// expired unfetched if it did, and reports it.
    #[inline(never)]
    pub(crate) fn remove_expired(&mut self, found: Found<'_, D::Heap>, now: Moment) {
        let is_fetched = found.entry.is_fetched();
        (self.shared.common).expired(&found.item, is_fetched, now);
        self.take_out(&found);
    }
}
