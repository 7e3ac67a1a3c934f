//! Engines of another access mode go on with the partitions, and with nothing of earlier requests.

use crate::protocols::resp::command;
use glimmer_base::limits::DRAFT_BYTES_MIN;
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Spread, Uniques, Unobserved, build, rebuild};
use glimmer_proto::{Accepts, Limits, Parser, Step};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::FIFO;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Table;

const SEED: Seed = Seed(3);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};

/// What an engine says to a command.
fn say(engine: &mut dyn Engine, said: &[u8]) -> String {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let Step::Request { request, .. } = parser.next(said) else {
        panic!("it is a whole command");
    };
    let jobs = [Job {
        keyhash: request.with_key(|key| SEED.keyhash(key)),
        request,
        out: 0,
        size_max: Job::ANY_SIZE,
        copy_max: Job::ANY_SIZE,
        client: 0,
    }];
    let (mut outs, mut done) = ([Vec::new()], [Done::SKIPPED]);
    engine.run(NOW, &jobs, &mut outs, &mut done);
    String::from_utf8_lossy(&outs[0]).into_owned()
}

/// Under CRCW a large value is to be stored for no time at all, so it is not. Under another access
/// mode, the buffer that it lay in has another value for the same key.
fn goes_on<T: Table, U: Table<Parts = T::Parts>>(make: impl Fn() -> T) {
    let spread = Spread {
        partitions: 1,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let [before, after] = ["b", "a"].map(|fill| fill.repeat(DRAFT_BYTES_MIN));
    let mut engines = build::<T, ()>(&spread, Uniques::Kept, |_| Ok(make())).unwrap();
    // The words before the value, and so its address, are the same.
    let mut buffer = Vec::with_capacity(2 * DRAFT_BYTES_MIN);
    buffer.extend(command(&format!("SET k {before} PXAT 1")));
    assert_eq!(say(&mut *engines[0], &buffer), "+OK\r\n");
    buffer.clear();
    buffer.extend(command(&format!("SET k {after}")));
    let mut engines = rebuild::<T, U, Unobserved>(engines);
    assert_eq!(say(&mut *engines[0], &buffer), "+OK\r\n");
    let read = say(&mut *engines[0], &command("GET k"));
    assert_eq!(read, format!("${}\r\n{after}\r\n", after.len()));
}

fn goes_on_as<A: Access>() {
    let mica = PartitionConfig {
        log_bytes: 1 << 20,
        item_bytes_max: 100_000,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    goes_on::<Owner<Crcw>, Owner<A>>(|| Owner::new(&mica, FIFO).unwrap());
    let store = StoreConfig {
        bytes: 1 << 20,
        item_bytes_max: 100_000,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    type Store<A> = mica_store::Owner<A>;
    goes_on::<Store<Crcw>, Store<A>>(|| Store::new(&store).unwrap());
}

#[test]
fn under_erew() {
    goes_on_as::<Erew>();
}

#[test]
fn under_crew() {
    goes_on_as::<Crew>();
}
