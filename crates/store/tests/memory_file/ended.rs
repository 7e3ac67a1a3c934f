//! A process that is ended between any two of its instructions.
//!
//! Requests are executed while every store to the file is watched ([`watch`](super::watch)). Then
//! the file is made anew as it was after each of these stores, and attached, as the next process
//! would find it if this one had ended there. In it, everything is as it was before the request or
//! as it is after it. What is missing of what is there both before and after is counted as lost.

use super::load::{Load, Request, key_of};
use super::place::{Contents, Held, Kept, Kind, Place, Store};
use super::watch::{PAGE, Watch};
use glimmer_seeds::each_seed;
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::evict::RULES;
use glimmer_store::{memc3, mica_cache, mica_store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Stores to the file after which one run ends the process.
const STORES: usize = if cfg!(debug_assertions) {
    1_000
} else {
    20_000
};
/// Stores of one request, at most: of one that makes more, the first, the last, and some between.
const STORES_OF_REQUEST_MAX: usize = 400;
/// Requests that pass at full speed before the next that is watched, at most.
const SKIPPED_MAX: u64 = 60;

fn kind_of(seed: u64) -> Kind {
    let mut rng = SmallRng::seed_from_u64(seed);
    Kind {
        partitions: 1,
        rule: RULES[rng.random_range(0..RULES.len())].with_threshold(0.5),
        bytes: rng.random_range(72..128) << 10,
        main_buckets: rng.random_range(1..4),
        item_bytes_max: 20 << 10,
        in_common: rng.random(),
    }
}

/// A copy of a file, mapped so that it is made anew without a system call.
struct Copy(*mut u64, usize);

impl Copy {
    fn of(watch: &Watch, place: &Place) -> Copy {
        let words = watch.words().len();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&place.0)
            .unwrap();
        file.set_len(8 * words as u64).unwrap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which replaces none.
        let first = unsafe {
            let at = std::ptr::null_mut();
            libc::mmap(at, 8 * words, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(first, libc::MAP_FAILED);
        Copy(first.cast(), words)
    }

    /// Makes the copy anew: whoever attached it has changed it.
    fn become_what(&self, watch: &Watch) {
        // SAFETY: the mapping is as long, nobody else has it mapped now, and this is the only
        // reference to it.
        let copied = unsafe { std::slice::from_raw_parts_mut(self.0, self.1) };
        let pages = copied
            .chunks_mut(PAGE / 8)
            .zip(watch.words().chunks(PAGE / 8));
        for (copied, page) in pages.filter(|(copied, page)| copied != page) {
            copied.copy_from_slice(page);
        }
    }
}

/// What the next process finds in a copy of the file, and what it has lost.
fn found<T: Kept>(kind: &Kind, copy: &Place, flushes: u64) -> (Contents, u64) {
    let mut store: Store<T> = kind.store(copy);
    (store.contents(flushes), store.lost())
}

/// Whether what is found is what a client may see that does not know whether a request was carried
/// out.
fn check<T: Kept>(found: &(Contents, u64), before: &Contents, after: &Contents, request: &Request) {
    let (contents, lost) = found;
    for (key, held) in contents {
        let is = |state: &Contents| state.get(key) == Some(held);
        let text = String::from_utf8_lossy(key);
        assert!(
            is(before) || is(after),
            "{text} is neither old nor new: {request:?}"
        );
    }
    let stays = |(key, held): &(&Vec<u8>, &Held)| after.get(*key) == Some(*held);
    let missing = before
        .iter()
        .filter(stays)
        .filter(|(key, _)| !contents.contains_key(*key));
    let missing: Vec<_> = missing
        .map(|(key, _)| String::from_utf8_lossy(key))
        .collect();
    // The old item of its own key may be the one that leaves to make room for the new one.
    let gone = missing.len() as u64;
    assert!(
        gone <= *lost,
        "{missing:?} are gone, {lost} counted: {request:?}"
    );
    assert!(*lost <= 1, "{lost} are lost by {request:?}");
    let is_anything_missing = before.keys().any(|key| !contents.contains_key(key));
    assert!(
        T::LOSES_OTHERS || is_anything_missing || *lost == 0,
        "{lost} are counted, and nothing is missing: {request:?}"
    );
    let own = String::from_utf8(key_of(request.key)).unwrap();
    let is_own = missing.iter().all(|key| **key == own);
    assert!(
        T::LOSES_OTHERS || is_own,
        "{missing:?} are gone: {request:?}"
    );
}

fn is_ended_anywhere<T: Kept>(seed: u64) {
    let (kind, place, copied) = (kind_of(seed), Place::new(), Place::new());
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut load = Load::new(seed, 900, 18 << 10);
    let mut store: Store<T> = kind.store(&place);
    let mut watch = Watch::of(&place.0);
    let copy = Copy::of(&watch, &copied);
    let (mut stores, mut watched) = (0, 0);
    while stores < STORES {
        for _ in 0..rng.random_range(0..SKIPPED_MAX) {
            let request = load.request();
            load.run(&mut store, request);
        }
        watch.follow();
        copy.become_what(&watch);
        let flushes = load.flushes;
        let (before, _) = found::<T>(&kind, &copied, flushes);
        let request = load.request();
        watched += 1;
        load.run_after(&mut store, request, || watch.begin());
        let steps = watch.end();
        let mut states = Vec::new();
        let every = (steps.len() / STORES_OF_REQUEST_MAX * 2).max(1);
        let is_at_end = |nth: usize| nth.min(steps.len() - nth) < STORES_OF_REQUEST_MAX / 4;
        for (nth, step) in steps.iter().enumerate() {
            watch.redo(step);
            if !is_at_end(nth) && !rng.random_ratio(1, every as u32) {
                continue;
            }
            copy.become_what(&watch);
            // The request's own flush has not been counted, or has.
            states.push(found::<T>(&kind, &copied, flushes));
        }
        stores += states.len();
        watch.follow();
        copy.become_what(&watch);
        let (after, _) = found::<T>(&kind, &copied, load.flushes);
        let is_so = after == store.contents(load.flushes);
        assert!(is_so, "it is not in the file: {request:?}");
        for state in &states {
            check::<T>(state, &before, &after, &request);
        }
    }
    println!("the process ended after {stores} stores of {watched} requests");
}

#[test]
fn a_process_may_end_after_any_instruction() {
    each_seed(&[], |seed| match seed % 3 {
        0 => is_ended_anywhere::<mica_cache::Owner<Erew>>(seed),
        1 => is_ended_anywhere::<mica_cache::Owner<Crew>>(seed),
        _ => is_ended_anywhere::<mica_cache::Owner<Crcw>>(seed),
    });
}

#[test]
fn a_process_may_end_after_any_instruction_in_store_mode() {
    each_seed(&[], |seed| match seed % 3 {
        0 => is_ended_anywhere::<mica_store::Owner<Erew>>(seed),
        1 => is_ended_anywhere::<mica_store::Owner<Crew>>(seed),
        _ => is_ended_anywhere::<mica_store::Owner<Crcw>>(seed),
    });
}

#[test]
fn a_process_may_end_after_any_instruction_with_the_table_of_memc3() {
    each_seed(&[], |seed| match seed % 3 {
        0 => is_ended_anywhere::<memc3::Owner<Erew>>(seed),
        1 => is_ended_anywhere::<memc3::Owner<Crew>>(seed),
        _ => is_ended_anywhere::<memc3::Owner<Crcw>>(seed),
    });
}
