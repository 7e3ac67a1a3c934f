//! Ends a process between any two of the instructions of a request.
//!
//! Requests are executed while every store to the file is watched ([`watch`](super::watch)). Then
//! the file is made again as it was after each of these stores, and attached, as the next process
//! would find it if this one had ended there:
//!
//! - Each item is as it was before the request, or as it is after it. Nothing has come back that
//!   had expired, or had been deleted or flushed.
//! - An item is missing that is there both before and after only if it is counted as lost. That is
//!   one item at most: the request's own, or in cache mode one that the eviction rule moves.
//! - Nothing is counted as lost that is there.
//! - No memory is lost: the table says so when it is [audited](Kept::audit).
//!
//! The same has to hold for every order of the stores that a compiler may choose, and this one has
//! chosen one of them. So the file is also made as it is when some of the stores are done that no
//! call of `in_program_order` parts, and others are not.
//!
//! This is not a test for loom. Loom shows what one thread may see of another's stores, while both
//! run. The process that attaches the file sees all that the last one has stored: no processor
//! forgets a store that an instruction before the end has made. Which stores these are is all that
//! is in question, and what decides it is the order of the instructions of a thread. Loom takes
//! that for given.

use super::copy::Copy;
use super::load::{BEGINNING, Load, Request, Verb, key_of};
use super::paths::{self, Path};
use super::place::{Contents, Kept, Kind, Place, Store};
use super::watch::{Step, Watch};
use glimmer_base::Moment;
use glimmer_store::table::Counts;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;

/// Stores of one request, about, of those that go on from word to word and of the others: of a
/// request that makes more, some.
const STORES_OF_REQUEST_MAX: [usize; 2] = [20, 200];
/// Orders of unordered stores that are tried for one request, about.
const ORDERS_OF_REQUEST_MAX: usize = 40;
/// Of the states, one in this many is attached by a process that does not come to serve.
const ATTACHED_TWICE_ONE_IN: u32 = 30;

/// What the next process finds.
pub struct Found {
    contents: Contents,
    /// With those that have expired.
    all: Contents,
    lost: u64,
}

fn found<T: Kept>(kind: &Kind, copy: &Place, (flushes, now): (u64, Moment)) -> Found {
    let mut store: Store<T> = kind.store(copy);
    Found {
        contents: store.contents(flushes, now),
        all: store.contents(flushes, BEGINNING),
        lost: store.lost(),
    }
}

/// What there is before and after a request.
struct Around {
    request: Request,
    before: Found,
    after: Found,
    /// Whether items have left to make room.
    has_evicted: bool,
}

/// Whether what is found is what a client may see that does not know whether a request was carried
/// out.
fn check<T: Kept>(found: &Found, around: &Around, how: &str) {
    let Around {
        request,
        before,
        after,
        has_evicted,
    } = around;
    let (contents, lost) = (&found.contents, found.lost);
    for (key, held) in contents {
        let is = |state: &Found| state.contents.get(key) == Some(held);
        let text = String::from_utf8_lossy(key);
        let is_known = is(before) || is(after);
        assert!(
            is_known,
            "{text} is neither old nor new: {request:?}, {how}"
        );
    }
    let stays = before.contents.iter();
    let stays = stays.filter(|(key, held)| after.contents.get(*key) == Some(*held));
    let missing: Vec<_> = stays
        .map(|(key, _)| key)
        .filter(|key| !contents.contains_key(*key))
        .collect();
    let gone = missing.len() as u64;
    let shown: Vec<_> = missing
        .iter()
        .map(|it| String::from_utf8_lossy(it))
        .collect();
    assert!(
        gone <= lost,
        "{shown:?} are gone, {lost} counted: {request:?}, {how}"
    );
    assert!(lost <= 1, "{lost} are lost by {request:?}, {how}");
    let own = key_of(request.key);
    let is_its_own = missing.iter().all(|key| **key == own);
    assert!(
        T::LOSES_OTHERS || is_its_own,
        "{shown:?} are gone: {request:?}, {how}"
    );
    let is_own_gone = before.contents.contains_key(&own)
        && after.contents.contains_key(&own)
        && !contents.contains_key(&own);
    assert!(
        !is_own_gone || lost == 1 || *has_evicted,
        "the request's own item is gone, and not counted: {request:?}, {how}"
    );
    // An item that had expired may be the one that was not whole.
    let is_gone = |key: &Vec<u8>| before.all.contains_key(key) && !found.all.contains_key(key);
    let is_true = match T::LOSES_OTHERS {
        true => before.all.keys().any(is_gone),
        false => is_gone(&own),
    };
    assert!(
        lost == 0 || is_true,
        "one is counted that is there: {request:?}, {how}"
    );
}

/// A store whose process ends again and again.
pub struct Ending<T: Kept> {
    pub rng: SmallRng,
    pub load: Load,
    pub store: Store<T>,
    /// Whether the process ends after each store of a request, however many there are.
    pub after_each: bool,
    kind: Kind,
    watch: Box<Watch>,
    copy: Copy,
    copied: Place,
    _place: Place,
}

impl<T: Kept> Ending<T> {
    pub fn new(seed: u64, kind: Kind, load: Load) -> Ending<T> {
        let (place, copied) = (Place::new(), Place::new());
        let store: Store<T> = kind.store(&place);
        let watch = Watch::of(&place.0);
        let copy = Copy::of(&watch, &copied);
        Ending {
            kind,
            rng: SmallRng::seed_from_u64(seed),
            load,
            store,
            after_each: false,
            watch,
            copy,
            copied,
            _place: place,
        }
    }

    pub fn counts(&self) -> Counts {
        let figures = self.store.partitions[0].figures();
        figures.counts(self.load.flushes)
    }

    /// What the next process finds if this one ends now.
    fn found(&self, when: (u64, Moment)) -> Found {
        self.copy.become_what(&self.watch);
        found::<T>(&self.kind, &self.copied, when)
    }

    /// Watches a request, and says what it did. The file is known as it was before.
    pub fn watch(&mut self, request: Request) -> (Vec<Step>, Vec<Path>) {
        let before = self.counts();
        let Ending {
            load, store, watch, ..
        } = self;
        load.run_after(store, request, || watch.begin());
        let steps = self.watch.end();
        let counts = (&before, &self.counts());
        let paths = paths::of(&request, &self.load, counts, &steps);
        (steps, paths)
    }

    /// After which stores of a request the process ends. Few of those matter that copy a value.
    fn chosen(&mut self, steps: &[Step]) -> Vec<bool> {
        if self.after_each {
            return vec![true; steps.len()];
        }
        let goes_on = |pair: &[Step]| pair[1].goes_on_from(&pair[0]);
        let is_within = |nth: usize| {
            let around = nth
                .checked_sub(1)
                .and_then(|first| steps.get(first..nth + 2));
            around.is_some_and(|around| around.windows(2).all(goes_on))
        };
        let are_within: Vec<bool> = (0..steps.len()).map(is_within).collect();
        let count = |kind| are_within.iter().filter(|it| **it == kind).count();
        let [usual, within] = [false, true].map(count);
        let [within_max, usual_max] = STORES_OF_REQUEST_MAX;
        let mut is_chosen = |&is_within: &bool| {
            let (of, most) = match is_within {
                true => (within, within_max),
                false => (usual, usual_max),
            };
            of <= most || self.rng.random_ratio(most as u32, of as u32)
        };
        are_within.iter().map(&mut is_chosen).collect()
    }

    /// How often the process ends among each of these groups of unordered stores.
    fn orders(&mut self, groups: &[&[Step]]) -> Vec<usize> {
        let lone = |group: &&[Step]| group.len() < 2;
        let many = groups.iter().filter(|group| !lone(group)).count();
        let orders = |group: &&[Step]| {
            // Two stores have one more state than those that come one after the other.
            let all = if group.len() == 2 { 1 } else { 3 };
            let is_chosen = self.after_each
                || many * all <= ORDERS_OF_REQUEST_MAX
                || (self.rng).random_ratio(ORDERS_OF_REQUEST_MAX as u32, (many * all) as u32);
            if is_chosen && !lone(group) { all } else { 0 }
        };
        groups.iter().map(orders).collect()
    }

    /// Some of a few unordered stores, of which another order of the instructions would have made
    /// these first. Stores to one word stay in their order.
    fn some_of<'a>(&mut self, group: &'a [Step]) -> Vec<&'a Step> {
        if let [first, last] = group
            && first.words().all(|word| last.value_of(word).is_none())
        {
            return vec![last];
        }
        let share = [0.1, 0.5, 0.9][self.rng.random_range(0..3)];
        let mut left_out = BTreeSet::new();
        let mut some = Vec::new();
        for step in group {
            let is_free = step.words().all(|word| !left_out.contains(&word));
            if is_free && self.rng.random_bool(share) {
                some.push(step);
            } else {
                left_out.extend(step.words());
            }
        }
        some
    }

    /// Ends the process after stores of a request. Returns how many there were, and how many states
    /// of the file were attached.
    pub fn end_after(
        &mut self,
        request: Request,
        steps: &[Step],
        has_evicted: bool,
    ) -> (usize, usize) {
        let (flushes, now) = (self.load.flushes, request.now);
        // The file counts a flush before any partition carries it out.
        let is_flush = matches!(request.verb, Verb::Flush);
        let before = self.found((flushes - u64::from(is_flush), now));
        let chosen = self.chosen(steps);
        let groups: Vec<&[Step]> = steps.chunk_by(Step::is_unordered_with).collect();
        let orders = self.orders(&groups);
        let stores = chosen.iter().filter(|is_chosen| **is_chosen).count();
        let (mut states, mut chosen) = (Vec::new(), chosen.into_iter());
        for (group, orders) in groups.into_iter().zip(orders) {
            for _ in 0..orders {
                let some = self.some_of(group);
                let words: Vec<_> = some.iter().flat_map(|step| step.words()).collect();
                let undo = self.watch.redo_some(some.into_iter());
                let how = format!("words {words:x?} before others after {}", group[0].after());
                states.push((how, self.found((flushes, now))));
                self.watch.undo(undo);
            }
            for (step, is_chosen) in group.iter().zip(&mut chosen) {
                self.watch.redo(step);
                if !is_chosen {
                    continue;
                }
                if self.rng.random_ratio(1, ATTACHED_TWICE_ONE_IN) {
                    self.copy.become_what(&self.watch);
                    drop(self.kind.attached::<T>(&self.copied).unwrap());
                    let found = found::<T>(&self.kind, &self.copied, (flushes, now));
                    states.push(("attached twice".to_owned(), found));
                }
                states.push((step.after(), self.found((flushes, now))));
            }
        }
        self.watch.follow();
        let after = self.found((flushes, now));
        let is_so = after.contents == self.store.contents(flushes, now);
        assert!(is_so, "it is not in the file: {request:?}");
        assert!(!is_flush || after.all.is_empty(), "it is not flushed");
        let around = Around {
            request,
            before,
            after,
            has_evicted,
        };
        states.iter().for_each(|(how, state)| {
            check::<T>(state, &around, how);
            assert!(
                !is_flush || state.all.is_empty(),
                "a flush is undone: {how}"
            );
        });
        (stores, states.len())
    }
}
