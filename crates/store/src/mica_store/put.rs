//! Storing an item: over the old one if it fits there, else in free space, and into the index.

use super::name::Name;
use super::room::Wanting;
use super::{Found, Shared, Writer};
use crate::access::Access;
use crate::heap::{Put, only_grows, unsettle, write_behind, write_grown, write_item, write_over};
use crate::index::{CHAIN_BUCKETS_MAX, Entry, Slot};
use crate::table::{DRAFT_WORDS_MIN, Heap, Index};
use glimmer_base::Expiry;
use glimmer_base::sync::{in_program_order, weakened};

impl<A: Access> Writer<'_, A> {
    /// Stores an item that is within the limit; says whether there was room.
    #[inline]
    pub(super) fn put_as(&mut self, put: &Put<'_>) -> bool {
        if self.shared.common.has_overflowed()
            && !weakened("overflow_stays")
            && let Some(put) = self.overflowed(put)
        {
            return self.put_under(&put);
        }
        self.put_under(put)
    }

    /// The same for an item whose key has another one under its second keyhash: it stays there.
    #[cold]
    #[inline(never)]
    pub(super) fn overflowed<'p>(&self, put: &Put<'p>) -> Option<Put<'p>> {
        let (shared, Put { keyhash, item, .. }) = (self.shared, put);
        if shared
            .find(self.home(*keyhash), *keyhash, item.key)
            .is_some()
        {
            return None;
        }
        shared.find_overflowed(*keyhash, item.key)?;
        Some(put.under(shared.common.second(*keyhash, item.key)))
    }

    #[inline(always)]
    fn put_under(&mut self, put: &Put<'_>) -> bool {
        let stored = self.try_put(put).is_ok() || self.put_in_room_to_be_found(put);
        if stored {
            self.note_stored(put);
        }
        stored
    }

    /// An item has been stored.
    #[inline(always)]
    pub(super) fn note_stored(&mut self, put: &Put<'_>) {
        self.shared.common.counters.stored.add(1);
        self.state.scan.soonest.note(put.item.expiry);
    }

    /// Stores an item, unless it wants room that there is not; then nothing has changed.
    #[inline(always)]
    pub(super) fn try_put(&mut self, put: &Put<'_>) -> Result<(), Wanting> {
        let home = self.home(put.keyhash);
        if A::SHARED_READS
            && put.words >= DRAFT_WORDS_MIN
            && let Some(done) = self.try_put_large(self.shared.index.chain_of(home), put)
        {
            return done;
        }
        match self.shared.find(home, put.keyhash, put.item.key) {
            Some(found) if !self.is_gone(&found, put) => return self.overwrite(&found, put),
            Some(found) => self.reclaim_expired(found, put.now),
            None => {}
        }
        self.insert(self.shared.index.chain_of(home), put)
    }

    #[inline(never)]
    fn insert(&mut self, home: usize, put: &Put<'_>) -> Result<(), Wanting> {
        debug_assert!(!put.keeps_value(), "an item whose value stays is there");
        let (shared, words) = (self.shared, put.words);
        let at = self.allocate(words).ok_or(Wanting::Words)?;
        let slot = (self.free_slot(home)).inspect_err(|_| self.free_place(at, words))?;
        write_item(shared.space().place(at), put);
        self.link(home, slot, at, put);
        Ok(())
    }

    /// Makes the index name an item whose key had none.
    #[inline(always)]
    pub(super) fn link(
        &mut self,
        home: usize,
        (slot, link_from): (Slot, Option<usize>),
        at: usize,
        put: &Put<'_>,
    ) {
        let (shared, words) = (self.shared, put.words);
        shared.index.change(home, A::SHARED_READS, || {
            if let Some(last) = link_from {
                shared.index.bucket(last).set_next(Some(slot.bucket));
            }
            shared.index.set(slot, shared.entry(at, put));
        });
        shared.common.counters.items.add(1);
        shared.common.counters.bytes.add(8 * words as u64);
        self.learn_size(words);
        self.scan_after_insert(put.now);
    }

    /// Stores an item around the value that its key has; says whether there was room. If the value
    /// is only appended to, and what lies after the item is free, nothing else is copied. What lies
    /// there is seen by no reader. The rest is written while the version of the chain is odd.
    #[inline(never)]
    pub(super) fn extend_as(&mut self, put: &Put<'_>) -> bool {
        let (shared, limit) = (self.shared, self.state.border.open());
        let Some(old) = shared.find(self.home(put.keyhash), put.keyhash, put.item.key) else {
            return self.put_as(put);
        };
        let (at, words) = (old.at(), old.item.words());
        let fits = &mut self.state.fits;
        if !only_grows(put, &old.item)
            || put.words < words
            || put.words > words && !fits.lengthen(shared.space(), (at, words), put.words, limit)
        {
            return self.put_as(put);
        }
        let place = old.item.place();
        write_behind(place, put, &old.item);
        let is_shared = A::SHARED_READS && !weakened("append_version");
        shared.index.change(old.lock, is_shared, || {
            let loans = &shared.common.loans;
            let grow = || write_grown(place, put, &old.item);
            loans.while_growing(at as u64, (put, &old.item), grow);
            let entry = Entry::in_cell(old.cell);
            (shared.index).set_changed(old.cell, entry, shared.entry(at, put));
        });
        let counters = &shared.common.counters;
        counters.stored.add(1);
        counters.in_place_updates.add(1);
        counters.bytes.add(8 * (put.words - words) as u64);
        self.state.scan.soonest.note(put.item.expiry);
        true
    }

    #[inline(always)]
    fn overwrite(&mut self, old: &Found<'_>, put: &Put<'_>) -> Result<(), Wanting> {
        let (shared, words) = (self.shared, put.words);
        let (old_at, old_words) = (old.at(), old.item.words());
        if words <= old_words {
            shared.index.change(old.lock, A::SHARED_READS, || {
                shared.give_up(old_at, old_words);
                unsettle(old.item.place(), old_words);
                write_over(old.item.place(), put, &old.item);
                // Whether the old item was fetched says nothing about the new one.
                let entry = Entry::in_cell(old.cell);
                (shared.index).set_changed(old.cell, entry, shared.entry(old_at, put));
            });
            if words < old_words {
                let fits = &mut self.state.fits;
                fits.shorten(shared.space(), old_at, old_words, words);
            }
            shared.common.counters.in_place_updates.add(1);
        } else {
            self.overwrite_elsewhere(*old, put)?;
        }
        if words != old_words {
            shared.common.counters.bytes.add(8 * words as u64);
            shared.common.counters.bytes.sub(8 * old_words as u64);
        }
        Ok(())
    }

    /// Writes an item that does not fit where the old one lies.
    #[inline(never)]
    fn overwrite_elsewhere(&mut self, old: Found<'_>, put: &Put<'_>) -> Result<(), Wanting> {
        let shared = self.shared;
        let Some(at) = self.allocate(put.words) else {
            return self.overwrite_within_its_own_room(old, put);
        };
        write_over(shared.space().place(at), put, &old.item);
        self.link_instead_of(&old, at, put);
        Ok(())
    }

    /// Makes the index name an item instead of its key's old one.
    #[inline(always)]
    pub(super) fn link_instead_of(&mut self, old: &Found<'_>, at: usize, put: &Put<'_>) {
        let shared = self.shared;
        let name = || shared.index.set(old.slot, shared.entry(at, put));
        shared.index.change(old.lock, A::SHARED_READS, name);
        self.free_place(old.at(), old.item.words());
        self.learn_size(put.words);
    }

    /// Where there is no room for old and new item together, the new one may still fit where the
    /// old one and free neighbours of it lie. The chain is locked while neither is whole.
    fn overwrite_within_its_own_room(
        &mut self,
        old: Found<'_>,
        put: &Put<'_>,
    ) -> Result<(), Wanting> {
        let (shared, border) = (self.shared, self.state.border.open());
        let (space, fits) = (shared.space(), &mut self.state.fits);
        let place = (old.at(), old.item.words());
        if !fits.would_hold(space, place, put.words, border) {
            return Err(Wanting::Words);
        }
        shared.index.change(old.lock, A::SHARED_READS, || {
            shared.give_up(place.0, place.1);
            let joined = fits.absorb(space, place);
            let at = joined.start;
            let entry = shared.entry(at, put);
            shared.index.note_moves(&[old.entry, entry]);
            shared.index.set(old.slot, Entry::EMPTY);
            in_program_order();
            write_over(space.place(at), put, &old.item);
            fits.settle(space, joined, put.words);
            shared.index.set(old.slot, entry);
            shared.index.end_rewrite();
        });
        Ok(())
    }

    #[inline(always)]
    pub(super) fn allocate(&mut self, words: usize) -> Option<usize> {
        let border = self.state.border.open();
        let at = (self.state.fits).allocate(self.shared.space(), words, border)?;
        let names = at as u64..(at + words) as u64;
        debug_assert!(!self.shared.common.loans.lends_within(names), "it is lent");
        Some(at)
    }

    /// Frees a place that no entry names. All places of items are freed here, or stay in use until
    /// the change by which they are given up is over.
    #[inline(always)]
    pub(super) fn free_place(&mut self, at: usize, words: usize) {
        let shared = self.shared;
        shared.give_up(at, words);
        self.state.fits.free(shared.space(), at, words);
    }

    /// A slot of the chain for a new entry: one that names nothing, else one in a spare bucket,
    /// which is then to be linked after the bucket that is returned with it.
    #[inline(always)]
    pub(super) fn free_slot(&mut self, home: usize) -> Result<(Slot, Option<usize>), Wanting> {
        match self.shared.index.empty_slot(home) {
            Some(slot) => Ok((slot, None)),
            None => self.free_slot_in_full_bucket(home),
        }
    }

    #[inline(never)]
    fn free_slot_in_full_bucket(&mut self, home: usize) -> Result<(Slot, Option<usize>), Wanting> {
        let shared = self.shared;
        let mut slots = shared.index.slots(home);
        if let Some((slot, _)) = slots.find(|&(_, entry)| !shared.heap.is_live(entry)) {
            return Ok((slot, None));
        }
        let last = shared.index.chain(home).enumerate().last();
        let (count, last) = last.expect("a chain has its main bucket");
        if count + 1 == CHAIN_BUCKETS_MAX {
            return Err(Wanting::SlotOfFullChain);
        }
        let spare = self.state.spares.take(&shared.index, home);
        let bucket = spare.ok_or(Wanting::Slot)?;
        shared.common.counters.spares_used.add(1);
        Ok((Slot { bucket, entry: 0 }, Some(last)))
    }
}

impl Shared {
    /// The entry for an item that is stored now.
    #[inline(always)]
    fn entry(&self, at: usize, put: &Put<'_>) -> Entry {
        let name = Name {
            generation: self.heap.generation(),
            at,
            expires: put.item.expiry != Expiry::NEVER,
        };
        name.entry(put.keyhash.tag())
    }
}
