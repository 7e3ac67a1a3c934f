//! Places of large items that are gone, for the large items that are stored next.
//!
//! A large item is never written over where it lies beside readers. If each store of it went to the
//! tail instead, a few values that are stored again and again would wander through all of the log:
//! through memory that is in no cache, and that the kernel may have yet to provide. So the table
//! remembers some of the places that such items leave, joined where they lie side by side, and
//! gives a part of one of them to the next item that fits.
//!
//! An item there is as old as its place, just as one that is updated in place. So a place is not
//! used where an item would not be updated in place: near the head, or where the eviction rule has
//! what is stored again go to the tail.
//!
//! # Why neither a reader nor a loan meets what is stored there
//!
//! The item that lay at a place is gone when its entry is replaced or cleared, and so the version
//! of its chain has changed. After that the writer runs a `SeqCst` fence, and only then stores
//! there.
//!
//! - *A reader that copies* looks at the version again behind an acquire fence. If it has copied a
//!   word that was stored after the writer's fence, it sees that the version has changed.
//! - *A reader that borrows* notes the place, runs a `SeqCst` fence, and looks at the version
//!   again. If its fence comes first, the writer sees the note, and does not take the place. If the
//!   writer's fence comes first, the reader sees that the version has changed, and makes no loan
//!   (see [`loans`](crate::table::Loans)).
//!
//! A version never comes back, so a reader is not deceived by an entry that does: the same key may
//! get a place again that it had before.

use super::lookahead::Lookahead;
use super::place::{Place, named};
use super::{Shared, State, Writer};
use crate::access::Access;
use crate::heap::{Offset, write_filler};
use crate::index::LogId;
use crate::table::DRAFT_WORDS_MIN;
use glimmer_base::limits::VACANT_PLACES_MAX;
use glimmer_base::sync::Ordering::SeqCst;
use glimmer_base::sync::{fence, weakened};

/// Fillers after an item that its place takes with it, at most.
const FILLERS_MAX: usize = 8;

/// The places that are remembered, in the order in which they were left. Each includes the filler
/// behind the item that lay there. It begins where something in the log begins, and ends where
/// something ends. No two adjoin: they are one then.
#[derive(Default)]
pub(super) struct Vacant(Vec<Place>);

impl Vacant {
    pub fn add(&mut self, mut place: Place) {
        self.0.retain(|other| {
            let adjoins = place.adjoins(other);
            if adjoins {
                place = place.with(other);
            }
            !adjoins
        });
        if self.0.len() == VACANT_PLACES_MAX {
            self.0.remove(0);
        }
        self.0.push(place);
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.0.iter()
    }

    /// Which place of a log is the shortest one that is long enough.
    fn best(&self, id: LogId, words: u64, is_free: impl Fn(&Place) -> bool) -> Option<usize> {
        let fits =
            |(_, place): &(usize, &Place)| place.id == id && place.words >= words && is_free(place);
        let places = self.0.iter().enumerate().filter(fits);
        let (nth, _) = places.min_by_key(|(_, place)| place.words)?;
        Some(nth)
    }

    /// The item before a place has grown into it, or has left it some of its own: what ended at
    /// `from` ends at `to`.
    pub fn end_moved(&mut self, id: LogId, from: Offset, to: Offset) {
        let is_behind = |place: &Place| place.id == id && place.offset == from;
        let Some(nth) = self.0.iter().position(is_behind) else {
            return;
        };
        let place = &mut self.0[nth];
        let end = place.end();
        place.offset = to;
        place.words = end - to.raw();
        if place.words == 0 {
            self.0.remove(nth);
        }
    }
}

impl State {
    /// Forgets the places that the heads have passed. Called at least once in each lap, so that
    /// offsets of former laps are not taken for those of later ones.
    pub(super) fn forget_passed(&mut self, shared: &Shared) {
        let is_live = |place: &Place| shared.log(place.id).is_live(place.offset);
        self.vacant.0.retain(is_live);
    }
}

impl<A: Access> Writer<'_, A> {
    /// A large item has left its place, and no entry names it.
    #[cold]
    #[inline(never)]
    pub(super) fn vacate(&mut self, id: LogId, offset: Offset, words: u64) {
        let shared = self.shared;
        self.state.forget_passed(shared);
        if !self.log(id).is_live(offset) {
            return;
        }
        let mut place = Place { id, offset, words };
        for _ in 0..FILLERS_MAX {
            match self.filler_behind(id, offset, place.words) {
                0 => break,
                filler => place.words += filler,
            }
        }
        self.state.vacant.add(place);
    }

    /// A place in a log for an item of this many words, if there is one that nobody reads, or else
    /// in the main log: a small one holds few large items, and would pass them on. The place is
    /// marked as unused, and what it has beyond those words is less than a large item takes: the
    /// rest of a longer place stays vacant.
    pub(super) fn occupy(&mut self, id: LogId, words: u64) -> Option<Place> {
        let shared = self.shared;
        self.take_back_uploads();
        self.state.forget_passed(shared);
        if self.state.vacant.is_empty() {
            return None;
        }
        if !weakened("vacant_fence") {
            fence(SeqCst);
        }
        // The items that lay there have left, one by one.
        let lent = shared.common.loans.lent();
        let is_lent = |place: &Place| {
            let lies_there = |name| {
                let (log, offset) = named(name);
                place.id == log && (place.offset.raw()..place.end()).contains(&offset.raw())
            };
            !weakened("vacant_lent") && lent.any(lies_there)
        };
        let is_free =
            |place: &Place| self.stays_when_stored_again(place.id, place.offset) && !is_lent(place);
        let best = |id| self.state.vacant.best(id, words, is_free);
        let nth = best(id).or_else(|| best(LogId::Main))?;
        let whole = self.state.vacant.0.remove(nth);
        let id = whole.id;
        let (log, most) = (shared.log(id), shared.log(id).item_words_max() as u64);
        let taken = match whole.words - words < DRAFT_WORDS_MIN as u64 {
            true => whole.words.min(most),
            false => words,
        };
        let (place, rest) = whole.split(taken);
        for part in [place, rest].iter().filter(|part| part.words > 0) {
            write_filler(log.place(log.geometry().position(part.offset)), part.words);
        }
        if rest.words >= DRAFT_WORDS_MIN as u64 {
            self.state.vacant.add(rest);
        }
        // What is known of the items ahead may be of the one that lay there.
        self.state.lookahead[id as usize] = Lookahead::at(self.log(id).head());
        Some(place)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use crate::access::Crcw;
    use crate::evict::FIFO;
    use crate::heap::NewItem;
    use crate::index::LogId;
    use crate::memory::PagePolicy;
    use crate::mica_cache::{Owner, PartitionConfig};
    use crate::table::{Large, Stored, Table, TableWriter};
    use glimmer_base::{Moment, Seed};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    const NOW: Moment = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };

    fn owner() -> Owner<Crcw> {
        let config = PartitionConfig {
            log_bytes: 4 << 20,
            main_buckets: 64,
            spare_buckets: 16,
            item_bytes_max: 1 << 20,
            pages: PagePolicy::Small,
            hasher: Seed(0).into(),
            ..PartitionConfig::default()
        };
        Owner::new(&config, FIFO).unwrap()
    }

    /// Copies a value, and stores it if `is_stored`. Returns the position of the tail.
    fn draft(owner: &mut Owner<Crcw>, key: &[u8], bytes: usize, is_stored: bool) -> u64 {
        let (keyhash, value) = (Seed(0).keyhash(key), vec![key[0]; bytes]);
        let large = Large {
            key,
            keyhash,
            value: &value,
            now: NOW,
        };
        let draft = owner.draft(Default::default(), 0, &large, |_| true);
        assert!(draft.is_some(), "the value is large");
        let mut writer = owner.enter(0);
        writer.bring(draft);
        if is_stored {
            let stored = writer.put(keyhash, &NewItem::new(key, &value), NOW);
            assert!(matches!(stored, Stored::Yes(_)));
        }
        writer.bring(None);
        writer.audit();
        writer.position(LogId::Main, writer.tail(LogId::Main))
    }

    #[test]
    fn a_value_that_is_stored_again_and_again_takes_two_places() {
        let mut owner = owner();
        draft(&mut owner, b"a", 300_000, true);
        let tail = draft(&mut owner, b"a", 300_000, true);
        for n in 0..100 {
            // Shorter by less than an eighth of what is stored.
            let bytes = 300_000 - 300 * n;
            assert_eq!(draft(&mut owner, b"a", bytes, true), tail, "{bytes}");
        }
        let (key, keyhash) = (b"a", Seed(0).keyhash(b"a"));
        let found = (owner.enter(0)).read(keyhash, key, NOW, |item| item.value().len());
        assert_eq!(found, Some(300_000 - 300 * 99));
    }

    #[test]
    fn long_places_are_split_and_short_ones_that_adjoin_are_joined() {
        let mut owner = owner();
        let keys: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        for key in &keys[..3] {
            draft(&mut owner, key, 300_000, true);
        }
        let tail = draft(&mut owner, b"z", 300_000, true);
        for key in &keys[..3] {
            assert!(owner.enter(0).remove(Seed(0).keyhash(key), key, NOW));
        }
        assert_eq!(draft(&mut owner, b"a", 800_000, true), tail, "joined");
        assert_eq!(draft(&mut owner, b"b", 90_000, true), tail, "the rest");
        assert!(owner.enter(0).remove(Seed(0).keyhash(b"a"), b"a", NOW));
        for key in keys {
            assert_eq!(draft(&mut owner, key, 190_000, true), tail, "split");
        }
        assert!(
            draft(&mut owner, b"z", 200_000, true) > tail,
            "no place is left"
        );
    }

    #[test]
    fn the_places_of_what_is_deleted_or_not_stored_are_used() {
        let mut owner = owner();
        let tail = draft(&mut owner, b"a", 300_000, true);
        let (key, keyhash) = (b"a", Seed(0).keyhash(b"a"));
        assert!(owner.enter(0).remove(keyhash, key, NOW));
        assert_eq!(draft(&mut owner, b"b", 300_000, false), tail, "deleted");
        assert_eq!(draft(&mut owner, b"c", 300_000, true), tail, "not stored");
        assert!(draft(&mut owner, b"d", 300_000, true) > tail, "it is taken");
    }

    #[test]
    fn no_place_that_the_head_has_passed_is_used() {
        let mut owner = owner();
        draft(&mut owner, b"a", 300_000, true);
        draft(&mut owner, b"a", 300_000, true);
        let mut writer = owner.enter(1);
        assert_eq!(writer.occupy(LogId::Main, 300_000 / 8), None, "flushed");
    }

    /// A log of about forty large items: the walk ahead of the head is often at one of them.
    #[test]
    fn items_at_vacant_places_are_evicted_as_others_are() {
        let seed = rand::random();
        println!("seed {seed}");
        let (mut rng, mut owner) = (SmallRng::seed_from_u64(seed), owner());
        let (mut reused, mut before) = (0, 0);
        for _ in 0..2_000 {
            let key = [rng.random_range(0..50u8)];
            let keyhash = Seed(0).keyhash(&key);
            if rng.random_bool(0.1) {
                owner.enter(0).remove(keyhash, &key, NOW);
            }
            let bytes = rng.random_range(80_000..120_000);
            let tail = draft(&mut owner, &key, bytes, rng.random_bool(0.9));
            reused += u32::from(tail == before);
            before = tail;
        }
        assert!(reused > 200, "{reused} vacant places were used");
    }
}
