//! Reads that others have answered: the eviction rule learns of them, and they are counted by
//! those who answered. And reads that were counted, and are counted no longer.

use crate::{job, protocols::resp::command};
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Spread, Uniques, build};
use glimmer_proto::{Accepts, Limits, Parser, Step};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::FIFO;
use glimmer_store::mica_cache::{Owner, PartitionConfig};

const SEED: Seed = Seed(3);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};

fn run(engine: &mut dyn Engine, said: &[u8]) {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let Step::Request { request, .. } = parser.next(said) else {
        panic!("it is a whole command");
    };
    let jobs = [job(SEED, request, 0)];
    let (mut outs, mut done) = ([Vec::new()], [Done::SKIPPED]);
    engine.run(NOW, &jobs, &mut outs, &mut done);
}

fn engine<A: Access>() -> Box<dyn Engine> {
    let config = PartitionConfig {
        log_bytes: 1 << 20,
        item_bytes_max: 1000,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    let spread = Spread {
        partitions: 1,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let make = |_| Ok(Owner::<A>::new(&config, FIFO).unwrap());
    let mut engines = build::<Owner<A>, ()>(&spread, Uniques::Kept, make).unwrap();
    engines.remove(0)
}

fn are_not_counted_here<A: Access>() {
    let mut engine = engine::<A>();
    let engine = &mut *engine;
    run(engine, &command("SET k v"));
    run(engine, &command("GET k"));
    let requests = |engine: &dyn Engine| engine.figures().table().requests;
    let before = requests(engine);
    assert_eq!(before.get_hits, 1);
    for key in [&b"k"[..], b"missing"] {
        engine.credit(NOW, SEED.keyhash(key), key);
    }
    assert_eq!(requests(engine), before);
}

/// Prometheus takes a counter that falls for one that has begun again.
#[test]
fn a_figure_that_was_shown_does_not_fall_when_a_read_is_discounted() {
    let mut engine = engine::<Erew>();
    let hits = |engine: &dyn Engine| engine.figures().table().requests.get_hits;
    run(&mut *engine, &command("SET k v"));
    let mut shown = Vec::new();
    for (reads, discounted) in [(3, 0), (0, 2), (1, 0), (1, 0), (1, 0), (2, 2), (1, 0)] {
        (0..reads).for_each(|_| run(&mut *engine, &command("GET k")));
        engine.discount(discounted);
        shown.push(hits(&*engine));
    }
    assert_eq!(shown, [3, 3, 3, 3, 4, 4, 5]);
}

#[test]
fn others_hits_are_not_counted_here() {
    are_not_counted_here::<Erew>();
    are_not_counted_here::<Crew>();
    are_not_counted_here::<Crcw>();
}
