//! What the MemC3 table makes of its memory, with pages as a server has them.

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::Crew;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::memc3::{Memc3Config, Owner};
use glimmer_store::table::Table;
use glimmer_store::table::{Counts, Stored, TableWriter};

const SEED: Seed = Seed(11);
const MEMORY_BYTES: usize = 32 << 20;
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

fn table(memory_bytes: usize) -> Owner<Crew> {
    let config = Memc3Config {
        memory_bytes,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    Owner::new(&config).unwrap()
}

fn put(owner: &mut Owner<Crew>, number: u32, value_bytes: usize) {
    let (key, value) = (format!("{number:016}"), vec![number as u8; value_bytes]);
    let item = NewItem::new(key.as_bytes(), &value);
    let keyhash = SEED.keyhash(key.as_bytes());
    assert!(matches!(
        owner.enter(0).put(keyhash, &item, NOW),
        Stored::Yes(_)
    ));
}

fn get(owner: &mut Owner<Crew>, number: u32) -> bool {
    let key = format!("{number:016}");
    let keyhash = SEED.keyhash(key.as_bytes());
    let found = owner
        .enter(0)
        .read(keyhash, key.as_bytes(), NOW, |item| item.value().len());
    found.is_some()
}

fn counts(owner: &Owner<Crew>) -> Counts {
    Owner::figures(owner).counts(0)
}

#[test]
fn tiny_items_number_a_third_more_than_memcached_holds() {
    // Of 16-byte keys with 32-byte values, memcached 1.6 holds 8.95 million in 1 GiB.
    let memcached = 8.95e6 * MEMORY_BYTES as f64 / (1u64 << 30) as f64;
    let mut owner = table(MEMORY_BYTES);
    let offered = (2.5 * memcached) as u32;
    (0..offered).for_each(|number| put(&mut owner, number, 32));
    let counts = counts(&owner);
    assert!(counts.evictions > 0, "{counts:?}");
    assert!(counts.items as f64 >= 1.3 * memcached, "{counts:?}");
}

#[test]
fn nothing_is_lost_before_the_memory_is_full() {
    let mut owner = table(MEMORY_BYTES);
    let mut stored = 0;
    // The index grows as it must while there are pages for it and for items.
    while counts(&owner).evictions == 0 {
        put(&mut owner, stored, 32);
        stored += 1;
    }
    let (counts, figures) = (counts(&owner), Table::figures(&owner));
    let in_use = counts.bytes + figures.index_bytes();
    assert!(
        in_use as f64 >= 0.97 * (figures.heap_bytes() + figures.index_bytes()) as f64,
        "{counts:?}, index {}",
        figures.index_bytes()
    );
    assert_eq!(counts.index_evictions, 0);
}

#[test]
fn a_key_costs_at_most_ten_bytes_of_index_while_the_index_grows() {
    // A segment is at least 95% full when it splits, and segments split one after another.
    let mut owner = table(MEMORY_BYTES);
    let (mut most, mut least) = (0.0_f64, f64::MAX);
    for number in 0..400_000 {
        put(&mut owner, number, 8);
        if number > 20_000 && number % 100 == 0 {
            let per_key = Table::figures(&owner).index_bytes() as f64 / f64::from(number);
            (most, least) = (most.max(per_key), least.min(per_key));
        }
    }
    assert!(most < 10.0, "{most}");
    assert!(least > 5.6, "{least}");
}

#[test]
fn items_that_are_read_stay() {
    let mut owner = table(4 << 20);
    let hot = 1_000;
    for number in 0..hot {
        put(&mut owner, number, 32);
    }
    for number in hot..400_000 {
        put(&mut owner, number, 32);
        get(&mut owner, number % hot);
    }
    let kept = (0..hot).filter(|&number| get(&mut owner, number)).count();
    assert!(kept >= 990, "{kept} of {hot}");
}

#[test]
fn memory_moves_to_the_sizes_that_need_it() {
    let mut owner = table(MEMORY_BYTES);
    // Full of tiny items.
    (0..1_000_000).for_each(|number| put(&mut owner, number, 8));
    assert!(counts(&owner).evictions > 0);
    // Then only items of 2,000 bytes: half the memory at least is soon theirs.
    (1_000_000..1_040_000).for_each(|number| put(&mut owner, number, 2_000));
    let counts = counts(&owner);
    let large = (1_000_000..1_040_000)
        .filter(|&number| get(&mut owner, number))
        .count();
    assert!(
        large * 2_000 > MEMORY_BYTES / 2,
        "{large} large items: {counts:?}"
    );
    // And one that takes many pages finds them.
    put(&mut owner, 2_000_000, 900_000);
    assert!(get(&mut owner, 2_000_000));
}

#[test]
fn a_flush_empties_the_table_and_the_index_starts_small_again() {
    let mut owner = table(MEMORY_BYTES);
    (0..300_000).for_each(|number| put(&mut owner, number, 8));
    let index_bytes = Table::figures(&owner).index_bytes();
    let _ = owner.enter(1);
    assert_eq!(Owner::figures(&owner).counts(1).items, 0);
    let key = format!("{:016}", 7);
    assert!(
        owner
            .enter(1)
            .find(SEED.keyhash(key.as_bytes()), key.as_bytes(), NOW)
            .is_none()
    );
    for number in 0..300_000 {
        let key = format!("{number:016}");
        let item = NewItem::new(key.as_bytes(), b"12345678");
        owner.enter(1).put(SEED.keyhash(key.as_bytes()), &item, NOW);
    }
    assert_eq!(Owner::figures(&owner).counts(1).items, 300_000);
    assert_eq!(
        Table::figures(&owner).index_bytes(),
        index_bytes,
        "pages that the index had are used again"
    );
}

/// Large items fill the memory, and most of them go: what stays lies at its end, where the index
/// grows.
fn with_free_pages_before_the_last(
    stay: impl Fn(u32, u32) -> bool,
) -> (Owner<Crew>, Vec<u32>, u64) {
    let mut owner = table(MEMORY_BYTES);
    let mut held = 0;
    while counts(&owner).evictions == 0 {
        put(&mut owner, held, 60_000);
        held += 1;
    }
    let evicted = counts(&owner).evictions;
    let (staying, going): (Vec<u32>, Vec<u32>) = (0..held).partition(|&n| stay(n, held));
    for number in going {
        let key = format!("{number:016}");
        let keyhash = SEED.keyhash(key.as_bytes());
        owner.enter(0).remove(keyhash, key.as_bytes(), NOW);
    }
    assert_eq!(counts(&owner).items, staying.len() as u64);
    (owner, staying, evicted)
}

#[test]
fn the_index_grows_without_eviction_while_there_are_free_pages() {
    let (mut owner, staying, evicted) =
        with_free_pages_before_the_last(|n, held| n >= held / 8 * 7);
    // Tiny items until three quarters of the memory are in use.
    let mut number = 1_000_000;
    loop {
        let (figures, counts) = (Table::figures(&owner), counts(&owner));
        let in_use = counts.bytes + figures.index_bytes();
        if in_use > MEMORY_BYTES as u64 / 4 * 3 {
            break;
        }
        put(&mut owner, number, 8);
        number += 1;
        assert_eq!(counts.evictions, evicted, "{in_use} bytes in use");
    }
    assert!(counts(&owner).moved > 0, "what lay in the way was moved");
    for number in staying.into_iter().chain(1_000_000..number) {
        assert!(get(&mut owner, number), "{number}");
    }
}

#[test]
fn slabs_of_many_items_are_moved_out_of_the_way_of_the_index() {
    let mut owner = table(MEMORY_BYTES);
    // Items of a few hundred bytes, all over the memory; of those that came first most go.
    let mut held = 0;
    while counts(&owner).bytes + Table::figures(&owner).index_bytes()
        < MEMORY_BYTES as u64 / 20 * 18
    {
        put(&mut owner, held, 500);
        held += 1;
    }
    let first_going = held / 50;
    for number in first_going..held / 10 * 9 {
        let key = format!("{number:016}");
        let keyhash = SEED.keyhash(key.as_bytes());
        assert!(owner.enter(0).remove(keyhash, key.as_bytes(), NOW));
    }
    // Some of those that move have been read, and one has been written over.
    assert!(get(&mut owner, held - 1));
    put(&mut owner, held - 2, 500);
    for number in 1_000_000..1_400_000 {
        put(&mut owner, number, 8);
    }
    assert_eq!(counts(&owner).evictions, 0, "{:?}", counts(&owner));
    assert!(counts(&owner).moved > 0);
    for number in (0..first_going)
        .chain(held / 10 * 9..held)
        .chain(1_000_000..1_400_000)
    {
        assert!(get(&mut owner, number), "{number}");
    }
}

/// After a flush, large items get the memory that the index of tiny ones had.
#[test]
fn a_flush_gives_the_memory_of_the_index_back() {
    let mut owner = table(MEMORY_BYTES);
    (0..300_000).for_each(|number| put(&mut owner, number, 8));
    let before = Table::figures(&owner).index_bytes();
    let store = |owner: &mut Owner<Crew>, number: u32| {
        let key = format!("{number:016}");
        let item = NewItem {
            key: key.as_bytes(),
            value: [&[number as u8; 60_000], &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let keyhash = SEED.keyhash(key.as_bytes());
        owner.enter(1).put(keyhash, &item, NOW);
    };
    let held = |owner: &mut Owner<Crew>| {
        (0..600).for_each(|number| {
            store(owner, number);
        });
        Owner::figures(owner).counts(1).items
    };
    let items = held(&mut owner);
    let after = Table::figures(&owner).index_bytes();
    assert!(before - after >= 2 << 20, "{before} bytes, then {after}");
    // As many as in a table whose index has never been larger.
    let mut fresh = table(MEMORY_BYTES);
    let most = held(&mut fresh);
    assert!(Owner::figures(&fresh).counts(1).evictions > 0);
    assert!(
        items * 100 >= most * 99,
        "{items} items, {most} in a fresh table"
    );
}
