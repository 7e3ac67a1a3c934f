//! What the meta commands leave on an item: it survives every change of everything else, whatever
//! fields the item has.

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::S3_FIFO;
use glimmer_store::heap::{CAS_MAX, History, Marks, NewItem};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Stored, Table, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SEED: Seed = Seed(3);
const NOW: Moment = Moment {
    ms: 5_000,
    epoch_unix_ms: 0,
};

#[derive(Clone, Debug, PartialEq)]
struct Known {
    value: Vec<u8>,
    flags: u32,
    expiry: Expiry,
    history: History,
}

fn some_history(rng: &mut SmallRng) -> History {
    let all = [Marks::STALE, Marks::WON, Marks::FETCHED, Marks::BINARY_KEY];
    let marks = all
        .iter()
        .filter(|_| rng.random())
        .fold(Marks::NONE, |marks, mark| marks.with(*mark));
    History {
        cas: match rng.random_range(0..4) {
            0 => None,
            1 => Some(rng.random_range(0..=CAS_MAX)),
            2 => Some(CAS_MAX + 1),
            _ => Some(rng.random()),
        },
        marks,
        accessed_s: if rng.random() { rng.random() } else { 0 },
    }
}

fn some_expiry(rng: &mut SmallRng) -> Expiry {
    if rng.random() {
        Expiry::at_ms(rng.random_range(6_000..1 << 40))
    } else {
        Expiry::NEVER
    }
}

fn run<A: Access>(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let config = PartitionConfig {
        log_bytes: 1 << 20,
        main_buckets: 64,
        spare_buckets: 8,
        item_bytes_max: 4_096,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    let mut owner = Owner::<A>::new(&config, S3_FIFO).unwrap();
    let mut known: Vec<Option<Known>> = vec![None; 20];
    let mut fetched = vec![false; known.len()];
    for step in 0..2_000 {
        let index = rng.random_range(0..known.len());
        let key = format!("key {index}").into_bytes();
        let keyhash = SEED.keyhash(&key);
        let mut writer = owner.enter(0);
        match (&mut known[index], rng.random_range(0..4)) {
            (Some(item), 0) => {
                let history = some_history(&mut rng);
                item.expiry = some_expiry(&mut rng);
                assert!(writer.amend(keyhash, &key, item.expiry, history, NOW));
                let cas = history.cas.or(item.history.cas);
                item.history = History { cas, ..history };
            }
            (Some(item), 1) => {
                item.expiry = some_expiry(&mut rng);
                assert!(writer.touch(keyhash, &key, item.expiry, NOW));
                fetched[index] = true;
            }
            (place, _) => {
                let mut value = vec![0; rng.random_range(0..700)];
                rng.fill(&mut value[..]);
                let flags = if rng.random() { rng.random() } else { 0 };
                let (expiry, history) = (some_expiry(&mut rng), some_history(&mut rng));
                let item = NewItem {
                    key: &key,
                    value: [&value, &[]],
                    flags,
                    expiry,
                    history,
                };
                let Stored::Yes(cas) = writer.put(keyhash, &item, NOW) else {
                    panic!("seed {seed}, step {step}: the item fits");
                };
                assert!(history.cas.is_none_or(|given| given == cas));
                let history = History {
                    cas: Some(cas),
                    ..history
                };
                fetched[index] = false;
                *place = Some(Known {
                    value,
                    flags,
                    expiry,
                    history,
                });
            }
        }
        let found = writer.find(keyhash, &key, NOW).map(|found| {
            let mut value = Vec::new();
            found.value().append_to(&mut value);
            Known {
                value,
                flags: found.flags(),
                expiry: found.expiry(),
                history: found.history(),
            }
        });
        // An item that was touched, and had to be written again for it or since, says itself that
        // it was fetched.
        if let (Some(found), Some(item), true) = (&found, &mut known[index], fetched[index]) {
            let mark = found.history.marks.only(Marks::FETCHED);
            item.history.marks = item.history.marks.with(mark);
        }
        assert_eq!(found, known[index], "seed {seed}, step {step}");
    }
}

#[test]
fn an_items_history_is_kept() {
    let first = glimmer_seeds::seed();
    for seed in (0..20).map(|number| first.wrapping_add(number)) {
        run::<Erew>(seed);
        run::<Crcw>(seed);
    }
}
