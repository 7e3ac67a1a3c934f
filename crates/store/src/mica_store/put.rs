//! Storing an item: over the old one if it fits there, else in free space, and into the index.

use super::name::Name;
use super::room::Wanting;
use super::{Found, Shared, Writer};
use crate::access::Access;
use crate::heap::{Measured, NewItem, write_item, write_over};
use crate::index::{CHAIN_BUCKETS_MAX, Slot};
use crate::table::{Shared as _, expired};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Stores an item that is within the limit with a given CAS unique; says whether there was
    /// room.
    #[inline]
    pub(super) fn put_as(
        &mut self,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> bool {
        let stored = self.try_put(keyhash, new, cas, now).is_ok()
            || self.put_in_room_to_be_found(keyhash, new, cas, now);
        if stored {
            self.shared.common.counters.stored.add(1);
            self.state.scan.soonest.note(new.item.expiry);
        }
        stored
    }

    /// Stores an item, unless it wants room that there is not; then nothing has changed.
    #[inline(always)]
    pub(super) fn try_put(
        &mut self,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> Result<(), Wanting> {
        let home = self.home(keyhash);
        match self.shared.find(home, keyhash, new.item.key) {
            Some(found) if expired(&found.item, now) => {
                self.reclaim_expired(&found, now);
                self.insert(home, keyhash, new, cas, now)
            }
            Some(found) => self.overwrite(home, keyhash, found, new, cas),
            None => self.insert(home, keyhash, new, cas, now),
        }
    }

    #[inline(never)]
    fn insert(
        &mut self,
        home: usize,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> Result<(), Wanting> {
        debug_assert!(!new.keeps_value(), "an item whose value stays is there");
        let (shared, words) = (self.shared, new.words);
        let at = self.allocate(words).ok_or(Wanting::Words)?;
        let (slot, link_from) = match self.free_slot(home) {
            Ok(found) => found,
            Err(wanting) => {
                self.state.fits.free(&shared.space, at, words);
                return Err(wanting);
            }
        };
        write_item(shared.space.place(at), new, cas);
        let main = shared.index.bucket(home);
        main.write_begin(A::SHARED_READS);
        if let Some(last) = link_from {
            shared.index.bucket(last).set_next(Some(slot.bucket));
        }
        let entry = shared.name(at, new.item).entry(keyhash.tag());
        shared.index.set(slot, entry);
        main.write_end(A::SHARED_READS);
        shared.common.counters.items.add(1);
        shared.common.counters.bytes.add(8 * words as u64);
        self.learn_size(words);
        self.scan_after_insert(now);
        Ok(())
    }

    #[inline(always)]
    fn overwrite(
        &mut self,
        home: usize,
        keyhash: Keyhash,
        old: Found<'_>,
        new: Measured<'_>,
        cas: u64,
    ) -> Result<(), Wanting> {
        let (shared, words) = (self.shared, new.words);
        let (old_at, old_words) = (old.at(), old.item.words());
        let main = shared.index.bucket(home);
        let entry_at = |at| shared.name(at, new.item).entry(keyhash.tag());
        if words <= old_words {
            main.write_begin(A::SHARED_READS);
            write_over(old.item.place(), new, cas, &old.item);
            // Whether the old item was fetched says nothing about the new one.
            let entry = shared.index.get(old.slot);
            shared.index.change(old.slot, entry, entry_at(old_at));
            main.write_end(A::SHARED_READS);
            if words < old_words {
                let fits = &mut self.state.fits;
                fits.shorten(&shared.space, old_at, old_words, words);
            }
            shared.common.counters.in_place_updates.add(1);
        } else {
            self.overwrite_elsewhere(home, keyhash, old, new, cas)?;
        }
        if words != old_words {
            shared.common.counters.bytes.add(8 * words as u64);
            shared.common.counters.bytes.sub(8 * old_words as u64);
        }
        Ok(())
    }

    /// Writes an item that does not fit where the old one lies.
    #[inline(never)]
    fn overwrite_elsewhere(
        &mut self,
        home: usize,
        keyhash: Keyhash,
        old: Found<'_>,
        new: Measured<'_>,
        cas: u64,
    ) -> Result<(), Wanting> {
        let (shared, words) = (self.shared, new.words);
        let Some(at) = self.allocate(words) else {
            return self.overwrite_within_its_own_room(home, keyhash, old, new, cas);
        };
        write_over(shared.space.place(at), new, cas, &old.item);
        let main = shared.index.bucket(home);
        main.write_begin(A::SHARED_READS);
        let entry = shared.name(at, new.item).entry(keyhash.tag());
        shared.index.set(old.slot, entry);
        main.write_end(A::SHARED_READS);
        self.state
            .fits
            .free(&shared.space, old.at(), old.item.words());
        self.learn_size(words);
        Ok(())
    }

    /// Where there is no room for old and new item together, the new one may still fit where the
    /// old one and free neighbours of it lie. The chain is locked while neither is whole.
    #[inline(never)]
    fn overwrite_within_its_own_room(
        &mut self,
        home: usize,
        keyhash: Keyhash,
        old: Found<'_>,
        new: Measured<'_>,
        cas: u64,
    ) -> Result<(), Wanting> {
        let (shared, words) = (self.shared, new.words);
        let (border, fits) = (self.state.border.open(), &mut self.state.fits);
        let place = (old.at(), old.item.words());
        if !fits.would_hold(&shared.space, place, words, border) {
            return Err(Wanting::Words);
        }
        let main = shared.index.bucket(home);
        main.write_begin(A::SHARED_READS);
        let joined = fits.absorb(&shared.space, place);
        let at = joined.start;
        write_over(shared.space.place(at), new, cas, &old.item);
        fits.settle(&shared.space, joined, words);
        let entry = shared.name(at, new.item).entry(keyhash.tag());
        shared.index.set(old.slot, entry);
        main.write_end(A::SHARED_READS);
        Ok(())
    }

    #[inline(always)]
    fn allocate(&mut self, words: usize) -> Option<usize> {
        let border = self.state.border.open();
        self.state.fits.allocate(&self.shared.space, words, border)
    }

    /// A slot of the chain for a new entry: one that names nothing, else one in a spare bucket,
    /// which is then to be linked after the bucket that is returned with it.
    #[inline(always)]
    fn free_slot(&mut self, home: usize) -> Result<(Slot, Option<usize>), Wanting> {
        // An empty entry's tag is zero, and no item's is.
        if let Some(entry) = self.shared.index.bucket(home).tagged(0).next() {
            let slot = Slot {
                bucket: home,
                entry,
            };
            return Ok((slot, None));
        }
        self.free_slot_in_full_bucket(home)
    }

    #[inline(never)]
    fn free_slot_in_full_bucket(&mut self, home: usize) -> Result<(Slot, Option<usize>), Wanting> {
        let shared = self.shared;
        let mut slots = shared.index.slots(home);
        if let Some((slot, _)) = slots.find(|&(_, entry)| !shared.is_live(entry)) {
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
    /// The name of an item that is stored now.
    #[inline(always)]
    pub(super) fn name(&self, at: usize, item: &NewItem<'_>) -> Name {
        Name {
            generation: self.generation(),
            at,
            expires: item.expiry != Expiry::NEVER,
        }
    }
}
