//! Files that were closed, or whose process ended between two requests, and files that are refused.

use super::load::{Load, NOW};
use super::place::{Contents, Kept, Kind, Place, SEED, Store};
use glimmer_seeds::each_seed;
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::evict::RULES;
use glimmer_store::heap::NewItem;
use glimmer_store::memory::{FileError, FileState, MemoryFile};
use glimmer_store::table::{Stored, TableWriter};
use glimmer_store::{memc3, mica_cache, mica_store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::os::unix::fs::FileExt;

fn kind_of(seed: u64) -> Kind {
    let mut rng = SmallRng::seed_from_u64(seed);
    Kind {
        partitions: rng.random_range(1..=3),
        rule: RULES[rng.random_range(0..RULES.len())].with_threshold(0.5),
        bytes: rng.random_range(100..600) << 10,
        main_buckets: rng.random_range(1..40),
        item_bytes_max: 24 << 10,
        in_common: rng.random(),
    }
}

/// Runs requests, ends the store in one way or the other, and goes on, again and again.
fn goes_on<T: Kept>(seed: u64) {
    let (kind, place) = (kind_of(seed), Place::new());
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut load = Load::new(seed, 3_000, 20 << 10).with_uploads();
    let (mut before, mut kept) = (Contents::new(), 0);
    for round in 0..6 {
        let mut store: Store<T> = kind.store(&place);
        let found = store.contents_for(&load);
        let differ = |one: &Contents, other: &Contents| -> Vec<String> {
            let of = one
                .iter()
                .filter(|(key, held)| other.get(*key) != Some(*held));
            let shown = of.map(|(key, held)| {
                let (key, len) = (String::from_utf8_lossy(key), held.value.len());
                format!("{key}: {len} bytes, CAS unique {}", held.cas)
            });
            shown.collect()
        };
        let (gone, new) = (differ(&before, &found), differ(&found, &before));
        let how = store.found();
        assert!(
            found == before,
            "round {round}, {how:?}: {gone:?} became {new:?}"
        );
        assert_eq!(store.lost(), 0, "round {round}");
        let restored: u64 = (store.partitions.iter())
            .map(|owner| owner.figures().counts(load.flushes).restored)
            .sum();
        // Items that have expired are counted until something meets them.
        let least = before.len() as u64;
        assert!(
            (least..=kept).contains(&restored),
            "round {round}: {restored} of {least} to {kept}"
        );
        for _ in 0..rng.random_range(0..6_000) {
            let request = load.request();
            load.run(&mut store, request);
        }
        before = store.contents_for(&load);
        kept = (store.partitions.iter())
            .map(|owner| owner.figures().counts(load.flushes).items)
            .sum();
        if rng.random() {
            load.end_uploads();
        }
        match rng.random() {
            true => store.close(load.flushes),
            false => drop(store),
        }
        load.end_uploads();
    }
}

#[test]
fn a_store_goes_on_with_all_that_it_had() {
    each_seed(&[], |seed| {
        let all: [fn(u64); 9] = [
            goes_on::<mica_cache::Owner<Erew>>,
            goes_on::<mica_cache::Owner<Crew>>,
            goes_on::<mica_cache::Owner<Crcw>>,
            goes_on::<mica_store::Owner<Erew>>,
            goes_on::<mica_store::Owner<Crew>>,
            goes_on::<mica_store::Owner<Crcw>>,
            goes_on::<memc3::Owner<Erew>>,
            goes_on::<memc3::Owner<Crew>>,
            goes_on::<memc3::Owner<Crcw>>,
        ];
        // Of each kind of table under one access mode.
        all.chunks(3).for_each(|kind| kind[seed as usize % 3](seed));
    });
}

/// CAS uniques go on above those that were drawn, also those whose items are gone.
fn draws_no_cas_unique_twice<T: Kept>() {
    let kind = kind_of(1);
    for closes in [true, false] {
        let place = Place::new();
        let mut load = Load::new(7, 10, 100);
        let mut highest = 0;
        for _ in 0..4 {
            let mut store: Store<T> = kind.store(&place);
            let first = put(&mut store, b"first");
            assert!(first > highest, "{first} after {highest}");
            for _ in 0..500 {
                let request = load.request();
                load.run(&mut store, request);
            }
            highest = put(&mut store, b"last");
            let owner = &mut store.partitions[0];
            (owner.enter(u64::MAX)).remove(SEED.keyhash(b"last"), b"last", NOW);
            if closes {
                store.close(load.flushes);
            }
        }
    }
}

#[test]
fn no_cas_unique_is_drawn_twice() {
    draws_no_cas_unique_twice::<mica_cache::Owner<Crew>>();
    draws_no_cas_unique_twice::<mica_store::Owner<Crew>>();
    draws_no_cas_unique_twice::<memc3::Owner<Crew>>();
}

fn put<T: Kept>(store: &mut Store<T>, key: &[u8]) -> u64 {
    let keyhash = SEED.keyhash(key);
    let flushes = u64::MAX;
    let owner = &mut store.partitions[0];
    match owner
        .enter(flushes)
        .put(keyhash, &NewItem::new(key, b"value"), NOW)
    {
        Stored::Yes(cas) => cas,
        _ => panic!("it was not stored"),
    }
}

/// A flush that was counted before the process ended, and that no partition had carried out, holds.
fn carries_out_a_flush<T: Kept>() {
    let (kind, place) = (kind_of(2), Place::new());
    let mut store: Store<T> = kind.store(&place);
    let mut load = Load::new(7, 100, 100);
    for _ in 0..500 {
        let request = load.request();
        load.run(&mut store, request);
    }
    assert!(!store.contents_for(&load).is_empty());
    drop(store);
    let mut store: Store<T> = kind.store(&place);
    assert!(store.contents(load.flushes + 1, load.now).is_empty());
}

#[test]
fn a_flush_that_no_partition_has_carried_out_is_carried_out() {
    carries_out_a_flush::<mica_cache::Owner<Crew>>();
    carries_out_a_flush::<mica_store::Owner<Crew>>();
    carries_out_a_flush::<memc3::Owner<Crew>>();
}

/// A flush that is due when the file is closed. A last snapshot reads the store after that.
fn is_flushed_when_closed<T: Kept>(seed: u64, saves_first: bool) {
    let (kind, place) = (kind_of(seed), Place::new());
    let mut load = Load::new(seed, 300, 20 << 10);
    let mut store: Store<T> = kind.store(&place);
    let fill = |store: &mut Store<T>, load: &mut Load| {
        for _ in 0..2_000 {
            let request = load.request();
            load.run(store, request);
        }
    };
    fill(&mut store, &mut load);
    // The last requests may have flushed and deleted.
    while store.contents_for(&load).is_empty() {
        fill(&mut store, &mut load);
    }
    if saves_first {
        store.save(load.flushes);
    }
    load.flushes += 1;
    if !saves_first {
        store.save(load.flushes);
    }
    // Stands for the reading.
    assert!(store.contents_for(&load).is_empty());
    drop(store);
    let mut store: Store<T> = kind.store(&place);
    assert!(store.contents_for(&load).is_empty());
    let restored = |owner: &T| owner.figures().counts(load.flushes).restored;
    assert_eq!(store.partitions.iter().map(restored).sum::<u64>(), 0);
    fill(&mut store, &mut load);
    store.contents_for(&load);
}

#[test]
fn a_flush_that_is_due_at_the_end_is_carried_out_before_the_file_is_closed() {
    for saves_first in [false, true] {
        each_seed(&[], |seed| {
            is_flushed_when_closed::<mica_cache::Owner<Crew>>(seed, saves_first);
            is_flushed_when_closed::<mica_store::Owner<Crew>>(seed, saves_first);
            is_flushed_when_closed::<memc3::Owner<Crew>>(seed, saves_first);
        });
    }
}

fn open(place: &Place, partitions: usize, memory: &str) -> Result<FileState, FileError> {
    let settings = [("-m", memory.to_owned())];
    MemoryFile::open(&place.0, partitions, &settings, false).map(|file| file.state())
}

#[test]
fn what_cannot_be_used_is_refused_and_left_as_it_is() {
    let (kind, place) = (kind_of(3), Place::new());
    let partitions = kind.partitions;
    let store: Store<mica_cache::Owner<Crew>> = kind.store(&place);
    let in_use = open(&place, partitions, "1");
    assert!(matches!(in_use, Err(FileError::InUse)), "{in_use:?}");
    store.close(0);
    let bytes = |place: &Place| std::fs::read(&place.0).unwrap();
    let whole = bytes(&place);
    let refused = |place: &Place, memory: &str, text: &str| {
        let before = bytes(place);
        let error = open(place, partitions, memory).expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
        assert!(bytes(place) == before, "{text}: the file was changed");
    };
    refused(&place, "2", "made with -m 1, and this server has -m 2");
    let cases: [(u64, &[u8], &str); 6] = [
        (0, b"#!/bin/s", "no memory file of Glimmer"),
        (0, b"\x9dREMMILG", "another byte order"),
        (8, &[9], "layout version 9"),
        (16, &[1, 2, 3, 4, 5, 6, 7, 8], "another byte order"),
        (520, b"x", "its header"),
        (24, &[77], "no known state"),
    ];
    for (at, changed, text) in cases {
        std::fs::write(&place.0, &whole).unwrap();
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(&place.0)
            .unwrap();
        file.write_all_at(changed, at).unwrap();
        refused(&place, "1", text);
    }
    std::fs::write(&place.0, &whole[..whole.len() / 2 / 4096 * 4096]).unwrap();
    let is_short = open(&place, partitions, "1");
    assert!(is_short.is_ok() || is_short.unwrap_err().to_string().contains("shorter"));
    std::fs::write(&place.0, b"text").unwrap();
    refused(&place, "1", "no memory file of Glimmer");
    let settings = [("-m", "1".to_owned())];
    let file = MemoryFile::open(&place.0, partitions, &settings, true).unwrap();
    assert_eq!(
        file.state(),
        FileState::New,
        "it is discarded when that is wanted"
    );
    let device = Place("/dev/null".into());
    let refused = open(&device, 1, "1");
    std::mem::forget(device);
    assert!(matches!(refused, Err(FileError::NoFile)), "{refused:?}");
}

/// A file in which anything may have changed: it is refused or attached, and then nothing that was
/// not stored under a key is found there.
#[test]
fn a_damaged_file_ends_no_process() {
    each_seed(&[], |seed| {
        bears_damage::<mica_cache::Owner<Crew>>(seed);
        bears_damage::<mica_store::Owner<Crew>>(seed);
        bears_damage::<memc3::Owner<Crew>>(seed);
    });
}

fn bears_damage<T: Kept>(seed: u64) {
    let (kind, place) = (kind_of(seed), Place::new());
    let mut load = Load::new(seed, 300, 20 << 10);
    let mut store: Store<T> = kind.store(&place);
    for _ in 0..2_000 {
        let request = load.request();
        load.run(&mut store, request);
    }
    drop(store);
    let mut rng = SmallRng::seed_from_u64(seed);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&place.0)
        .unwrap();
    let len = file.metadata().unwrap().len();
    let mut holes = 0;
    while holes < 200 {
        let at = rng.random_range(4096..len);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        if byte != [0] || rng.random_range(0..500) == 0 {
            file.write_all_at(&[rng.random()], at).unwrap();
            holes += 1;
        }
    }
    drop(file);
    if let Ok(mut store) = kind.try_store::<T>(&place) {
        for _ in 0..2_000 {
            let request = load.request();
            load.run(&mut store, request);
        }
    }
}
