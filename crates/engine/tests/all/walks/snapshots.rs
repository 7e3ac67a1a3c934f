//! Snapshots: what is there throughout is in them, whatever the table does meanwhile, and comes to
//! be in any other table as it was.

use std::collections::{BTreeMap, HashSet};

use glimmer_base::{Expiry, KeyHasher, Moment, Seed};
use glimmer_engine::snapshot::{Record, Records, SnapshotWalk};
use glimmer_engine::{
    Arrival, Arrived, Engine, History, Marks, NewItem, Spread, Uniques, Visit, build,
};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::FIFO;
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};
const ITEM_BYTES_MAX: usize = 300 << 10;
/// Bytes that a step copies: few, so that there are many steps.
const STEP_BYTES: usize = 4 << 10;

#[derive(Clone, Copy, Debug)]
enum Table {
    Cache,
    Store,
    Memc3,
}

const TABLES: [Table; 3] = [Table::Cache, Table::Store, Table::Memc3];

fn engine<A: Access>(table: Table, memory_bytes: usize) -> Box<dyn Engine> {
    let spread = Spread {
        partitions: 2,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let (pages, hasher) = (PagePolicy::Small, KeyHasher::from(SEED));
    let kept = Uniques::Kept;
    let engines = match table {
        Table::Cache => {
            let config = PartitionConfig {
                log_bytes: memory_bytes,
                main_buckets: 64,
                spare_buckets: 16,
                index_follows: true,
                item_bytes_max: ITEM_BYTES_MAX,
                pages,
                hasher,
                ..PartitionConfig::default()
            };
            build(&spread, kept, |_| Owner::<A>::new(&config, FIFO))
        }
        Table::Store => {
            let config = StoreConfig {
                bytes: memory_bytes,
                item_bytes_max: ITEM_BYTES_MAX,
                pages,
                hasher,
                ..StoreConfig::default()
            };
            build(&spread, kept, |_| mica_store::Owner::<A>::new(&config))
        }
        Table::Memc3 => {
            let config = Memc3Config {
                memory_bytes,
                page_bytes: 4 << 10,
                item_bytes_max: ITEM_BYTES_MAX,
                pages,
                numa_node: None,
                file: None,
                hasher,
                asides: Default::default(),
            };
            build(&spread, kept, |_| memc3::Owner::<A>::new(&config))
        }
    };
    engines.unwrap().remove(0)
}

/// An item as a table has it, but for its key.
type Content = (Vec<u8>, u32, Expiry, u64, Marks);

fn store(engine: &mut dyn Engine, key: &[u8], (value, flags, expiry, cas, marks): &Content) {
    let arrival = Arrival {
        keyhash: SEED.keyhash(key),
        item: NewItem {
            key,
            value: [value, &[]],
            flags: *flags,
            expiry: *expiry,
            history: History {
                cas: Some(*cas),
                marks: *marks,
                accessed_s: 0,
            },
        },
    };
    let stored = &mut |_, arrived| assert_eq!(arrived, Arrived::Stored, "{key:?}");
    engine.restore(NOW, &[arrival], stored);
}

fn content(engine: &mut dyn Engine, key: &[u8]) -> Option<Content> {
    let mut content = None;
    engine.look(NOW, SEED.keyhash(key), key, &mut |_, item| {
        content = item.map(|item| {
            let mut value = Vec::new();
            item.value().append_to(&mut value);
            let (flags, expiry) = (item.flags(), item.expiry());
            (value, flags, expiry, item.cas(), item.marks())
        });
    });
    content
}

/// Walks, with a change after each step. Returns what was copied.
fn copy(engine: &mut dyn Engine, mut change: impl FnMut(&mut dyn Engine, usize)) -> Vec<u8> {
    let mut walk = SnapshotWalk::new(NOW.epoch_unix_ms);
    let (mut out, mut items) = (Vec::new(), 0);
    for step in 0.. {
        let hasher = KeyHasher::from(SEED);
        items += walk
            .advance(engine, &hasher, NOW, STEP_BYTES, &mut out)
            .items;
        if walk.is_over() {
            break;
        }
        change(engine, step);
    }
    assert!(!walk.has_failed());
    assert_eq!(Records::of(&out).count(), items as usize);
    out
}

fn random_content(rng: &mut SmallRng, nth: u64) -> Content {
    let bytes = match nth % 100 {
        0 => rng.random_range(16 << 10..100 << 10),
        1..5 => rng.random_range(1 << 10..20 << 10),
        _ => rng.random_range(0..300),
    };
    let mut marks = Marks::NONE;
    for mark in [Marks::STALE, Marks::WON, Marks::FETCHED, Marks::BINARY_KEY] {
        marks = if rng.random() {
            marks.with(mark)
        } else {
            marks
        };
    }
    let expiry = match rng.random() {
        true => Expiry::at_ms(NOW.ms + rng.random_range(1..1 << 36)),
        false => Expiry::NEVER,
    };
    let flags = if rng.random() { rng.random() } else { 0 };
    let value = (0..bytes).map(|_| rng.random()).collect();
    (value, flags, expiry, 1 + nth, marks)
}

#[test]
fn items_come_to_every_other_table_as_they_were() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for from in TABLES {
        let mut source = engine::<Crcw>(from, 16 << 20);
        let mut contents = BTreeMap::new();
        for nth in 0..1_000 {
            let key = format!("{}{nth}", "k".repeat(rng.random_range(0..240))).into_bytes();
            let content = random_content(&mut rng, nth);
            store(&mut *source, &key, &content);
            contents.insert(key, content);
        }
        let copied = copy(&mut *source, |_, _| ());
        let records: Vec<Record<'_>> = Records::of(&copied).collect();
        assert_eq!(records.len(), contents.len(), "each once: {from:?}");
        for to in TABLES {
            let mut target = engine::<Erew>(to, 16 << 20);
            for record in &records {
                let ms = |unix_ms: u64| Expiry::at_ms(unix_ms - NOW.epoch_unix_ms);
                let expiry = record.expiry_unix_ms.map_or(Expiry::NEVER, ms);
                let value = record.value.to_vec();
                let content = (value, record.flags, expiry, record.cas, record.marks);
                store(&mut *target, record.key, &content);
            }
            for (key, expected) in &contents {
                let found = content(&mut *target, key).expect("it is there");
                assert!(found == *expected, "{from:?} to {to:?}: {key:?}");
            }
        }
    }
}

/// Items that stay are in the snapshot, though others come and go, the index grows, and its items
/// are moved. Some of them change all the time: these are in it too.
#[test]
fn what_stays_is_in_the_snapshot() {
    const STAYS: u64 = 2_000;
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let small = |byte: u8| (vec![byte; 8], 0, Expiry::NEVER, 0, Marks::NONE);
    for table in TABLES {
        let mut engine = engine::<Erew>(table, 8 << 20);
        let key = |nth: u64| format!("stays{nth}").into_bytes();
        for nth in 0..STAYS {
            store(&mut *engine, &key(nth), &small(0));
        }
        let (mut others, mut steps) = (0, 0);
        let copied = copy(&mut *engine, |engine, step| {
            steps = step;
            for _ in 0..if others < 40_000 { 40 } else { 0 } {
                store(engine, format!("more{others}").as_bytes(), &small(1));
                others += 1;
            }
            let changed = key(rng.random_range(0..STAYS));
            say(engine, &changed, rng.random_range(0..900));
        });
        assert!(steps > 100, "{table:?}");
        let copied: HashSet<&[u8]> = Records::of(&copied).map(|record| record.key).collect();
        let missed = (0..STAYS).filter(|&nth| !copied.contains(&*key(nth)));
        assert_eq!(missed.count(), 0, "{table:?}");
        assert!(content(&mut *engine, &key(0)).is_some());
    }
}

/// Stores a value of this many bytes.
fn say(engine: &mut dyn Engine, key: &[u8], bytes: usize) {
    use glimmer_engine::{Done, Job};
    use glimmer_proto::{Limits, Parser, Step};
    let key = str::from_utf8(key).expect("a test's key");
    let said = format!("set {key} 0 0 {bytes}\r\n{}\r\n", "v".repeat(bytes));
    let Step::Request { request, .. } = Parser::new(Limits::default()).next(said.as_bytes()) else {
        panic!("{said:?} is a request");
    };
    let job = Job {
        keyhash: SEED.keyhash(request.key),
        request,
        out: 0,
        size_max: Job::ANY_SIZE,
        copy_max: Job::ANY_SIZE,
        client: 0,
    };
    engine.run(NOW, &[job], &mut [Vec::new()], &mut [Done::SKIPPED]);
}

/// A large value is never in the snapshot as a mixture of two, and is in it also if the table needs
/// its place meanwhile.
#[test]
fn large_values_are_whole() {
    for table in TABLES {
        let mut engine = engine::<Crcw>(table, 8 << 20);
        let filled = |byte: u8| (vec![byte; 100 << 10], 0, Expiry::NEVER, 0, Marks::NONE);
        let keys: Vec<String> = (0..20).map(|nth| format!("large{nth}")).collect();
        for key in &keys {
            store(&mut *engine, key.as_bytes(), &filled(b'o'));
        }
        let copied = copy(&mut *engine, |engine, step| {
            say(engine, keys[step % keys.len()].as_bytes(), 100 << 10);
        });
        let mut seen = HashSet::new();
        for record in Records::of(&copied) {
            let first = record.value[0];
            let is_whole = record.value.iter().all(|&byte| byte == first);
            assert!(is_whole && record.value.len() == 100 << 10, "{table:?}");
            seen.insert(record.key);
        }
        assert_eq!(seen.len(), keys.len(), "{table:?}");
    }
}

/// CAS uniques go on above those of the server that the items come from.
#[test]
fn uniques_go_on_above_those_before() {
    let mut engine = engine::<Crcw>(Table::Cache, 1 << 20);
    engine.draw_cas_above(1_000);
    say(&mut *engine, b"key", 1);
    let (.., cas, _) = content(&mut *engine, b"key").unwrap();
    assert!((1_001..=1_003).contains(&cas));
    assert!((cas..cas + 3).contains(&engine.highest_cas()));
    let mut cursor = glimmer_engine::ListCursor::new(glimmer_engine::ListScope::Owned);
    assert_eq!(
        engine.visit(NOW, &mut cursor, &mut |_| ()),
        Visit::Continues
    );
    engine.end_visits(NOW, &cursor);
}
