//! The MICA partition beside a plain map, in every access mode and under every eviction rule.

#![cfg(not(loom))]

#[path = "support/oracle.rs"]
mod oracle;

use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{ApproxLru, Evict, Fifo, S3Fifo};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::{Owner, PartitionConfig};
use oracle::{Load, SEED};

struct Sizes {
    load: Load,
    log_bytes: usize,
    buckets: usize,
    spares: usize,
    offset_bits: u32,
}

fn load(keys: u32, value_max: usize) -> Load {
    Load {
        keys,
        value_max,
        item_bytes_max: value_max + 300,
        steps: 0,
    }
}

fn run<A: Access, E: Evict>(sizes: Sizes, rule: E, steps: u32) {
    let config = PartitionConfig {
        log_bytes: sizes.log_bytes,
        main_buckets: sizes.buckets,
        spare_buckets: sizes.spares,
        item_bytes_max: sizes.load.item_bytes_max,
        offset_bits: sizes.offset_bits,
        pages: PagePolicy::Small,
        numa_node: None,
        seed: SEED,
    };
    let load = Load {
        steps,
        ..sizes.load
    };
    let counts = oracle::run(Owner::<A, E>::new(&config, rule).unwrap(), load);
    assert!(
        counts.evictions + counts.index_evictions > 0,
        "the cache was full: {counts:?}"
    );
    assert!(counts.in_place_updates > 0 || E::NAME == "lru");
    if sizes.offset_bits < 20 {
        assert!(
            counts.stale_removed > 100,
            "the scan removed what dangled: {counts:?}"
        );
    }
    if sizes.buckets < 20 {
        assert!(
            counts.index_evictions > 0 && counts.spares_used > 0,
            "the index overflowed: {counts:?}"
        );
    }
}

/// A small log with a roomy index: eviction at the head does the work.
fn small_log() -> Sizes {
    Sizes {
        load: load(3_000, 2_000),
        log_bytes: 128 << 10,
        buckets: 400,
        spares: 50,
        offset_bits: 44,
    }
}

/// An index that is far too small: chains, spare buckets and evictions from the index.
fn small_index() -> Sizes {
    Sizes {
        load: load(3_000, 100),
        log_bytes: 256 << 10,
        buckets: 8,
        spares: 24,
        offset_bits: 44,
    }
}

/// Offsets so narrow that they start again every four laps of the log.
fn narrow_offsets() -> Sizes {
    Sizes {
        load: load(1_000, 300),
        log_bytes: 64 << 10,
        buckets: 60,
        spares: 30,
        offset_bits: 15,
    }
}

macro_rules! in_every_mode_and_rule {
    ($($name:ident: $sizes:expr, $steps:expr;)+) => { $(
        mod $name {
            use super::*;

            #[test]
            fn erew_fifo() { run::<Erew, _>($sizes, Fifo, $steps); }
            #[test]
            fn erew_lru() { run::<Erew, _>($sizes, ApproxLru::new(0.5), $steps); }
            #[test]
            fn erew_s3fifo() { run::<Erew, _>($sizes, S3Fifo, $steps); }
            #[test]
            fn crew_fifo() { run::<Crew, _>($sizes, Fifo, $steps); }
            #[test]
            fn crew_lru() { run::<Crew, _>($sizes, ApproxLru::new(0.0), $steps); }
            #[test]
            fn crew_s3fifo() { run::<Crew, _>($sizes, S3Fifo, $steps); }
            #[test]
            fn crcw_fifo() { run::<Crcw, _>($sizes, Fifo, $steps); }
            #[test]
            fn crcw_lru() { run::<Crcw, _>($sizes, ApproxLru::new(0.9), $steps); }
            #[test]
            fn crcw_s3fifo() { run::<Crcw, _>($sizes, S3Fifo, $steps); }
        }
    )+ };
}

in_every_mode_and_rule! {
    a_log_that_wraps: small_log(), 100_000;
    an_index_that_overflows: small_index(), 100_000;
    offsets_that_wrap: narrow_offsets(), 200_000;
}
