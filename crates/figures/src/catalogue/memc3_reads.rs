//! MemC3, §3 and §3.1, and MICA, §4.3.3: what a lookup reads, by kind of index.

use anyhow::Result;
use glimmer_base::Seed;
use glimmer_microbench::store_alone::mirror::{self, IndexKind, Read};

use super::mica_index;
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec, construct,
    plot::{Mark, Plot},
};

const ITEMS: u32 = 400_000;
/// Main buckets of bulk chaining, with 15 entries each.
const MAINS: usize = 20_000;
/// The paper's share of spare buckets.
const SPARES_PERCENT: usize = 10;

const CHAINING: &str = "chaining";
const NAIVE: &str = "cuckoo, no tags";
const TAGS: &str = "cuckoo, tags";
const BULK: &str = "bulk chaining";
const BUCKETS: &str = "buckets";
const LINES: &str = "cache lines of the index";
const ITEMS_READ: &str = "items";
const MOST: &str = "items of one lookup, at most";
const WAITS: &str = "reads that wait for another";
/// Items of a chain on average, and the buckets of a table with such chains.
const PER_CHAIN: [f64; 5] = [0.5, 1.0, 1.5, 3.0, 6.0];
const CHAINS: usize = 1 << 16;
const BY_LENGTH: &str = "items, by items per bucket";
const BYTES: &str = "index bytes per key, by items per bucket";
/// The keys that are looked up.
const KEYS: [&str; 2] = ["there", "not there"];

fn paper() -> Vec<Mark> {
    let [there, not_there] = KEYS;
    vec![
        Mark::bar(LINES, TAGS, there, 2.0),
        Mark::bar(LINES, TAGS, not_there, 2.0),
        Mark::bar(ITEMS_READ, TAGS, there, 1.03),
        Mark::bar(ITEMS_READ, TAGS, not_there, 0.03),
        Mark::bar(MOST, NAIVE, not_there, 8.0),
        Mark::bar(BUCKETS, BULK, there, 1.0),
        Mark::bar(BUCKETS, TAGS, there, 1.5),
    ]
}

/// The figure.
pub struct Lookups;

/// What lookups of all keys read in chains of this many items on average, and what a key takes of
/// the index: its pointer to the next, and its part of the pointers of all buckets.
fn by_length(run: &mut Run<'_>, per_chain: f64) {
    let buckets = run.pick(CHAINS, 1 << 10);
    let keys = (buckets as f64 * per_chain) as usize;
    let lengths = construct::chain_lengths(buckets, keys, Seed(1));
    // The first item of a chain is found with one read, the next with two.
    let each = lengths.iter().map(|&length| u64::from(length));
    let items: u64 = each.map(|length| length * (length + 1) / 2).sum();
    let per_lookup = items as f64 / keys as f64;
    let bytes = size_of::<u64>() as f64 * (buckets + keys) as f64 / keys as f64;
    let place = per_chain.to_string();
    run.add(Point::new(BY_LENGTH, CHAINING, place.as_str(), per_lookup));
    run.add(Point::new(BYTES, CHAINING, place, bytes));
}

fn add(run: &mut Run<'_>, series: &str, reads: [Read; 2]) {
    for (keys, read) in KEYS.into_iter().zip(reads) {
        for (panel, value) in [
            (BUCKETS, read.buckets),
            (LINES, read.lines),
            (ITEMS_READ, read.items),
            (MOST, read.items_most.into()),
            (WAITS, read.waits),
        ] {
            run.add(Point::new(panel, series, keys, value));
        }
    }
}

impl Figure for Lookups {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-reads",
            title: "What a lookup reads, by kind of index",
            source: "MemC3 (NSDI'13), §3 and §3.1; MICA (NSDI'14), §4.3.3; no figure",
            claim: "MemC3: A lookup reads two cache lines of buckets, and then follows 1.03 \
                    references if the key is there and 0.03 if it is not. Without tags it follows \
                    up to eight, and in a chain one for each key. MICA: A lookup by bulk chaining \
                    reads about one bucket, where cuckoo hashing reads 1.5.",
            here: "The copies of MemC3's tables tell what their lookups read, while every key is \
                   looked up once, and as many that are not there. Each is as full as it may be: \
                   1.5 items in a chain, 93% of the slots of cuckoo hashing. A bucket of the \
                   copies has 40 bytes, as in the published code of MemC3, and half of them lie on \
                   two cache lines: its tags on one, and the reference that is followed on that or \
                   the next. A lookup that finds its key in the first bucket does not go to the \
                   second. Bulk chaining is the index of `mica-index` with 10% of spare buckets, \
                   all of which are used; a main bucket has two cache lines, and every lookup \
                   reads both. An item waits for the read that names it, and so does the next \
                   bucket of a chain. References of one bucket can be followed at the same time, \
                   so they count as one wait. The last panels have chains of other lengths.",
            kind: Kind::Counted,
            needs: Needs::one_core(1024),
            columns: Columns {
                panel: "per lookup",
                series: "index",
                x: "keys",
                y: "count",
            },
            plot: Plot::bars("keys", "per lookup").columns(3).paper(
                "MemC3, §3.1; MICA, §4.3.3, for the buckets of bulk chaining and cuckoo hashing",
                paper(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 8_000);
        for (series, index) in [
            (CHAINING, IndexKind::Chaining),
            (NAIVE, IndexKind::Cuckoo),
            (TAGS, IndexKind::CuckooTags),
        ] {
            run.say(series);
            let (reads, per_bucket) = mirror::lookups(index, items)?;
            add(run, series, reads);
            run.add(Point::new("items per bucket", series, "", per_bucket));
        }
        let mains = run.pick(MAINS, 500);
        let bulk = mica_index::lookups(mains, SPARES_PERCENT, Seed(1))?;
        add(run, BULK, bulk);
        for per_chain in PER_CHAIN {
            by_length(run, per_chain);
        }
        Ok(())
    }
}
