//! Random batches of every verb through the engines of several workers, beside a plain map that
//! knows what each reply must be, byte for byte, with expiry and delayed flushes under a clock that
//! the test turns. Memory is ample, so nothing is evicted and nothing is excused; the store's own
//! oracle covers eviction.

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Spread, Status, Uniques, build};
use glimmer_proto::text::Reply;
use glimmer_proto::{Form, Refusal, Request, StoreMode, Verb};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{RULES, Rule, S3_FIFO};
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Table;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;

const SEED: Seed = Seed(11);
const KEYS: usize = 60;
const WORKERS: usize = 3;

/// How large items and partitions are. One value in twenty has a quarter of the limit or more.
#[derive(Clone, Copy)]
struct Sizes {
    item_bytes_max: usize,
    partition_bytes: usize,
    batches: usize,
}

const SMALL: Sizes = Sizes {
    item_bytes_max: 4_000,
    partition_bytes: 8 << 20,
    batches: 3_000,
};
/// Values that are copied while no lock is held, where all may write.
const LARGE: Sizes = Sizes {
    item_bytes_max: 80_000,
    partition_bytes: 64 << 20,
    batches: 750,
};
const _: () = assert!(LARGE.item_bytes_max / 4 > glimmer_base::limits::DRAFT_BYTES_MIN);

#[derive(Clone, Debug)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    expiry: Expiry,
    /// The CAS unique, once a reply has shown it.
    cas: Option<u64>,
}

/// Key, value, and a header with room for flags, expiry and the extra field, which count whether
/// the item has them or not.
fn too_large(key: &[u8], value: &[u8], sizes: Sizes) -> bool {
    let length_bytes = if value.len() >= 256 { 3 } else { 0 };
    let bytes = 8 + key.len() + length_bytes + value.len() + 5 + 5 + 7;
    bytes > sizes.item_bytes_max
}

/// The plain twin of the whole engine.
struct Model {
    sizes: Sizes,
    items: HashMap<Vec<u8>, Item>,
    flush_at: Option<u64>,
    /// Every CAS unique that a key has shown.
    shown: HashMap<Vec<u8>, Vec<u64>>,
}

impl Model {
    fn new(sizes: Sizes) -> Model {
        Model {
            sizes,
            items: HashMap::new(),
            flush_at: None,
            shown: HashMap::new(),
        }
    }

    fn turn(&mut self, now: Moment) {
        if self.flush_at.is_some_and(|at| at <= now.ms) {
            self.flush_at = None;
            self.items.clear();
        }
        self.items.retain(|_, item| !item.expiry.is_due(now));
    }

    /// Checks the reply to one request, and does what the request asks.
    fn check(&mut self, request: &Request<'_>, now: Moment, reply: &[u8]) {
        self.turn(now);
        let Form::Text(Reply { cas, last, quiet }) = request.form else {
            unreachable!("the classic commands are those of the text protocol")
        };
        let key = request.key.to_vec();
        let there = self.items.get(&key).cloned();
        let fresh = |value: Vec<u8>, flags, expiry| Item {
            value,
            flags,
            expiry,
            cas: None,
        };
        let line = match request.verb {
            Verb::Get | Verb::GetAndTouch { .. } => {
                self.check_value(&key, there, (cas, last), reply);
                if let Verb::GetAndTouch { exptime } = request.verb
                    && let Some(item) = self.items.get_mut(&key)
                {
                    item.expiry = Expiry::from_memcached(exptime, now);
                }
                return;
            }
            Verb::Store {
                mode,
                flags,
                exptime,
                value,
            } => {
                let expiry = Expiry::from_memcached(exptime, now);
                let joins = matches!(mode, StoreMode::Append | StoreMode::Prepend);
                let joined = |first: &[u8], second: &[u8]| [first, second].concat();
                let stored = match (mode, there) {
                    (StoreMode::Set | StoreMode::Add, None)
                    | (StoreMode::Set | StoreMode::Replace, Some(_)) => {
                        Ok(fresh(value.to_vec(), flags, expiry))
                    }
                    (StoreMode::Cas(unique), Some(item)) => match item.cas == Some(unique) {
                        true => Ok(fresh(value.to_vec(), flags, expiry)),
                        false => Err("EXISTS\r\n"),
                    },
                    (StoreMode::Append, Some(item)) => {
                        Ok(fresh(joined(&item.value, value), item.flags, item.expiry))
                    }
                    (StoreMode::Prepend, Some(item)) => {
                        Ok(fresh(joined(value, &item.value), item.flags, item.expiry))
                    }
                    (StoreMode::Cas(_), None) => Err("NOT_FOUND\r\n"),
                    _ => Err("NOT_STORED\r\n"),
                };
                match stored {
                    Ok(item) if too_large(&key, &item.value, self.sizes) => {
                        if joins {
                            "NOT_STORED\r\n"
                        } else {
                            self.items.remove(&key);
                            "SERVER_ERROR object too large for cache\r\n"
                        }
                    }
                    Ok(item) => {
                        self.items.insert(key, item);
                        "STORED\r\n"
                    }
                    Err(line) => line,
                }
            }
            Verb::Delete => match self.items.remove(&key) {
                Some(_) => "DELETED\r\n",
                None => "NOT_FOUND\r\n",
            },
            Verb::Touch { exptime } => match self.items.get_mut(&key) {
                Some(item) => {
                    item.expiry = Expiry::from_memcached(exptime, now);
                    "TOUCHED\r\n"
                }
                None => "NOT_FOUND\r\n",
            },
            Verb::Increment { .. } | Verb::Decrement { .. } => {
                let expected = self.calculate(&key, &request.verb);
                assert_eq!(text(reply), if quiet { "" } else { &expected });
                return;
            }
            Verb::Refused { reason } => {
                self.items.remove(&key);
                reason.line()
            }
            _ => unreachable!("the classic commands have none of these"),
        };
        assert_eq!(text(reply), if quiet { "" } else { line }, "{request:?}");
    }

    fn calculate(&mut self, key: &[u8], verb: &Verb<'_>) -> String {
        let Some(item) = self.items.get_mut(key) else {
            return "NOT_FOUND\r\n".into();
        };
        // As strtoull reads it: digits, and anything behind a space.
        let text = text(&item.value);
        let number = text.split(' ').next().unwrap_or_default().parse::<u64>();
        let (Ok(number), true) = (number, item.value.len() <= 24) else {
            return "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".into();
        };
        let number = match *verb {
            Verb::Increment { delta } => number.wrapping_add(delta),
            Verb::Decrement { delta } => number.saturating_sub(delta),
            _ => unreachable!("only calculations come here"),
        };
        item.value = format!("{number:<width$}", width = item.value.len()).into_bytes();
        item.cas = None;
        format!("{number}\r\n")
    }

    /// Checks a read's reply, and learns or checks the CAS unique that it shows.
    fn check_value(
        &mut self,
        key: &[u8],
        item: Option<Item>,
        (cas, last): (bool, bool),
        reply: &[u8],
    ) {
        let end = if last { "END\r\n" } else { "" };
        let Some(item) = item else {
            assert_eq!(text(reply), end, "{} is not there", text(key));
            return;
        };
        let line_end = reply
            .windows(2)
            .position(|w| w == b"\r\n")
            .expect("a value line");
        let words: Vec<String> = text(&reply[..line_end])
            .split(' ')
            .map(str::to_owned)
            .collect();
        let expected = [
            "VALUE".to_owned(),
            text(key),
            item.flags.to_string(),
            item.value.len().to_string(),
        ];
        assert_eq!(words[..4], expected);
        assert_eq!(words.len(), if cas { 5 } else { 4 });
        let body = [&item.value[..], b"\r\n", end.as_bytes()].concat();
        assert_eq!(text(&reply[line_end + 2..]), text(&body));
        if cas {
            let unique: u64 = words[4].parse().unwrap();
            let shown = self.shown.entry(key.to_vec()).or_default();
            match item.cas {
                Some(known) => assert_eq!(unique, known, "the CAS unique changed by itself"),
                None => {
                    assert!(
                        !shown.contains(&unique),
                        "a mutation did not change the CAS unique"
                    );
                    shown.push(unique);
                }
            }
            self.items.get_mut(key).unwrap().cas = Some(unique);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn key(n: usize) -> Vec<u8> {
    format!("{n:0width$}", width = 2 + n * 7 % 40).into_bytes()
}

/// What one step draws; values live as long as the batch.
fn draw<'a>(rng: &mut SmallRng, model: &Model, key: &'a [u8], value: &'a [u8]) -> Request<'a> {
    let exptime = *[0, 0, 0, 1, 5, 100, -1]
        .get(rng.random_range(0..7))
        .unwrap();
    let known = model.items.get(key).and_then(|item| item.cas);
    let verb = match rng.random_range(0..100) {
        0..35 => Verb::Get,
        35..40 => Verb::GetAndTouch { exptime },
        40..75 => {
            let mode = match rng.random_range(0..10) {
                0..4 => StoreMode::Set,
                4 => StoreMode::Add,
                5 => StoreMode::Replace,
                6 => StoreMode::Append,
                7 => StoreMode::Prepend,
                _ => StoreMode::Cas(
                    known
                        .filter(|_| rng.random_bool(0.8))
                        .unwrap_or(rng.random_range(1 << 50..1 << 51)),
                ),
            };
            let flags = if rng.random_bool(0.5) {
                0
            } else {
                rng.random()
            };
            Verb::Store {
                mode,
                flags,
                exptime,
                value,
            }
        }
        75..82 => Verb::Delete,
        82..87 => Verb::Increment {
            delta: if rng.random_bool(0.2) {
                u64::MAX
            } else {
                rng.random_range(0..1000)
            },
        },
        87..92 => Verb::Decrement {
            delta: rng.random_range(0..1000),
        },
        92..99 => Verb::Touch { exptime },
        _ => Verb::Refused {
            reason: Refusal::TooLarge,
        },
    };
    let quiet = !matches!(verb, Verb::Get | Verb::GetAndTouch { .. }) && rng.random_bool(0.1);
    let form = Form::Text(Reply {
        cas: rng.random_bool(0.5),
        last: rng.random_bool(0.5),
        quiet,
    });
    Request { key, verb, form }
}

fn value(rng: &mut SmallRng, sizes: Sizes) -> Vec<u8> {
    let most = sizes.item_bytes_max;
    match rng.random_range(0..20) {
        0..8 => rng.random_range(0..100_000u64).to_string().into_bytes(),
        8 => u64::MAX.to_string().into_bytes(),
        9 => {
            let mut value = vec![b'x'; rng.random_range(most / 4..most / 4 * 3)];
            rng.fill(&mut value[..]);
            value
        }
        10 => vec![b'y'; most + 400],
        _ => (0..rng.random_range(0..60))
            .map(|_| rng.random_range(b'a'..=b'z'))
            .collect(),
    }
}

fn run<T: Table>(sizes: Sizes, mut make: impl FnMut(Option<u32>) -> T) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let spread = Spread {
        partitions: 2 * WORKERS,
        workers: WORKERS,
        numa_nodes: Vec::new(),
    };
    let make = |node| Ok::<T, std::convert::Infallible>(make(node));
    let mut engines: Vec<Box<dyn Engine>> = build(&spread, Uniques::Kept, make).unwrap();
    let layout = engines[0].layout();
    let (mut model, mut now) = (
        Model::new(sizes),
        Moment {
            ms: 2_000,
            epoch_unix_ms: 0,
        },
    );
    for _ in 0..sizes.batches {
        match rng.random_range(0..200) {
            0 => {
                let at = now.ms + *[0, 0, 700, 4_000].get(rng.random_range(0..4)).unwrap();
                engines[rng.random_range(0..WORKERS)].flush(now, at);
                model.turn(now);
                model.flush_at = Some(at);
            }
            1..30 => now.ms += rng.random_range(0..800),
            _ => {}
        }
        let worker = rng.random_range(0..WORKERS);
        let count = rng.random_range(1..=32);
        let keys: Vec<Vec<u8>> = (0..count).map(|_| key(rng.random_range(0..KEYS))).collect();
        let values: Vec<Vec<u8>> = (0..count).map(|_| value(&mut rng, sizes)).collect();
        model.turn(now);
        let jobs: Vec<Job<'_>> = keys
            .iter()
            .zip(&values)
            .map(|(key, value)| Job {
                keyhash: SEED.keyhash(key),
                request: draw(&mut rng, &model, key, value),
                out: rng.random_range(0..3),
                size_max: Job::ANY_SIZE,
                copy_max: Job::ANY_SIZE,
                client: 0,
            })
            .filter(|job| layout.may_run(worker, job.keyhash, job.request.verb.is_read()))
            .collect();
        let mut outs = vec![Vec::new(); 3];
        let mut done = vec![Done::SKIPPED; jobs.len()];
        engines[worker].run(now, &jobs, &mut outs, &mut done);
        let mut ends = [0; 3];
        // Under CREW a reader that has yet to hear of a flush sends its request, and those behind
        // it, to the owner.
        let executed = jobs
            .iter()
            .zip(&done)
            .filter(|(_, done)| done.status == Status::Done);
        for (job, done) in executed {
            let out = job.out as usize;
            model.check(&job.request, now, &outs[out][ends[out]..done.end]);
            ends[out] = done.end;
        }
        assert!(done.iter().all(|d| d.status == Status::Done) || T::Access::NAME == "crew");
    }
    let items: u64 = engines
        .iter()
        .map(|engine| engine.figures().table().store.items)
        .sum();
    model.turn(now);
    assert!(items >= model.items.len() as u64);
    let evicted: u64 = engines
        .iter()
        .map(|engine| engine.figures().table().store.evictions)
        .sum();
    assert_eq!(evicted, 0, "memory was meant to be ample");
}

fn mica<A: Access>(rule: Rule, sizes: Sizes) {
    let partition = PartitionConfig {
        log_bytes: sizes.partition_bytes,
        main_buckets: 20,
        spare_buckets: 10,
        index_follows: true,
        item_bytes_max: sizes.item_bytes_max,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    run(sizes, |_| Owner::<A>::new(&partition, rule).unwrap());
}

/// An index of one bucket at first, which grows.
fn store_mode<A: Access>(sizes: Sizes) {
    let table = StoreConfig {
        bytes: sizes.partition_bytes,
        roots: Some(1),
        item_bytes_max: sizes.item_bytes_max,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    run(sizes, |_| mica_store::Owner::<A>::new(&table).unwrap());
}

/// Pages so small that most items take several, and the index grows.
fn memc3<A: Access>(sizes: Sizes) {
    let table = Memc3Config {
        memory_bytes: sizes.partition_bytes,
        page_bytes: 128,
        item_bytes_max: sizes.item_bytes_max,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    run(sizes, |_| memc3::Owner::<A>::new(&table).unwrap());
}

fn every_rule<A: Access>() {
    for rule in RULES {
        println!("{rule:?}");
        mica::<A>(rule.with_threshold(0.9), SMALL);
    }
}

#[test]
fn erew_every_rule() {
    every_rule::<Erew>();
}

#[test]
fn crew_every_rule() {
    every_rule::<Crew>();
}

#[test]
fn crcw_every_rule() {
    every_rule::<Crcw>();
}

#[test]
fn erew_memc3() {
    memc3::<Erew>(SMALL);
}

#[test]
fn crew_memc3() {
    memc3::<Crew>(SMALL);
}

#[test]
fn crcw_memc3() {
    memc3::<Crcw>(SMALL);
}

#[test]
fn erew_store_mode() {
    store_mode::<Erew>(SMALL);
}

#[test]
fn crew_store_mode() {
    store_mode::<Crew>(SMALL);
}

#[test]
fn crcw_store_mode() {
    store_mode::<Crcw>(SMALL);
}

#[test]
fn crew_large_values() {
    mica::<Crew>(S3_FIFO, LARGE);
    store_mode::<Crew>(LARGE);
}

#[test]
fn crcw_large_values() {
    mica::<Crcw>(S3_FIFO, LARGE);
    store_mode::<Crcw>(LARGE);
}
