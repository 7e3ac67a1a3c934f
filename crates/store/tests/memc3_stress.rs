//! Real threads on one MemC3 table.

#![cfg(not(loom))]

#[path = "support/stress.rs"]
mod stress;

use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::memc3::{Memc3Config, Owner};
use glimmer_store::memory::PagePolicy;
use stress::SEED;

/// Pages of two lines: items move, segments split and slabs change hands all the time.
fn run<A: Access>(writers: usize) {
    let config = Memc3Config {
        memory_bytes: 40 << 10,
        page_bytes: 128,
        item_bytes_max: 4_000,
        pages: PagePolicy::Small,
        seed: SEED,
        ..Memc3Config::default()
    };
    let counts = stress::run(Owner::<A>::new(&config).unwrap(), writers);
    assert!(counts.evictions > 0);
}

#[test]
fn crew() {
    run::<Crew>(1);
}

#[test]
fn crcw() {
    run::<Crcw>(3);
}
