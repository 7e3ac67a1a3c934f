//! A process that is [ended](super::ending) between any two of its instructions, while it executes
//! random requests. Those that do rare things are searched for ([`paths`](super::paths)).
//! `GLIMMER_STORES` says after how many stores a run ends the process. A long run takes more than
//! the suite, since it looks for rare things once, and
//! into all that it has watched.

use super::ending::Ending;
use super::load::{Load, Request, Verb};
use super::paths::{Ends, Met, Path};
use super::place::Kind;
use glimmer_seeds::{each_seed, tried_states};
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::evict::RULES;
use glimmer_store::table::Counts;
use glimmer_store::{memc3, mica_cache, mica_store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Stores to the file after which one run ends the process, at least, unless told.
const STORES: usize = if cfg!(debug_assertions) {
    1_000
} else {
    20_000
};
/// Requests that pass at full speed before the next that is watched, at most.
const SKIPPED_MAX: u64 = 20;
/// Of the requests that do nothing rare, one in this many is looked into.
const USUAL_ONE_IN: u32 = 8;
/// Requests that are watched, at most, to find what all runs look into.
const WATCHED_MAX: u64 = 2_000;
/// This many runs together meet every rare path.
const RUNS: u64 = 60;
/// How often one run looks into a request that does one of the rare things.
const RARE: u64 = if cfg!(debug_assertions) { 1 } else { 10 };

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

/// After how many stores a run ends the process, and of how many requests that do nothing rare it
/// looks into one.
fn wanted() -> (usize, u32) {
    match std::env::var("GLIMMER_STORES") {
        Ok(told) => (told.parse().expect("GLIMMER_STORES is a number"), 1),
        Err(_) => (STORES, USUAL_ONE_IN),
    }
}

/// The next request. Some that are rare come when they can if none was looked into so far.
fn next(load: &mut Load, met: &Met) -> Request {
    let mut request = load.request();
    if load.has_uploads() {
        if met.times(Path::FlushBesideUpload) == 0 {
            request.verb = Verb::Flush;
        } else if met.times(Path::Finish) == 0 {
            request = load.finish_one();
        }
    }
    request
}

fn is_ended_anywhere<T: Ends>(seed: u64, met: &mut Met) {
    let load = Load::new(seed, 900, 18 << 10).with_uploads();
    let mut ending: Ending<T> = Ending::new(seed, kind_of(seed), load);
    let (mut stores, mut states, mut requests, mut watched) = (0, 0, 0, 0);
    let (mut here, (wanted, one_in)) = (Met::default(), wanted());
    while stores < wanted || watched < WATCHED_MAX && !here.has_all(T::USUAL_PATHS) {
        watched += 1;
        for _ in 0..ending.rng.random_range(0..SKIPPED_MAX) {
            let request = ending.load.request();
            ending.load.run(&mut ending.store, request);
        }
        let request = next(&mut ending.load, &here);
        let known = ending.counts();
        let (steps, paths) = ending.watch(request);
        let is_rare = paths.iter().any(|path| here.times(*path) < RARE);
        if !is_rare && (stores >= wanted || !ending.rng.random_ratio(1, one_in)) {
            continue;
        }
        here.note(&paths);
        requests += 1;
        let has_left = |it: &Counts| it.evictions + it.index_evictions + it.expired_reclaimed;
        let has_evicted = has_left(&ending.counts()) > has_left(&known);
        let (stores_here, states_here) = ending.end_after(request, &steps, has_evicted);
        stores += stores_here;
        states += states_here;
    }
    println!("the process ended after {stores} stores of {requests} requests: {here:?}");
    tried_states(states as u64);
    here.assert_all(T::USUAL_PATHS);
    met.add(&here);
}

/// Runs a table with each seed. Many runs look into everything that its requests do.
fn are_ended_anywhere(run: [fn(u64, &mut Met); 3], all: &[Path]) {
    let (mut met, mut runs) = (Met::default(), 0);
    each_seed(&[], |seed| {
        run[seed as usize % 3](seed, &mut met);
        runs += 1;
    });
    if runs >= RUNS {
        met.assert_all(all);
    }
}

#[test]
fn a_process_may_end_after_any_instruction() {
    let run: [fn(u64, &mut Met); 3] = [
        is_ended_anywhere::<mica_cache::Owner<Erew>>,
        is_ended_anywhere::<mica_cache::Owner<Crew>>,
        is_ended_anywhere::<mica_cache::Owner<Crcw>>,
    ];
    are_ended_anywhere(run, <mica_cache::Owner<Erew> as Ends>::PATHS);
}

#[test]
fn a_process_may_end_after_any_instruction_in_store_mode() {
    let run: [fn(u64, &mut Met); 3] = [
        is_ended_anywhere::<mica_store::Owner<Erew>>,
        is_ended_anywhere::<mica_store::Owner<Crew>>,
        is_ended_anywhere::<mica_store::Owner<Crcw>>,
    ];
    are_ended_anywhere(run, <mica_store::Owner<Erew> as Ends>::PATHS);
}

#[test]
fn a_process_may_end_after_any_instruction_with_the_table_of_memc3() {
    let run: [fn(u64, &mut Met); 3] = [
        is_ended_anywhere::<memc3::Owner<Erew>>,
        is_ended_anywhere::<memc3::Owner<Crew>>,
        is_ended_anywhere::<memc3::Owner<Crcw>>,
    ];
    are_ended_anywhere(run, <memc3::Owner<Erew> as Ends>::PATHS);
}
