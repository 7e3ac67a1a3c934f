//! MemC3, Table 2: slots, bytes and the largest bucket of an index whose slots are the paper's.

use std::fmt;

use anyhow::{Result, ensure};
use glimmer_base::Seed;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec, construct,
    paper_index::{PaperIndex, Second},
    plot::{Mark, Plot},
};

/// Slots of the cuckoo index, and buckets of the chained one: a 128th of the paper's.
const SLOTS: usize = 1 << 20;
const BUCKETS: usize = 1 << 19;
/// Buckets of the paper's chained table. Its longest chain depends on their number.
const BUCKETS_OF_PAPER: usize = 1 << 26;
const REPETITIONS: usize = 3;

const CHAINING: &str = "chaining";
const BYTES: &str = "index bytes per key";
const SIZE: &str = "index bytes";
const KEYS: &str = "keys";
const LOAD: &str = "load factor, %";
const LARGEST: &str = "items of the largest bucket";
/// Slots of a bucket, as places on the horizontal axis.
const ONE: &str = "1 slot";
const FOUR: &str = "4 slots";
const CHAIN: &str = "a chain";

/// MemC3's Table 2: bytes per key, load factor in percent (chaining has none), largest bucket.
const PAPER: [(&str, f64, Option<f64>, f64); 4] = [
    (CHAINING, 13.33, None, 13.0),
    ("cuckoo, 1 path", 9.49, Some(94.79), 4.0),
    ("cuckoo, 2 paths", 9.48, Some(94.93), 4.0),
    ("cuckoo, 3 paths", 9.46, Some(95.20), 4.0),
];

fn paper() -> Vec<Mark> {
    let mut marks = Vec::new();
    for (table, bytes, load, largest) in PAPER {
        let place = if load.is_some() { FOUR } else { CHAIN };
        marks.push(Mark::bar(BYTES, table, place, bytes));
        marks.push(Mark::bar(LARGEST, table, place, largest));
        marks.extend(load.map(|load| Mark::bar(LOAD, table, place, load)));
    }
    marks
}

/// The figure.
pub struct IndexSize;

/// An index to be filled.
#[derive(Clone, Copy)]
enum Table {
    /// For its size, and for its longest chain.
    Chaining { buckets: usize, longest: usize },
    /// With this many slots in a bucket, searching this many paths at once.
    Cuckoo {
        slots: usize,
        per_bucket: usize,
        paths: usize,
        second: Second,
    },
}

impl Table {
    fn series(&self) -> String {
        match self {
            Table::Chaining { .. } => CHAINING.to_owned(),
            Table::Cuckoo { paths: 1, .. } => "cuckoo, 1 path".to_owned(),
            Table::Cuckoo {
                paths,
                second: Second::FromTag,
                ..
            } => format!("cuckoo, {paths} paths"),
            Table::Cuckoo { .. } => "cuckoo, 2 hashes of the key".to_owned(),
        }
    }

    fn place(&self) -> &'static str {
        match self {
            Table::Chaining { .. } => CHAIN,
            Table::Cuckoo { per_bucket: 1, .. } => ONE,
            Table::Cuckoo { .. } => FOUR,
        }
    }

    fn fill(&self, seed: u64) -> Result<Vec<Point>> {
        match *self {
            Table::Chaining { buckets, longest } => {
                let built = construct::chaining(buckets, Seed(seed))?;
                let largest = construct::longest_chain(longest, Seed(seed));
                let mut points = self.size(built.keys, built.bytes);
                points.push(self.point(LARGEST, largest as f64));
                Ok(points)
            }
            Table::Cuckoo {
                slots,
                per_bucket: 1,
                paths,
                second,
            } => self.fill_cuckoo(PaperIndex::<1>::new(slots, second, Seed(seed)), paths),
            Table::Cuckoo {
                slots,
                per_bucket,
                paths,
                second,
            } => {
                let buckets = slots / per_bucket;
                self.fill_cuckoo(PaperIndex::<4>::new(buckets, second, Seed(seed)), paths)
            }
        }
    }

    fn fill_cuckoo<const PER_BUCKET: usize>(
        &self,
        mut index: PaperIndex<PER_BUCKET>,
        paths: usize,
    ) -> Result<Vec<Point>> {
        let keys = index.fill(paths);
        // Every key has to be where a lookup finds it, after all that were moved.
        ensure!(
            (0..keys as u64).all(|key| index.contains(key)),
            "{self} has lost a key"
        );
        let mut points = self.size(keys, index.bytes());
        let load = keys as f64 / index.slots() as f64 * 100.0;
        points.push(self.point(LOAD, load));
        points.push(self.point(LARGEST, PER_BUCKET as f64));
        Ok(points)
    }

    fn size(&self, keys: usize, bytes: usize) -> Vec<Point> {
        let per_key = bytes as f64 / keys as f64;
        [(BYTES, per_key), (KEYS, keys as f64), (SIZE, bytes as f64)]
            .map(|(panel, value)| self.point(panel, value))
            .into()
    }

    fn point(&self, panel: &str, value: f64) -> Point {
        Point::new(panel, self.series(), self.place(), value)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.series(), self.place())
    }
}

fn tables(run: &Run<'_>) -> Vec<Table> {
    let slots = run.pick(SLOTS, 1 << 12);
    let cuckoo = |per_bucket, paths, second| Table::Cuckoo {
        slots,
        per_bucket,
        paths,
        second,
    };
    let mut tables = vec![Table::Chaining {
        buckets: run.pick(BUCKETS, 1 << 10),
        longest: run.pick(BUCKETS_OF_PAPER, 1 << 10),
    }];
    tables.extend((1..=3).map(|paths| cuckoo(4, paths, Second::FromTag)));
    tables.push(cuckoo(1, 2, Second::FromTag));
    tables.push(cuckoo(1, 2, Second::FromKey));
    tables
}

impl Figure for IndexSize {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-index",
            title: "Bytes and slots of the paper's index",
            source: "MemC3 (NSDI'13), Table 2, §5.2, and §3",
            claim: "Chaining takes 13.33 bytes to index a key and has a bucket of 13 items. Cuckoo \
                    hashing takes at most 9.49, in 0.9 times the memory and with at least 20% more \
                    items. With one slot in a bucket it would fill only half of its table.",
            here: "An index with the paper's slots, a tag of one byte and a reference of eight, \
                   takes keys until one finds no slot after 500 displacements. It has a million \
                   slots, a 128th of the paper's, and the chained index has the same part of the \
                   paper's buckets. The longest chain depends on the number of buckets, so it is \
                   counted over all 67 million. Then every key is looked up. With one slot in a \
                   bucket, a key's second bucket follows from its tag, as in MemC3, or from a \
                   second hash, as in basic cuckoo hashing. The published code of MemC3 leaves \
                   four bytes of a bucket unused, so it takes 10 bytes a slot, and our copy of \
                   the table in the other figures too; the paper counts 9.",
            kind: Kind::Counted,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "what",
                series: "index",
                x: "bucket",
                y: "value",
            },
            plot: Plot::bars("", "")
                .columns(3)
                .paper("MemC3, Table 2", paper()),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let repeat = run.repeat(REPETITIONS);
        let mut tables = tables(run);
        run.rounds_of_many(repeat, &mut tables, |table, _, seed| table.fill(seed))
    }
}
