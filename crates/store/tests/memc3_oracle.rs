//! The MemC3 table beside a plain map, in every access mode.
//!
//! Pages are small, so that segments split, slabs change hands and items take several
//! pages within a few thousand operations.

#![cfg(not(loom))]

#[path = "support/oracle.rs"]
mod oracle;

use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::memc3::{Memc3Config, Owner};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::Counts;
use oracle::{Load, SEED};

fn run<A: Access>(memory_bytes: usize, page_bytes: usize, load: Load) -> Counts {
    let config = Memc3Config {
        memory_bytes,
        page_bytes,
        item_bytes_max: load.item_bytes_max,
        pages: PagePolicy::Small,
        seed: SEED,
        ..Memc3Config::default()
    };
    let counts = oracle::run(Owner::<A>::new(&config).unwrap(), load);
    assert!(counts.in_place_updates > 0);
    counts
}

/// Items of one page and of several, in memory for a fraction of them.
fn many_sizes<A: Access>() {
    let load = Load {
        keys: 3_000,
        value_max: 2_000,
        item_bytes_max: 2_300,
        steps: 100_000,
    };
    let counts = run::<A>(160 << 10, 1 << 10, load);
    assert!(
        counts.evictions > 0 && counts.expired_reclaimed > 0,
        "{counts:?}"
    );
}

/// Segments of 24 slots in memory for all items: nothing but the expiry takes an item away.
fn a_growing_index<A: Access>() {
    let load = Load {
        keys: 2_000,
        value_max: 40,
        item_bytes_max: 340,
        steps: 100_000,
    };
    let counts = run::<A>(1 << 20, 128, load);
    assert_eq!(
        (counts.evictions, counts.index_evictions),
        (0, 0),
        "memory was meant to be ample: {counts:?}"
    );
}

/// Memory of which two of the largest items take nearly all: the index must not grow into it.
fn an_index_at_its_limit<A: Access>() {
    let load = Load {
        keys: 400,
        value_max: 8,
        item_bytes_max: 18_000,
        steps: 100_000,
    };
    let counts = run::<A>(48 << 10, 128, load);
    assert!(counts.index_evictions > 0, "{counts:?}");
}

macro_rules! in_every_mode {
    ($($name:ident;)+) => { $(
        mod $name {
            use super::*;

            #[test]
            fn erew() { super::$name::<Erew>(); }
            #[test]
            fn crew() { super::$name::<Crew>(); }
            #[test]
            fn crcw() { super::$name::<Crcw>(); }
        }
    )+ };
}

in_every_mode! {
    many_sizes;
    a_growing_index;
    an_index_at_its_limit;
}
