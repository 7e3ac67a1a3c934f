//! The replies of a batch take a bounded number of bytes, in however many buffers they are.

use glimmer_base::limits::{BATCH_MAX, BATCH_REPLY_BYTES_HIGH};
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Spread, Status, Uniques, build};
use glimmer_proto::{Parser, Step};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::S3_FIFO;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};
/// With values of this length, one batch cannot answer all of its requests.
const VALUE_BYTES: usize = 200_000;
const _: () = assert!(VALUE_BYTES * BATCH_MAX > 2 * BATCH_REPLY_BYTES_HIGH);

fn engine<A: Access>() -> Box<dyn Engine> {
    let spread = Spread {
        partitions: 1,
        workers: 1,
        numa_nodes: Vec::new(),
    };
    let config = PartitionConfig {
        log_bytes: 8 << 20,
        main_buckets: 64,
        spare_buckets: 8,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    build::<Owner<A>, ()>(&spread, Uniques::Kept, |_| {
        Ok(Owner::<A>::new(&config, S3_FIFO).unwrap())
    })
    .unwrap()
    .remove(0)
}

/// A request that has a buffer of its own.
fn job(said: &[u8], out: usize) -> Job<'_> {
    match Parser::new(Default::default()).next(said) {
        Step::Request { request, .. } => crate::job(SEED, request, out as u32),
        other => panic!("{other:?}"),
    }
}

/// A `gat` changes the item, so that its value is copied.
fn a_batch_stops<A: Access>() {
    let mut engine = engine::<A>();
    let set = [
        format!("set key 0 0 {VALUE_BYTES}\r\n").into_bytes(),
        vec![b'v'; VALUE_BYTES],
        b"\r\n".to_vec(),
    ]
    .concat();
    let mut done = [Done::SKIPPED];
    engine.run(NOW, &[job(&set, 0)], &mut [Vec::new()], &mut done);
    assert_eq!(done[0].status, Status::Done);

    let mut left: Vec<usize> = (0..BATCH_MAX).collect();
    let mut outs = vec![Vec::new(); BATCH_MAX];
    for batches in 1.. {
        let jobs: Vec<_> = left.iter().map(|out| job(b"gat 0 key\r\n", *out)).collect();
        let mut done = vec![Done::SKIPPED; jobs.len()];
        engine.run(NOW, &jobs, &mut outs, &mut done);
        let answered = done.iter().take_while(|done| done.status == Status::Done);
        let answered = answered.count();
        // Those behind are to be executed again, and nothing was written for them.
        for (done, out) in done[answered..].iter().zip(&left[answered..]) {
            assert_eq!((done.status, outs[*out].len()), (Status::NoRoom, 0));
        }
        let bytes: usize = left.iter().map(|out| outs[*out].len()).sum();
        let most = BATCH_REPLY_BYTES_HIGH + VALUE_BYTES + 64;
        assert!(answered > 0 && bytes <= most, "{answered}: {bytes}");
        left.drain(..answered);
        if left.is_empty() {
            assert!(batches > 2);
            break;
        }
    }
    let is_whole = |out: &Vec<u8>| out.len() > VALUE_BYTES && out.ends_with(b"v\r\nEND\r\n");
    assert!(outs.iter().all(is_whole));
}

#[test]
fn a_batch_stops_after_many_bytes() {
    a_batch_stops::<Erew>();
    a_batch_stops::<Crcw>();
}
