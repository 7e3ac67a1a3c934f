//! A partition after a process that was ended by force.
//!
//! # What may be found
//!
//! As in [cache mode](crate::mica_cache), the process ended between two instructions, and at most
//! one change of the partition was underway. Entries alone say what is stored. Which words of the
//! heap are free is worked out from the items that they name, so it does not matter what a change
//! has left in the heap elsewhere.
//!
//! - *An item is written to a new place* (a store, an append that does not fit, a draft, a value
//!   that was received). Its header is [written last](crate::heap), and then one word of the index
//!   names it: the old item is there until then, and the new one from then on. The memory of the
//!   old one is free after that.
//! - *An item is written over*, or its expiry is changed. Its header is marked as a filler first
//!   and written last. In between, its entry names no item. It is cleared, and the item is counted
//!   as lost.
//! - *An item grows where it lies.* What is written behind it first is no item's. Then as above.
//! - *An item is written over itself and what is free beside it*, for want of room. Its entry is
//!   empty meanwhile, and the journal has the entries before and after. If neither is in the index,
//!   the item is counted as lost.
//! - *An item slides* to a place that does not reach into its own: it is copied, and then one word
//!   of the index names the copy. If the new place reaches into the old one, the record has the
//!   [`Slide`], which goes on where it was.
//! - *An item is removed*, by a client or because it has expired. That is one word. Only then is
//!   its memory free, and only after that is the removal acknowledged.
//! - *A chain is rewritten*, as a bucket is split, merged or given up; *a bucket is linked to a
//!   chain*; *the index has another shape.* All of this is as in cache mode: the journal has the
//!   entries, the record the shape.
//! - *A flush.* It is one word, the generation. Entries of another one name nothing. If the number
//!   of flushes was not announced, the flush is carried out again.
//!
//! *Nothing that was deleted, replaced or flushed comes back:* only entries of chains and of the
//! journal are believed, and the memory of an item is stored to after its entry has gone.
//!
//! *Nothing foreign is served:* an entry is kept if its item's key belongs to its chain by one of
//! its keyhashes, and has that one's tag.
//!
//! # What is made of it
//!
//! Each step leaves what the next recovery needs, so a process that is ended while it recovers is
//! followed by one that recovers. The version of a chain may be odd, and is made even. Stale
//! entries are cleared, so that the scan has nothing to do.

use super::name::Name;
use super::persist::Image;
use super::relocate::moved_to;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Begins, Item};
use crate::index::chained::{FreeList, PutBack, Spares, Verdict};
use crate::index::{Entry, Slot};
use crate::memory::{Record, Slide};
use crate::table::{Heap, Index};
use glimmer_base::Keyhash;

/// What has been found.
struct Findings<'a> {
    begins: Begins,
    /// Counts what is lost.
    record: &'a Record,
    has_overflowed: bool,
}

/// An item that an entry names.
struct Believed<'a> {
    item: Item<'a>,
    /// That of its keyhashes under which the entry lies.
    keyhash: Keyhash,
    is_overflowed: bool,
}

impl Shared {
    /// The item that a live entry names, if that can be so. `home`: the chain that the entry is in,
    /// if it is in one.
    fn believed(&self, entry: Entry, home: Option<usize>) -> Option<Believed<'_>> {
        let at = Name::of(entry).at;
        let item = Item::read(self.space().place(at))?;
        if at + item.words() > self.index.border() {
            return None;
        }
        let is_under = |keyhash: Keyhash| {
            let chain = || self.index.chain_of(self.index.home(keyhash));
            keyhash.tag() == entry.tag() && home.is_none_or(|home| home == chain())
        };
        let believed = |keyhash, is_overflowed| Believed {
            item,
            keyhash,
            is_overflowed,
        };
        let first = self.common.keyhash(&item);
        if is_under(first) {
            return Some(believed(first, false));
        }
        let second = self.common.second_of(&item);
        is_under(second).then(|| believed(second, true))
    }
}

impl<A: Access> Writer<'_, A> {
    /// Makes the partition whole, and an image of it.
    #[cold]
    pub(super) fn recover(&mut self, record: &Record) -> Image {
        let (shared, index) = (self.shared, &self.shared.index);
        if let Some(slide) = record.slide() {
            shared.finish_slide(slide, record);
        }
        let mut found = Findings {
            begins: Begins::none(shared.space().words()),
            record,
            has_overflowed: false,
        };
        let fetch = |entry| self.shared.heap.prefetch(entry, 0);
        let judge = |home, entry| shared.judge(home, entry, &mut found);
        let mut spares = index.recover_chains(fetch, judge);
        let mut free = spares.free_list(index);
        let journal = record.journal();
        let (entries, _) = journal.as_chunks::<2>();
        let of_kind = |is_moved: bool| {
            let of_kind = entries.iter().filter(move |it| (it[1] != 0) == is_moved);
            of_kind.map(|it| Entry::from_raw(it[0]))
        };
        for entry in of_kind(false) {
            shared.recover_entry(entry, (&mut spares, &mut free), &mut found);
        }
        let is_there = |entry: Entry| shared.is_named(entry);
        if of_kind(true).next().is_some() && !of_kind(true).any(is_there) {
            record.count_lost();
        }
        record.forget();
        let (items, bytes) = self.recover_heap(&mut found);
        shared.common.counters.lost.set(record.lost());
        Image {
            spares: free.words(),
            usual_words_64: 0,
            items,
            bytes,
            spares_used: spares.used(),
            scan: [0; 2],
            has_overflowed: found.has_overflowed,
        }
    }

    /// Frees what lies between items. Returns the number of items, and their bytes.
    fn recover_heap(&mut self, found: &mut Findings<'_>) -> (u64, u64) {
        let shared = self.shared;
        let fits = &mut self.state.fits;
        let (mut items, mut bytes) = (0, 0);
        fits.begin_again();
        for at in found.begins.places() {
            let item = Item::read(shared.space().place(at));
            match item.filter(|_| at >= fits.top()) {
                Some(item) => {
                    fits.keep(shared.space(), at, item.words());
                    items += 1;
                    bytes += 8 * item.words() as u64;
                }
                // No crash leaves two items in one place, but a damaged file may have them.
                None => {
                    found.record.count_lost();
                    shared.forget_item(at);
                }
            }
        }
        (items, bytes)
    }
}

impl Shared {
    /// Ends what `slide` had begun in the last process.
    fn finish_slide(&self, slide: Slide, record: &Record) {
        let entry = Entry::from_raw(slide.entry);
        let (from, to) = (Name::of(entry).at, slide.to as usize);
        let words = slide.words as usize;
        let is_possible = to < from && words <= self.space().item_words_max();
        if is_possible
            && self.heap.is_live(entry)
            && from + words <= self.index.border()
            && let Some(slot) = self.slot_of(entry)
        {
            self.copy_left((from, to), words, slide.steps as usize, Some(record));
            self.index.set(slot, moved_to(entry, to));
        }
        record.end_slide();
    }

    /// Where an entry stands, wherever that is.
    fn slot_of(&self, entry: Entry) -> Option<Slot> {
        let index = &self.index;
        let mut slots = (0..index.mains()).flat_map(|main| index.slots(index.main(main)));
        let found = slots.find(|(_, other)| other.same_item(entry));
        found.map(|(slot, _)| slot)
    }

    /// What becomes of an entry of the chain that begins at `home`.
    fn judge(&self, home: usize, entry: Entry, found: &mut Findings<'_>) -> Verdict {
        if !self.heap.is_live(entry) {
            return Verdict::Cleared;
        }
        let Some(Believed {
            item,
            is_overflowed,
            ..
        }) = self.believed(entry, Some(home))
        else {
            // It is another chain's, which the journal has, or nothing.
            if self.believed(entry, None).is_none() {
                found.record.count_lost();
            }
            return Verdict::Cleared;
        };
        if !found.begins.note(Name::of(entry).at) {
            return Verdict::Cleared;
        }
        found.has_overflowed |= is_overflowed;
        Verdict::Stays(as_stored(entry, &item))
    }

    /// Puts an entry of the journal where it belongs, unless it is there.
    fn recover_entry(
        &self,
        entry: Entry,
        lists: (&mut Spares, &mut FreeList),
        found: &mut Findings<'_>,
    ) {
        if !self.heap.is_live(entry) {
            return;
        }
        let Some(Believed {
            item,
            keyhash,
            is_overflowed,
        }) = self.believed(entry, None)
        else {
            found.record.count_lost();
            return;
        };
        if !found.begins.note(Name::of(entry).at) {
            return;
        }
        let home = self.index.chain_of(self.index.home(keyhash));
        let is_live = |entry| self.heap.is_live(entry);
        let put = (self.index).put_back(home, as_stored(entry, &item), is_live, lists);
        found.has_overflowed |= is_overflowed;
        if put == PutBack::NoRoom {
            found.begins.forget(Name::of(entry).at);
            found.record.count_lost();
        }
    }

    /// Whether the index names an item at the place of this entry, under its key.
    fn is_named(&self, entry: Entry) -> bool {
        let believed = self.believed(entry, None);
        believed.is_some_and(|Believed { keyhash, .. }| {
            let mut named = self.index.candidates(self.index.home(keyhash), keyhash);
            named.any(|(_, other)| other.same_item(entry))
        })
    }

    /// Clears the entry that names the item at a place.
    fn forget_item(&self, at: usize) {
        let index = &self.index;
        for home in (0..index.mains()).map(|main| index.main(main)) {
            let is_it = |entry: Entry| !entry.is_empty() && Name::of(entry).at == at;
            index.clear_if(home, is_it, true);
        }
    }
}

/// The entry with what the item says of its expiry: the item may have been written, and the entry
/// not.
fn as_stored(entry: Entry, item: &Item<'_>) -> Entry {
    entry.with_reads(item.layout().expiry.into())
}
