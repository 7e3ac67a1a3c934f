//! MemC3, Table 2: size and construction time of the index, by number of cuckoo paths.

use std::fmt;

use anyhow::Result;
use glimmer_base::Seed;

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    construct::{self, Built, Paths},
    plot::{Mark, Plot},
};

const CHAINING: &str = "chaining";
const BYTES: &str = "index bytes per key";
const LOAD: &str = "load factor, %";
const RATE: &str = "keys inserted per second";
const PLACE: &str = "";

/// MemC3's Table 2: million keys per second, bytes per key, load factor in percent (chaining has
/// none).
const PAPER: [(&str, f64, f64, Option<f64>); 4] = [
    (CHAINING, 14.38, 13.33, None),
    ("cuckoo, 1 path", 6.19, 9.49, Some(94.79)),
    ("cuckoo, 2 paths", 7.43, 9.48, Some(94.93)),
    ("cuckoo, 3 paths", 7.29, 9.46, Some(95.20)),
];

fn paper() -> Vec<Mark> {
    let mut marks = Vec::new();
    for (table, rate, bytes, load) in PAPER {
        marks.push(Mark::bar(RATE, table, PLACE, rate * 1e6));
        marks.push(Mark::bar(BYTES, table, PLACE, bytes));
        marks.extend(load.map(|load| Mark::bar(LOAD, table, PLACE, load)));
    }
    marks
}

/// The figure.
pub struct Construction;

enum Table {
    Chaining { buckets: usize },
    Cuckoo { bytes: usize, paths: Paths },
}

impl Table {
    fn build(&self, seed: u64) -> Result<Built> {
        match *self {
            Table::Chaining { buckets } => construct::chaining(buckets, Seed(seed)),
            Table::Cuckoo { bytes, paths } => construct::cuckoo(bytes, paths, Seed(seed)),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Table::Chaining { .. } => CHAINING,
            Table::Cuckoo { paths, .. } => paths.name(),
        })
    }
}

impl Figure for Construction {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-table2",
            title: "Space and construction of the index",
            source: "MemC3 (NSDI'13), Table 2, §5.2",
            claim: "Cuckoo hashing fills about 95% of its slots, whether it searches one, two or \
                    three paths at once. It takes at most 10 bytes to index a key, and chaining \
                    takes 13.33. Two paths are the fastest to build (7.43 million keys per second; \
                    one path: 6.19), and chaining is built twice as fast as any of them.",
            here: "One thread inserts keys into an index of 64 MiB until the first key finds no \
                   slot. The buckets are those of our MemC3 table. A slot takes 5 1/3 bytes, \
                   version and CLOCK bit included, and the paper's takes 9, so our index takes \
                   fewer bytes per key at the same load. Besides the paper's random paths, the \
                   figure shows the breadth-first search that our table uses. Where these indexes \
                   stop, our table splits a segment. Chaining has a larger lead here than in the \
                   paper: its keys come in the order in which their links lie in memory, and no \
                   insert waits for the bucket of another. The paper's indexes have 1.2 GB.",
            kind: Kind::Timing,
            needs: Needs::one_core(1024),
            columns: Columns {
                panel: "what",
                series: "index",
                x: "place",
                y: "value",
            },
            plot: Plot::bars("", "")
                .columns(3)
                .paper("MemC3, Table 2", paper()),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let bytes = run.pick(64 << 20, 1 << 20);
        let mut tables = vec![Table::Chaining {
            buckets: construct::slots_in(bytes).next_power_of_two() / 2,
        }];
        tables.extend(Paths::ALL.map(|paths| Table::Cuckoo { bytes, paths }));
        let slots = construct::slots_in(bytes);
        run.rounds(run.repeat(5), &mut tables, |table, _, seed| {
            let built = table.build(seed)?;
            let rate = Point::new(RATE, table.to_string(), PLACE, built.keys_per_s());
            let load = built.keys as f64 / slots as f64 * 100.0;
            Ok(rate.also(BYTES, built.bytes_per_key()).also(LOAD, load))
        })?;
        // The other columns of the table are panels of their own.
        let rows = run.data().rows.clone();
        for (name, is_shown) in [(BYTES, true), (LOAD, false)] {
            for row in rows.iter().filter(|row| is_shown || row.series != CHAINING) {
                for &value in &row.also[name] {
                    run.add(Point::new(name, row.series.clone(), PLACE, value));
                }
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let rate = data.ratio(RATE, PLACE, Paths::Breadth.name(), Paths::Random(2).name());
        shape.beside(
            "build rate of our search over two paths",
            "",
            rate.map(|ratio| ratio.text(2)),
        );
    }
}
