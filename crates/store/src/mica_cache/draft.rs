//! Large items: a place at the tail of a log is reserved, the value is copied while no lock is
//! held, and then the place becomes the item ([`table::draft`](crate::table::Draft)).
//!
//! In the log a place that is reserved is a filler, which the head passes as any other, except that
//! it waits for a copy in progress. No update in place takes it for the space after an item. It
//! stays marked so if it never becomes an item.

use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Offset, Put, write_drafted, write_filler, write_reserved};
use crate::index::{Entry, LogId};
use crate::memory::Words;
use crate::table::{Draft, Reservation, Step};
use glimmer_base::sync::weakened;

/// What a place is called among the table's drafts.
pub(super) fn name_of(id: LogId, offset: Offset) -> u64 {
    offset.raw() << 1 | id as u64
}

fn named(name: u64) -> (LogId, Offset) {
    let id = match name & 1 {
        0 => LogId::Main,
        _ => LogId::Small,
    };
    (id, Offset::from_raw(name >> 1))
}

const _: () = assert!(LogId::Main as u64 == 0 && LogId::Small as u64 == 1);

impl Shared {
    /// The place of a draft. While it is copied, no head passes it.
    pub(super) fn place_of(&self, draft: &Draft) -> Words<'_> {
        let (id, offset) = named(draft.at);
        let log = self.log(id);
        Words::of(
            log.place(log.geometry().position(offset))
                .range(0, draft.words as usize),
        )
    }
}

impl<A: Access> Writer<'_, A> {
    /// Makes some room, and reserves the place when there is enough.
    pub(super) fn reserve(&mut self, reservation: &mut Reservation<'_>) -> Step {
        let (shared, large, words) = (self.shared, reservation.large, reservation.words);
        if words > shared.log(LogId::Main).item_words_max() as u64 {
            return Step::Never;
        }
        let home = self.home(large.keyhash);
        let old = shared.find(home, large.keyhash, large.key);
        let id = self.choose_log(home, large.keyhash, &old, words);
        let bounded = reservation.step();
        let paid = reservation.pay(bounded);
        self.scan_after(id, paid);
        if bounded {
            let budget = &mut reservation.budget;
            if !self.make_some_room(id, words, budget, large.now) || !reservation.is_paid() {
                return Step::Again;
            }
        }
        let tail = self.claim(id, words, large.now);
        let at = name_of(id, tail);
        let Some(number) = shared.common.drafts.begin(at) else {
            return Step::Never;
        };
        let log = shared.log(id);
        let place = log.place(log.geometry().position(tail));
        match weakened("draft_mark") {
            true => write_filler(place, words),
            false => write_reserved(place, words),
        }
        self.appended(id, tail, words, large.now);
        Step::Reserved(reservation.draft(at, number))
    }

    /// Stores a large item. Beside readers it is never written over another one, as readers of the
    /// whole bucket would wait.
    #[cold]
    #[inline(never)]
    pub(super) fn put_large(&mut self, put: &Put<'_>) -> bool {
        let shared = self.shared;
        let draft = self.state.ledger.draft.take();
        let home = self.home(put.keyhash);
        let old = shared.find(home, put.keyhash, put.item.key);
        let replaced = old.map(|found| (found.slot, found.entry, found.item.words() as u64));
        if let Some(draft) = draft
            && draft.is_of(put.keyhash, put.item)
            && self.is_reserved(&draft)
        {
            let words = put.words as u64;
            let (id, offset) = named(draft.at);
            let place = shared.place_of(&draft);
            if draft.words > words {
                let rest = place.range(put.words, (draft.words - words) as usize);
                write_filler(Words::of(rest), draft.words - words);
            }
            write_drafted(place, put);
            self.index_item(put, Entry::new(put.keyhash.tag(), id, offset, 0), replaced);
            self.learn_size(put.words);
            return true;
        }
        let id = self.choose_log(home, put.keyhash, &old, put.words as u64);
        self.append(put, id, replaced)
    }

    /// Whether the place of a draft is still there. The head may have passed it since the copy was
    /// completed.
    fn is_reserved(&self, draft: &Draft) -> bool {
        let (id, offset) = named(draft.at);
        weakened("draft_recheck") || self.log(id).is_live(offset)
    }
}
