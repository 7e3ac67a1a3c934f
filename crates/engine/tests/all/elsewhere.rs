//! A read stops before it copies a value that is larger than the job allows, in every table and
//! access mode, by the owner and beside it.

use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Spread, Status, Uniques, build};
use glimmer_proto::{Limits, Parser, Request, Step};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::RULES;
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Table;

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};
const BYTES: u32 = 100;
const SKIPPED: Done = Done::SKIPPED;

fn request(said: &[u8]) -> Request<'_> {
    match Parser::new(Limits::default()).next(said) {
        Step::Request { request, .. } => request,
        other => panic!("{other:?}"),
    }
}

fn job<'a>(said: &'a [u8], out: u32, size_max: u32) -> Job<'a> {
    let request = request(said);
    Job {
        keyhash: request.with_key(|key| SEED.keyhash(key)),
        request,
        out,
        size_max,
        copy_max: Job::ANY_SIZE,
        client: 0,
    }
}

/// Every read of a value, by each worker that may execute it.
fn check<T: Table>(make: impl FnMut(Option<u32>) -> T) {
    let spread = Spread {
        partitions: 2,
        workers: 2,
        numa_nodes: Vec::new(),
    };
    let mut make = make;
    let mut engines = build::<T, ()>(&spread, Uniques::Kept, |node| Ok(make(node))).unwrap();
    let value = "v".repeat(BYTES as usize);
    for key in ["a", "b", "c", "d"] {
        let set = format!("set {key} 0 0 {BYTES}\r\n{value}\r\n");
        let jobs = [job(set.as_bytes(), 0, 0)];
        let layout = engines[0].layout();
        let owner = layout.home(0, jobs[0].keyhash);
        let (mut outs, mut done) = ([Vec::new()], [SKIPPED]);
        engines[owner].run(NOW, &jobs, &mut outs, &mut done);
        assert_eq!(outs[0], b"STORED\r\n", "a store copies nothing out");
        assert_eq!(done[0].read_bytes, 0);
        for read in [
            "get KEY",
            "gets KEY",
            "gat 0 KEY",
            "mg KEY v",
            "mg KEY v T60",
            "mg KEY s",
        ] {
            let said = format!("{}\r\n", read.replace("KEY", key));
            let is_read = request(said.as_bytes()).verb.is_read();
            for (worker, engine) in engines.iter_mut().enumerate() {
                if layout.may_run(worker, SEED.keyhash(key.as_bytes()), is_read) {
                    reads(engine.as_mut(), worker, &said, &value);
                }
            }
        }
    }
}

fn reads(engine: &mut dyn Engine, worker: usize, said: &str, value: &str) {
    let said = said.as_bytes();
    let other = b"get missing\r\n";
    let is_mine = (engine.layout()).may_run(worker, SEED.keyhash(b"missing"), true);
    let mut outs = [b"before".to_vec(), Vec::new()];
    let mut jobs = vec![job(said, 0, BYTES - 1), job(said, 0, Job::ANY_SIZE)];
    if is_mine {
        jobs.push(job(other, 1, 0));
    }
    let mut done = vec![SKIPPED; jobs.len()];
    engine.run(NOW, &jobs, &mut outs, &mut done);
    let bytes = BYTES;
    assert_eq!(done[0].status, Status::Elsewhere { bytes });
    assert_eq!(done[1].status, Status::Skipped);
    assert_eq!((done[1].end, &outs[0][..]), (6, &b"before"[..]));
    if is_mine {
        assert_eq!(
            (done[2].status, done[2].read_bytes, &outs[1][..]),
            (Status::Done, 0, &b"END\r\n"[..])
        );
    }
    for size_max in [BYTES, Job::ANY_SIZE] {
        let (mut outs, mut done) = ([Vec::new()], [SKIPPED]);
        engine.run(NOW, &[job(said, 0, size_max)], &mut outs, &mut done);
        assert_eq!(done[0].status, Status::Done);
        let reply = String::from_utf8_lossy(&outs[0]).into_owned();
        let shows_value = !said.ends_with(b" s\r\n");
        assert_eq!(reply.contains(value), shows_value, "{reply}");
        assert_eq!(done[0].read_bytes, BYTES, "{reply}");
    }
}

fn in_every_table<A: Access>() {
    let pages = PagePolicy::Small;
    let mica = PartitionConfig {
        log_bytes: 1 << 20,
        main_buckets: 64,
        spare_buckets: 8,
        item_bytes_max: 4_000,
        pages,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    for rule in RULES {
        check(|_| Owner::<A>::new(&mica, rule.with_threshold(0.3)).unwrap());
    }
    let store = StoreConfig {
        bytes: 1 << 20,
        item_bytes_max: 4_000,
        pages,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    check(|_| mica_store::Owner::<A>::new(&store).unwrap());
    let memc3 = Memc3Config {
        memory_bytes: 1 << 20,
        page_bytes: 4 << 10,
        item_bytes_max: 4_000,
        pages,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    check(|_| memc3::Owner::<A>::new(&memc3).unwrap());
}

#[test]
fn under_erew() {
    in_every_table::<Erew>();
}

#[test]
fn under_crew() {
    in_every_table::<Crew>();
}

#[test]
fn under_crcw() {
    in_every_table::<Crcw>();
}
