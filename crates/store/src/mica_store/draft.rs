//! Large items: a place in the heap is reserved, the value is copied while no lock is held, and
//! then the place becomes the item ([`table::draft`](crate::table::Draft)).
//!
//! In the heap a place that is reserved is in use, without an item: it is neither given to others
//! nor slid. Only a flush takes it away. A value for which the heap has no room beside the old one
//! is copied under the lock, over the old one if it has to be.
//!
//! The same is true for the place of a value that is [received](crate::table::Upload) there, except
//! that this survives a flush. What is being received then slides to the bottom of the heap, which
//! is empty but for that.

use super::name::Generation;
use super::room::Wanting;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Put, write_drafted, write_over};
use crate::memory::Words;
use crate::table::{Draft, Reservation, Reserved, Step};
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::weakened;

/// Bits of a place's name that say where it is. The others say when it was reserved, in flushes.
const POSITION_BITS: u32 = 32;

fn name_of(generation: Generation, at: usize) -> u64 {
    generation.raw() << POSITION_BITS | at as u64
}

/// Where a place is, and when it was reserved.
fn named(place: Reserved) -> (Generation, usize) {
    let generation = Generation::from_raw(place.at >> POSITION_BITS);
    (generation, place.at as u32 as usize)
}

impl Shared {
    /// A place that is reserved.
    pub(super) fn place_of(&self, place: Reserved) -> Words<'_> {
        let (_, at) = named(place);
        Words::of(self.space().place(at).range(0, place.words as usize))
    }
}

impl<A: Access> Writer<'_, A> {
    /// Reserves the place if there is room.
    pub(super) fn reserve(&mut self, reservation: &Reservation<'_>) -> Step {
        self.take_back_uploads();
        let (shared, words) = (self.shared, reservation.words as usize);
        let space = shared.space();
        if words > space.item_words_max() {
            return Step::Never;
        }
        match self.allocate(words) {
            Some(at) => Step::Reserved(self.mark_reserved(at, words)),
            None => Step::Never,
        }
    }

    /// Marks a place as reserved.
    fn mark_reserved(&self, at: usize, words: usize) -> Reserved {
        self.shared.space().reserve(at, words);
        Reserved {
            at: name_of(self.shared.heap.generation(), at),
            words: words as u64,
        }
    }

    /// Reserves places again for what is being received, at the bottom of the heap, of which all is
    /// free. What has arrived slides there.
    pub(super) fn keep_uploads(&mut self) {
        let shared = self.shared;
        let mut cells: Vec<_> = self.state.ledger.uploads.cells().cloned().collect();
        cells.sort_by_key(|cell| named(cell.place()).1);
        for cell in cells {
            let (place, words) = (cell.place(), cell.place().words as usize);
            let (_, from) = named(place);
            // None lies further to the right than before, so there is room for all.
            let at = self.allocate(words).expect("the heap is empty");
            let copy = |begun_words: usize| {
                let (old, new) = (shared.space().place(from), shared.space().place(at));
                for (old, new) in old
                    .range(0, begun_words)
                    .iter()
                    .zip(new.range(0, begun_words))
                {
                    new.store(old.load(Relaxed), Relaxed);
                }
                Words::of(new.range(0, words))
            };
            // SAFETY: the place is one of this heap's.
            unsafe { cell.relocate(copy) };
            let name = self.mark_reserved(at, words).at;
            self.state.ledger.uploads.rename(place.at, name);
        }
    }

    /// Stores a large item of which there is a draft; says whether that was done. There may be no
    /// room for its entry.
    #[cold]
    #[inline(never)]
    pub(super) fn put_drafted(&mut self, put: &Put<'_>, draft: Draft) -> bool {
        self.state.ledger.draft = Some(draft);
        let overflowed = match self.shared.common.has_overflowed() {
            true => self.overflowed(put),
            false => None,
        };
        let put = overflowed.as_ref().unwrap_or(put);
        let try_put = Self::try_put_drafted;
        let stored = try_put(self, put).is_ok() || self.put_in_room(put, try_put);
        if stored {
            self.note_stored(put);
        }
        stored
    }

    /// Stores a large item unless there is no room for its entry. The draft is used unless the item
    /// overflows.
    fn try_put_drafted(&mut self, put: &Put<'_>) -> Result<(), Wanting> {
        let home = self.shared.index.chain_of(self.home(put.keyhash));
        match self.is_drafted(put) {
            true => self.try_put_large(home, put).expect("there is a draft"),
            false => self.try_put(put),
        }
    }

    /// [`try_put`](Self::try_put) for a large item beside readers, unless it is to be stored as a
    /// small one. It is written over an old one only where there is no room for both, as readers of
    /// the whole bucket would wait.
    #[cold]
    #[inline(never)]
    pub(super) fn try_put_large(
        &mut self,
        home: usize,
        put: &Put<'_>,
    ) -> Option<Result<(), Wanting>> {
        let old = self
            .shared
            .find(self.home(put.keyhash), put.keyhash, put.item.key);
        let is_drafted = self.is_drafted(put);
        let Some(old) = old.filter(|found| !self.is_gone(found, put)) else {
            if !is_drafted {
                return None;
            }
            if let Some(found) = old {
                self.reclaim_expired(found, put.now);
            }
            let slot = match self.free_slot(home) {
                Ok(slot) => slot,
                Err(wanting) => return Some(Err(wanting)),
            };
            let at = self.finish_draft(put);
            self.link(home, slot, at, put);
            return Some(Ok(()));
        };
        let at = match is_drafted {
            true => self.finish_draft(put),
            false => {
                let at = self.allocate(put.words)?;
                write_over(self.shared.space().place(at), put, &old.item);
                at
            }
        };
        self.link_instead_of(&old, at, put);
        let bytes = &self.shared.common.counters.bytes;
        bytes.add(8 * put.words as u64);
        bytes.sub(8 * old.item.words() as u64);
        Some(Ok(()))
    }

    /// Whether there is a draft of the item at a place that it still has.
    fn is_drafted(&self, put: &Put<'_>) -> bool {
        let draft = self.state.ledger.draft.as_ref();
        draft.is_some_and(|draft| draft.is_of(put) && self.is_reserved(draft.place))
    }

    fn is_reserved(&self, place: Reserved) -> bool {
        weakened("draft_generation_recheck") || named(place).0 == self.shared.heap.generation()
    }

    /// Makes an item of the draft that there is of it, and says where it lies.
    fn finish_draft(&mut self, put: &Put<'_>) -> usize {
        let draft = self.state.ledger.draft.take();
        let place = draft.expect("there is a draft of the item").place;
        let (shared, (_, at)) = (self.shared, named(place));
        let words = place.words as usize;
        write_drafted(shared.place_of(place), put);
        if put.words < words {
            let fits = &mut self.state.fits;
            fits.shorten(shared.space(), at, words, put.words);
        }
        at
    }

    /// Frees the place of a draft that was not stored.
    pub(super) fn abandon(&mut self, place: Reserved) {
        if self.is_reserved(place) {
            let (_, at) = named(place);
            self.free_place(at, place.words as usize);
        }
    }
}
