//! Large items: a place that another large item has left, or one at the tail of a log, is reserved,
//! the value is copied while no lock is held, and then the place becomes the item
//! ([`table::draft`](crate::table::Draft)).
//!
//! In the log a place that is reserved is a filler, which the head passes as any other, except that
//! it waits for a copy in progress. No update in place takes it for the space after an item. It
//! stays marked so if it never becomes an item.

use super::place::{Place, name_of, named};
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Put, write_drafted, write_filler, write_reserved};
use crate::index::LogId;
use crate::memory::Words;
use crate::table::{Draft, Purpose, Reservation, Reserved, RoomLeft, Step};
use glimmer_base::sync::weakened;

impl Shared {
    /// A place that is reserved.
    pub(super) fn place_of(&self, place: Reserved) -> Words<'_> {
        let (id, offset) = named(place.at);
        let log = self.log(id);
        Words::of(
            log.place(log.geometry().position(offset))
                .range(0, place.words as usize),
        )
    }
}

impl<A: Access> Writer<'_, A> {
    /// Reserves a vacant place, or makes some room and reserves a place when there is enough.
    pub(super) fn reserve(&mut self, reservation: &mut Reservation<'_>) -> Step {
        let Reservation {
            purpose,
            key,
            keyhash,
            now,
            words,
            ..
        } = *reservation;
        let shared = self.shared;
        if words > shared.log(LogId::Main).item_words_max() as u64 {
            return Step::Never;
        }
        let home = self.home(keyhash);
        self.follow_setting();
        let (id, is_on_probation) = match self.find_or_remember(home, keyhash, (key, words)) {
            Ok(found) => (self.log_for_known(&found, words, false), false),
            Err(ghost) => self.log_for_new(words, ghost.is_some()),
        };
        let id = match purpose {
            Purpose::Upload if !self.takes_upload(id, words) => LogId::Main,
            _ => id,
        };
        if let Some(place) = self.occupy(id, words) {
            return Step::Reserved(self.mark_reserved(place, is_on_probation));
        }
        let is_stepwise = reservation.is_stepwise();
        let paid = reservation.pay(is_stepwise);
        self.scan_after(id, paid);
        if is_stepwise {
            let before = reservation.before();
            reservation.begin_step(before.map_or(0, |before| self.retaken(id, before)));
            let has_room = self.make_some_room(id, words, reservation.budget(), now);
            reservation.end_step(RoomLeft {
                tail: name_of(id, self.tail(id)),
                free_words: self.free(id),
            });
            if !has_room || !reservation.is_paid() {
                return Step::Again;
            }
        }
        let offset = self.claim(id, words, now);
        let place = self.mark_reserved(Place { id, offset, words }, is_on_probation);
        self.appended(id, offset, words, now);
        Step::Reserved(place)
    }

    /// Words of the room that a step had left at the tail of this log, and that others have taken
    /// since. In another lap, that room is gone as a whole, and none of it is counted.
    fn retaken(&self, id: LogId, left: RoomLeft) -> u64 {
        let (log, before) = named(left.tail);
        let tail = self.tail(id);
        if log != id || !self.geometry(id).is_same_lap(before, tail) {
            return 0;
        }
        // A name from long ago may be of another lap of the same number.
        let appended = (self.position(id, tail)).saturating_sub(self.position(id, before));
        // Who appended more has made room for the rest.
        appended.min(left.free_words)
    }

    /// Marks a place as reserved. Its item is new to the main log, or is not.
    fn mark_reserved(&mut self, place: Place, is_on_probation: bool) -> Reserved {
        let Place { id, offset, words } = place;
        if is_on_probation {
            self.state.admission.probation.enter(words);
        }
        let log = self.shared.log(id);
        let place = log.place(log.geometry().position(offset));
        match weakened("draft_mark") {
            true => write_filler(place, words),
            false => write_reserved(place, words),
        }
        self.state.reserved_words += words;
        Reserved {
            at: name_of(id, offset),
            words,
        }
    }

    /// Stores a large item of which there is a draft; says whether that was done.
    #[cold]
    #[inline(never)]
    pub(super) fn put_draft(&mut self, put: &Put<'_>) -> bool {
        let is_its = |draft: &mut Draft| draft.is_of(put);
        let draft = self.state.ledger.draft.take_if(is_its);
        draft.is_some_and(|draft| self.put_drafted(put, draft.place))
    }

    /// Stores a large item that is at a place except for its header and the fields after its value;
    /// says whether that was done.
    pub(super) fn put_drafted(&mut self, put: &Put<'_>, reserved: Reserved) -> bool {
        let shared = self.shared;
        self.state.reserved_words -= reserved.words;
        if !self.is_reserved(reserved) {
            return false;
        }
        let words = put.words as u64;
        let (id, offset) = named(reserved.at);
        let place = shared.place_of(reserved);
        if reserved.words > words {
            let rest = place.range(put.words, (reserved.words - words) as usize);
            write_filler(Words::of(rest), reserved.words - words);
        }
        write_drafted(place, put);
        self.follow_setting();
        let home = self.home(put.keyhash);
        let (old, ghost) = match self.find_or_remember(home, put.keyhash, (put.item.key, words)) {
            Ok(found) => {
                let words = found.item.words() as u64;
                (Some((found.slot, found.entry, words)), None)
            }
            Err(ghost) => (None, ghost),
        };
        let entry = self.new_entry(put, (id, offset), old.is_none());
        self.index_item(put, entry, old, ghost);
        self.learn_size(put.words);
        true
    }

    /// Whether the place of a draft is still there. The head may have passed it since the copy was
    /// completed.
    fn is_reserved(&self, place: Reserved) -> bool {
        let (id, offset) = named(place.at);
        weakened("draft_recheck") || self.log(id).is_live(offset)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use crate::access::Crcw;
    use crate::evict::{RULES, Rule};
    use crate::heap::NewItem;
    use crate::memory::PagePolicy;
    use crate::mica_cache::{Owner, PartitionConfig};
    use crate::table::{Announced, Begun, Headway, Large, Stored, Table, TableWriter};
    use crate::work;
    use glimmer_base::limits::{ROOM_BYTES_PER_HOLD, ROOM_ITEMS_PER_TURN};
    use glimmer_base::{Moment, Seed};

    /// Words of a tiny item.
    const TINY_WORDS: u64 = 3;
    const LARGE_BYTES: usize = 1 << 20;
    const ROOM_WORDS_PER_HOLD: u64 = ROOM_BYTES_PER_HOLD as u64 / 8;

    const NOW: Moment = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };

    fn put(owner: &mut Owner<Crcw>, key: u32, value: &[u8]) {
        let key = key.to_be_bytes();
        let keyhash = Seed(0).keyhash(&key);
        let stored = (owner.enter(0)).put(keyhash, &NewItem::new(&key, value), NOW);
        assert!(matches!(stored, Stored::Yes(_)));
    }

    /// A log full of tiny items, of which some were read once, so that some rules keep them.
    fn full_of_tiny_items(rule: &Rule) -> Owner<Crcw> {
        let mut owner = Owner::<Crcw>::new(
            &PartitionConfig {
                log_bytes: 8 << 20,
                main_buckets: 20_000,
                spare_buckets: 5_000,
                item_bytes_max: 2 << 20,
                pages: PagePolicy::Small,
                hasher: Seed(0).into(),
                ..PartitionConfig::default()
            },
            rule.with_threshold(0.5),
        )
        .unwrap();
        for key in 0..600_000u32 {
            put(&mut owner, key, &[1; 8]);
            if key % 2 == 0 {
                let key = key.to_be_bytes();
                owner
                    .enter(0)
                    .read(Seed(0).keyhash(&key), &key, NOW, |_| ());
            }
        }
        owner
    }

    /// Receives a large value and stores it. Between two turns in which room is made, `between` is
    /// called. Returns how many turns there were, and how much was looked at in one of them.
    fn receive(
        owner: &mut Owner<Crcw>,
        n: u32,
        mut between: impl FnMut(&mut Owner<Crcw>),
    ) -> (u64, usize) {
        let key = n.to_be_bytes();
        let announced = Announced {
            key: &key,
            keyhash: Seed(0).keyhash(&key),
            value_bytes: LARGE_BYTES,
            part: 1,
            now: NOW,
        };
        let (mut headway, mut turns, mut most) = (Headway::new(0), 0, 0);
        let upload = loop {
            headway.items_left = ROOM_ITEMS_PER_TURN;
            work::take();
            let begun = owner.begin_upload(Default::default(), 0, &announced, &mut headway);
            most = most.max(work::take().examined);
            turns += 1;
            match begun {
                Begun::Yes(upload) => break upload,
                Begun::Again => between(owner),
                Begun::Full | Begun::Never => panic!("there is room for one"),
            }
        };
        let mut stored = None;
        owner.enter(0).with_upload(upload, &mut |writer, value| {
            stored = Some(writer.put(announced.keyhash, &NewItem::new(&key, value), NOW));
        });
        assert!(matches!(stored, Some(Stored::Yes(_))));
        (turns, most)
    }

    /// A large value that is about to arrive takes the place of thousands of tiny items, a bounded
    /// number in each turn.
    #[test]
    fn what_is_done_for_an_upload_in_one_turn_is_bounded() {
        // Where there is room at once, a turn takes steps that do nothing but scan the index.
        const EXAMINED_MAX: usize = 48 * ROOM_ITEMS_PER_TURN as usize;
        for rule in glimmer_seeds::a_third(RULES) {
            let mut owner = full_of_tiny_items(rule);
            for n in 0..4 {
                let (turns, most) = receive(&mut owner, 1_000_000 + n, |_| ());
                println!("{}: {turns} turns, {most} looked at", rule.name);
                let needed = LARGE_BYTES as u64 / 8 / TINY_WORDS / ROOM_ITEMS_PER_TURN;
                // Later ones may take the place of an earlier one.
                let is_first = n == 0;
                assert!(turns >= needed || !is_first, "{}", rule.name);
                assert!(most <= EXAMINED_MAX, "{}", rule.name);
            }
            owner.enter(0).audit();
        }
    }

    /// Others store tiny items in each turn, as many as leave for the large value.
    #[test]
    fn room_for_an_upload_is_made_although_others_take_some() {
        for rule in glimmer_seeds::a_third(RULES) {
            let (mut owner, mut next) = (full_of_tiny_items(rule), 2_000_000);
            let (alone, _) = receive(&mut owner, 1_000_000, |_| ());
            let (turns, _) = receive(&mut owner, 1_000_001, |owner| {
                for _ in 0..ROOM_ITEMS_PER_TURN {
                    put(owner, next, &[1; 8]);
                    next += 1;
                }
            });
            println!("{}: {turns} turns, alone {alone}", rule.name);
            assert!(turns <= 2 * alone, "{}", rule.name);
        }
    }

    /// A large value that is there takes the place of thousands of tiny items, a bounded number in
    /// each hold of the lock.
    #[test]
    fn what_is_done_for_room_in_one_hold_is_bounded() {
        // An item's chain is looked at as well, and for one that goes on to another log the item at
        // that one's head, with its chain.
        const EXAMINED_MAX: usize = 4 * (ROOM_WORDS_PER_HOLD / TINY_WORDS) as usize;
        let value = vec![7; LARGE_BYTES];
        for rule in glimmer_seeds::a_third(RULES) {
            let mut owner = full_of_tiny_items(rule);
            for n in 0..8u32 {
                let key = (1_000_000 + n).to_be_bytes();
                let keyhash = Seed(0).keyhash(&key);
                let large = Large {
                    key: &key,
                    keyhash,
                    value: &value,
                    now: NOW,
                };
                let (mut holds, mut most) = (0, 0);
                work::take();
                let draft = owner.draft(Default::default(), 0, &large, |_| {
                    most = most.max(work::take().examined);
                    holds += 1;
                    true
                });
                most = most.max(work::take().examined);
                assert!(draft.is_some(), "{}", rule.name);
                let needed = value.len() as u64 / 8 / ROOM_WORDS_PER_HOLD;
                println!("{}: {holds} holds, {most} looked at", rule.name);
                assert!(holds >= needed && most <= EXAMINED_MAX, "{}", rule.name);
                let item = NewItem::new(&key, &value);
                let mut writer = owner.enter(0);
                writer.bring(draft);
                let stored = writer.put(keyhash, &item, NOW);
                writer.bring(None);
                drop(writer);
                assert!(matches!(stored, Stored::Yes(_)));
                let in_place = work::take().words_copied;
                assert_eq!(in_place, 0, "the value was copied before");
            }
            owner.enter(0).audit();
        }
    }
}
