//! Real threads on one MICA partition.

#![cfg(not(loom))]

#[path = "support/stress.rs"]
mod stress;

use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::evict::{ApproxLru, Evict, Fifo, S3Fifo};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::{Owner, PartitionConfig};
use stress::SEED;

fn run<A: Access, E: Evict>(rule: E, writers: usize) {
    let config = PartitionConfig {
        log_bytes: 96 << 10,
        main_buckets: 40,
        spare_buckets: 6,
        item_bytes_max: 4_000,
        pages: PagePolicy::Small,
        seed: SEED,
        ..PartitionConfig::default()
    };
    let counts = stress::run(Owner::<A, E>::new(&config, rule).unwrap(), writers);
    assert!(counts.evictions > 0);
}

#[test]
fn crew_fifo() {
    run::<Crew, _>(Fifo, 1);
}

#[test]
fn crew_lru() {
    run::<Crew, _>(ApproxLru::new(0.3), 1);
}

#[test]
fn crew_s3fifo() {
    run::<Crew, _>(S3Fifo, 1);
}

#[test]
fn crcw_fifo() {
    run::<Crcw, _>(Fifo, 3);
}

#[test]
fn crcw_lru() {
    run::<Crcw, _>(ApproxLru::new(0.3), 3);
}

#[test]
fn crcw_s3fifo() {
    run::<Crcw, _>(S3Fifo, 3);
}
