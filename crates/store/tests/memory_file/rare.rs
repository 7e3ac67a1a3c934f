//! What random requests do rarely, brought about: a process is [ended](super::ending) after each
//! store of it.

use super::ending::Ending;
use super::load::{Load, Verb, key_of};
use super::paths::Path;
use super::place::{Kept, Kind};
use glimmer_seeds::{each_seed, tried_states};
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::evict::FIFO;
use glimmer_store::{memc3, mica_store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;

fn kind_of(bytes: usize, main_buckets: usize) -> Kind {
    Kind {
        partitions: 1,
        rule: FIFO,
        bytes,
        main_buckets,
        item_bytes_max: 8 << 10,
        in_common: false,
    }
}

/// How an item grows for which there is no room beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Growth {
    Replaced,
    Before,
    Behind,
}

/// Items are replaced and grow where they lie and where deleted neighbours have lain: on the left,
/// on the right, or on both sides. Elsewhere is no room for them.
fn over_its_own_room<T: Kept>(seed: u64) {
    let mut ending: Ending<T> = Ending::new(seed, kind_of(64 << 10, 2), Load::new(seed, 1, 1));
    ending.after_each = true;
    let mut sizes = Vec::new();
    while ending.counts().refused == 0 {
        let bytes = ending.rng.random_range(30..120);
        let request = ending.load.of(sizes.len() as u64, Verb::Set(bytes, None));
        ending.load.run(&mut ending.store, request);
        sizes.push(bytes);
    }
    let (mut met, mut states) = (BTreeSet::new(), 0);
    let mut next = sizes.len() as u64;
    for middle in (2..sizes.len() - 2).step_by(4) {
        let sides = [(true, false), (false, true), (true, true)][ending.rng.random_range(0..3)];
        let neighbours = [(sides.0, middle - 1), (sides.1, middle + 1)];
        let mut more = 0;
        for (_, neighbour) in neighbours.into_iter().filter(|(is_free, _)| *is_free) {
            let request = ending.load.of(neighbour as u64, Verb::Delete);
            ending.load.run(&mut ending.store, request);
            more += sizes[neighbour] + key_of(neighbour as u64).len();
        }
        let growth = [Growth::Replaced, Growth::Before, Growth::Behind];
        let growth = growth[ending.rng.random_range(0..3)];
        let verb = match growth {
            Growth::Replaced => Verb::Set(sizes[middle] + more - 8, None),
            Growth::Before => Verb::Prepend(more - 8),
            Growth::Behind => Verb::Append(more - 8),
        };
        let request = ending.load.of(middle as u64, verb);
        let (steps, paths) = ending.watch(request);
        if paths.contains(&Path::OverItself) {
            met.insert((growth, sides));
            states += ending.end_after(request, &steps, false).1;
        }
        if met.len() >= WAYS_MAX {
            break;
        }
        // What is left of the places is no room for another one.
        let refused = ending.counts().refused;
        while ending.counts().refused == refused {
            let bytes = ending.rng.random_range(0..40);
            let request = ending.load.of(next, Verb::Set(bytes, None));
            ending.load.run(&mut ending.store, request);
            next += 1;
        }
    }
    println!("{met:?}");
    assert!(met.len() >= WAYS_MIN, "{met:?} alone were met");
    tried_states(states as u64);
}

/// How many pairs of growth and place one run looks into, of nine.
const WAYS_MAX: usize = 5;
/// How many of them it finds at least.
const WAYS_MIN: usize = 2;

#[test]
fn an_item_may_be_written_over_its_own_room() {
    each_seed(&[], |seed| {
        let all: [fn(u64); 3] = [
            over_its_own_room::<mica_store::Owner<Erew>>,
            over_its_own_room::<mica_store::Owner<Crew>>,
            over_its_own_room::<mica_store::Owner<Crcw>>,
        ];
        all[seed as usize % 3](seed);
    });
}

/// Slabs of all lengths move to pages that others have left, as the index needs the last pages.
/// Whether one has to depends on where the first ones lie, so a table in which none did gives way
/// to another one.
fn slabs_move<T: Kept>(seed: u64) {
    let mut seeds = SmallRng::seed_from_u64(seed);
    let (mut moves, mut states) = (0, 0);
    for _ in 0..TABLES_MAX {
        slabs_of_a_table_move::<T>(seed, seeds.random(), &mut moves, &mut states);
        if moves > 0 {
            break;
        }
    }
    println!("{moves} slabs have moved");
    assert!(moves > 0, "no slab has moved");
    tried_states(states as u64);
}

fn slabs_of_a_table_move<T: Kept>(seed: u64, load: u64, moves: &mut usize, states: &mut usize) {
    let kind = kind_of(100 << 10, seed as usize % 3);
    let mut ending: Ending<T> = Ending::new(load, kind, Load::new(load, 1, 1));
    ending.after_each = true;
    let mut next = 0;
    for _ in 0..ROUNDS {
        let first = next;
        while ending.counts().evictions == 0 || next < first + 100 {
            let bytes = match ending.rng.random_range(0..4) {
                0 => ending.rng.random_range(300..2_000),
                _ => ending.rng.random_range(8..300),
            };
            let request = ending.load.of(next, Verb::Set(bytes, None));
            ending.load.run(&mut ending.store, request);
            next += 1;
        }
        for key in first..next {
            if ending.rng.random_ratio(2, 3) {
                let request = ending.load.of(key, Verb::Delete);
                ending.load.run(&mut ending.store, request);
            }
        }
        for _ in 0..SMALL_OF_ROUND {
            let request = ending.load.of(next, Verb::Set(8, None));
            next += 1;
            let before = ending.counts().evictions;
            let (steps, paths) = ending.watch(request);
            if paths.contains(&Path::Move) {
                *moves += 1;
                let has_evicted = ending.counts().evictions > before;
                *states += ending.end_after(request, &steps, has_evicted).1;
            }
            if *moves >= MOVES {
                return;
            }
        }
        let request = ending.load.of(0, Verb::Flush);
        ending.load.run(&mut ending.store, request);
    }
}

/// Slabs whose moves one run looks into, at most.
const MOVES: usize = 3;
/// How often a table is filled for that.
const ROUNDS: usize = 4;
/// How many tables are tried until a slab has moved. In about one of six none moves.
const TABLES_MAX: usize = 20;
/// Small items that are stored after that, for which the index grows.
const SMALL_OF_ROUND: usize = 600;

#[test]
fn a_slab_may_move() {
    each_seed(&[], |seed| {
        let all: [fn(u64); 3] = [
            slabs_move::<memc3::Owner<Erew>>,
            slabs_move::<memc3::Owner<Crew>>,
            slabs_move::<memc3::Owner<Crcw>>,
        ];
        all[seed as usize % 3](seed);
    });
}
