//! Values that are appended to grow where they lie.
//!
//! An append that fits into the item's last word, or into the filler after the item, writes its own
//! bytes, the header and the fields after the value. So its cost does not depend on how long the
//! value is. One that does not fit moves the item, which then gets free space after it: a filler of
//! a bounded part of its length, as a vector has capacity. In all, a value that grows to n bytes is
//! copied a few times over, and leaves as much dead memory, however small the appends are.
//!
//! The filler is no part of the item. It counts as dead memory, and an item that the head moves, or
//! that is stored again, leaves it behind.
//!
//! # Beside readers
//!
//! What lies after the item is seen by no reader: bytes are written there first, however many. The
//! header and the words in which the old value ended are written while the version of the chain is
//! odd, so a reader that copies notices. These are few, so that readers of the whole bucket do not
//! wait for long, as they would if the value was copied. A value that is lent stays as it is: see
//! [`loans`](crate::table::Loans). No filler has a loan: it was made by a writer that had given up
//! the place before and looked for loans, or from items too small to be lent.

use super::place::name_of;
use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{Offset, Put, only_grows, write_behind, write_filler, write_grown};
use crate::index::LogId;
use crate::table::Index;
use glimmer_base::limits::{GROWTH_BYTES_MIN, GROWTH_PART};
use glimmer_base::sync::weakened;

/// Items of at least this many words get space to grow. The model checker takes small ones.
const GROWTH_WORDS_MIN: u64 = if cfg!(any(loom, miri)) {
    4
} else {
    GROWTH_BYTES_MIN as u64 / 8
};

impl<A: Access> Writer<'_, A> {
    /// Stores an item around the value that its key has. Says whether it was stored, as
    /// [`put_as`](Self::put_as) does.
    #[inline(never)]
    pub(super) fn extend_as(&mut self, put: &Put<'_>) -> bool {
        let (shared, words) = (self.shared, put.words as u64);
        let old = shared.find(self.home(put.keyhash), put.keyhash, put.item.key);
        if let Some(found) = &old
            && only_grows(put, &found.item)
            && let (id, offset) = (found.entry.log(), found.entry.offset())
            && self.stays_when_stored_again(id, offset)
            && let Some(extent) = self.extent(found, words)
        {
            shared.common.counters.stored.add(1);
            self.state.search.soonest.note(put.item.expiry);
            self.grow_in_place(found, extent, put);
            return true;
        }
        self.put_as(put)
    }

    fn grow_in_place(&mut self, found: &Found<'_>, extent: u64, put: &Put<'_>) {
        let (shared, old, place) = (self.shared, &found.item, found.item.place());
        let (id, offset) = (found.entry.log(), found.entry.offset());
        let (old_words, words) = (old.words() as u64, put.words as u64);
        write_behind(place, put, old);
        let grow = || {
            write_grown(place, put, old);
            self.leave_filler((id, offset), words, extent);
            shared.note_written_over::<A>(found.cell, found.entry);
        };
        let is_shared = A::SHARED_READS && !weakened("append_version");
        (shared.index).change(found.lock, is_shared, || {
            let loans = &shared.common.loans;
            loans.while_growing(name_of(id, offset), (put, old), grow);
        });
        self.end_moved((id, offset), old_words, words);
        shared.common.counters.in_place_updates.add(1);
        self.count_bytes(old_words, words);
    }

    /// Marks what an item of `words` words leaves of the `extent` words that it has.
    #[inline(always)]
    pub(super) fn leave_filler(&self, (id, offset): (LogId, Offset), words: u64, extent: u64) {
        if extent > words {
            // At a place of its own: the item's ends where the largest item would.
            let log = self.log(id);
            let behind = log.geometry().position(offset) + words as usize;
            write_filler(log.place(behind), extent - words);
        }
    }

    /// An item of `from` words has become one of `to` words where it lies. A vacant place may begin
    /// behind it.
    #[inline(always)]
    pub(super) fn end_moved(&mut self, (id, offset): (LogId, Offset), from: u64, to: u64) {
        if from != to && !self.state.vacant.is_empty() {
            let [from, to] = [from, to].map(|words| Offset::from_raw(offset.raw() + words));
            self.state.vacant.end_moved(id, from, to);
        }
    }

    /// The space to grow that an item gets which is put at a place of its own: some if it keeps
    /// the value that its key has, and adds to it.
    pub(super) fn space_to_grow(&self, id: LogId, put: &Put<'_>) -> u64 {
        let words = put.words as u64;
        let adds = put.keeps_value() && put.item.value.iter().any(|part| !part.is_empty());
        if !adds || words < GROWTH_WORDS_MIN {
            return 0;
        }
        let most = self.log(id).item_words_max() as u64;
        (words / GROWTH_PART as u64).min(most.saturating_sub(words))
    }
}
