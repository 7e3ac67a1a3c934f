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
use crate::table::{Draft, Purpose, Reservation, Reserved, Step};
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
        let id = match self.find_or_remember(home, keyhash, (key, words)) {
            Ok(found) => self.log_for_known(&found, words, false),
            Err(ghost) => self.log_for_new(words, ghost.is_some()),
        };
        let id = match purpose {
            Purpose::Upload if !self.takes_upload(id, words) => LogId::Main,
            _ => id,
        };
        if let Some(place) = self.occupy(id, words) {
            return Step::Reserved(self.mark_reserved(place));
        }
        let bounded = reservation.step();
        let paid = reservation.pay(bounded);
        self.scan_after(id, paid);
        if bounded {
            let budget = &mut reservation.budget;
            if !self.make_some_room(id, words, budget, now) || !reservation.is_paid() {
                return Step::Again;
            }
        }
        let offset = self.claim(id, words, now);
        let place = self.mark_reserved(Place { id, offset, words });
        self.appended(id, offset, words, now);
        Step::Reserved(place)
    }

    /// Marks a place as reserved.
    fn mark_reserved(&mut self, place: Place) -> Reserved {
        let Place { id, offset, words } = place;
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
    use crate::evict::RULES;
    use crate::heap::NewItem;
    use crate::memory::PagePolicy;
    use crate::mica_cache::{Owner, PartitionConfig};
    use crate::table::{Large, ROOM_WORDS_PER_HOLD, Stored, Table, TableWriter};
    use crate::work;
    use glimmer_base::{Moment, Seed};

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

    /// A log full of tiny items, all of them read once, so that some rules keep them. A large value
    /// takes the place of thousands, a bounded number in each hold of the lock.
    #[test]
    fn what_is_done_for_room_in_one_hold_is_bounded() {
        // An item takes three words. Its chain is looked at as well, and for one that goes on to
        // another log the item at that one's head, with its chain.
        const EXAMINED_MAX: usize = 4 * ROOM_WORDS_PER_HOLD as usize / 3;
        let value = vec![7; 1 << 20];
        for rule in glimmer_seeds::a_third(RULES) {
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
