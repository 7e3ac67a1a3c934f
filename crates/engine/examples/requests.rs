//! Sends one kind of request through one worker's engine, a given number of times.
//!
//! `cargo xtask instructions` runs this program under callgrind, which forgets what came before
//! [`count_from_here`], and divides the instructions by the requests after it.

use std::process::ExitCode;
use std::sync::LazyLock;

use glimmer_base::limits::BATCH_MAX;
use glimmer_base::{KeyHasher, Moment};
use glimmer_engine::{Done, Engine, Job, Spread, Status, Uniques, build};
use glimmer_proto::{Limits, Parser, Step};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::S3_FIFO;
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Table;

const USAGE: &str = "usage: requests TABLE ACCESS VERB BEFORE COUNTED
  TABLE    cache, store or memc3
  ACCESS   erew or crcw
  VERB     get, set (of an item that is there), new (a set of one that is not), delete, mg or ms
  BEFORE   how many requests do not count
  COUNTED  how many then count: 12288 with those before, at most";
/// Hashes as a server does.
static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::secret([5, 6], None));
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};
const KEYS: usize = 12_288;
const BATCH: usize = 32;
const _: () = assert!(BATCH <= BATCH_MAX);
const VALUE: &str = "0123456789abcdef0123456789abcdef";
/// Enough that nothing is evicted.
const MEMORY_BYTES: usize = 32 << 20;
/// Room for a batch's replies: a server's buffers have it as well.
const REPLY_BYTES: usize = 16 << 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let engine = match words[..] {
        [table, "erew", _, _, _] => engine::<Erew>(table),
        [table, "crcw", _, _, _] => engine::<Crcw>(table),
        _ => None,
    };
    let number = |nth: usize| words.get(nth)?.parse::<usize>().ok();
    let (Some(mut engine), Some(before), Some(counted)) = (engine, number(3), number(4)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let (engine, verb) = (engine.as_mut(), words[2]);
    let is_known = ["get", "set", "new", "delete", "mg", "ms"].contains(&verb);
    if !is_known || before.saturating_add(counted) > KEYS {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    }
    if verb != "new" {
        send(engine, &requests("set"));
    }
    let requests = requests(verb);
    let (uncounted, rest) = requests.split_at(before);
    send(engine, uncounted);
    count_from_here();
    send(engine, &rest[..counted]);
    ExitCode::SUCCESS
}

/// Callgrind counts from its call on.
#[inline(never)]
fn count_from_here() {
    // A call without an effect would be left out.
    std::hint::black_box(());
}

/// The engine of the only worker of a small table.
fn engine<A: Access>(table: &str) -> Option<Box<dyn Engine>> {
    let pages = PagePolicy::Small;
    let cache = PartitionConfig {
        log_bytes: MEMORY_BYTES,
        main_buckets: KEYS / 4,
        spare_buckets: KEYS / 32,
        pages,
        hasher: HASHER.clone(),
        ..PartitionConfig::default()
    };
    let store = StoreConfig {
        bytes: MEMORY_BYTES,
        pages,
        hasher: HASHER.clone(),
        ..StoreConfig::default()
    };
    let memc3 = Memc3Config {
        memory_bytes: MEMORY_BYTES,
        pages,
        hasher: HASHER.clone(),
        ..Memc3Config::default()
    };
    match table {
        "cache" => Some(alone(|| Owner::<A>::new(&cache, S3_FIFO).unwrap())),
        "store" => Some(alone(|| mica_store::Owner::<A>::new(&store).unwrap())),
        "memc3" => Some(alone(|| memc3::Owner::<A>::new(&memc3).unwrap())),
        _ => None,
    }
}

fn alone<T: Table>(make: impl Fn() -> T) -> Box<dyn Engine> {
    let spread = Spread {
        partitions: 1,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let engines = build::<T, ()>(&spread, Uniques::Kept, |_| Ok(make()));
    engines.unwrap().pop().unwrap()
}

/// One request for each key, as it arrives.
fn requests(verb: &str) -> Vec<String> {
    let bytes = VALUE.len();
    let key = |number| format!("key:{number:012}");
    let request = |number| match verb {
        "get" => format!("get {}\r\n", key(number)),
        "set" | "new" => format!("set {} 0 0 {bytes}\r\n{VALUE}\r\n", key(number)),
        "delete" => format!("delete {}\r\n", key(number)),
        "mg" => format!("mg {} v\r\n", key(number)),
        _ => format!("ms {} {bytes}\r\n{VALUE}\r\n", key(number)),
    };
    (0..KEYS).map(request).collect()
}

/// Sends requests, batch by batch.
fn send(engine: &mut dyn Engine, requests: &[String]) {
    let mut outs = [Vec::with_capacity(REPLY_BYTES)];
    for batch in requests.chunks(BATCH) {
        run(engine, batch, &mut outs);
    }
}

/// Executes a batch. The jobs are parsed outside of what `run` is counted for.
fn run(engine: &mut dyn Engine, batch: &[String], outs: &mut [Vec<u8>; 1]) {
    let mut parser = Parser::new(Limits::default());
    let jobs: Vec<Job<'_>> = (batch.iter())
        .map(|said| match parser.next(said.as_bytes()) {
            Step::Request { request, .. } => Job {
                keyhash: request.with_key(|key| HASHER.keyhash(key)),
                request,
                out: 0,
                size_max: Job::ANY_SIZE,
                copy_max: Job::ANY_SIZE,
                client: 0,
            },
            other => panic!("{said:?}: {other:?}"),
        })
        .collect();
    let mut done = vec![Done::SKIPPED; jobs.len()];
    outs[0].clear();
    engine.run(NOW, &jobs, outs, &mut done);
    assert!(done.iter().all(|done| done.status == Status::Done));
}
