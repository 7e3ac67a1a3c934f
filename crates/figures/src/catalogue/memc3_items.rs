//! MemC3, §2.2, §4 and Table 3: the bytes of an item in memcached 1.4.13 and in the paper's caches.

use anyhow::Result;
use glimmer_microbench::store_alone::mirror::{
    Kind as Mirror,
    layout::{Layout, Slabs},
};

use super::memc3_table3::{CHAINING_CLOCK, CHAINING_LRU, CUCKOO_CLOCK, CUCKOO_LRU, MIRRORS};
use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
};

/// The paper's items.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 32;
const GIBIBYTE: usize = 1 << 30;

const HEADER: &str = "header with its version, bytes";
const ORDER: &str = "fields of the strict order, bytes";
const ITEM: &str = "bytes of an item";
const CHUNK: &str = "bytes of its chunk";
const STORED: &str = "items in 1 GB";
const DEFAULT: &str = "items in 1 GB, as a server starts";
const PLACE: &str = "";

/// MemC3's Table 3 at 1 GB, in million items.
const PAPER: [(&str, f64); 4] = [
    (CHAINING_LRU, 9.59),
    (CUCKOO_LRU, 10.32),
    (CHAINING_CLOCK, 12.20),
    (CUCKOO_CLOCK, 13.42),
];

fn paper() -> Vec<Mark> {
    let stored = PAPER.map(|(cache, items)| Mark::bar(STORED, cache, PLACE, items * 1e6));
    let header = [Mark::bar(HEADER, CHAINING_LRU, PLACE, 56.0)];
    let order = [Mark::bar(ORDER, CHAINING_LRU, PLACE, 18.0)];
    stored.into_iter().chain(header).chain(order).collect()
}

fn layout(mirror: Mirror, slabs: Slabs) -> Layout {
    Layout::of(mirror, KEY_BYTES, VALUE_BYTES, slabs)
}

/// The figure.
pub struct Items;

impl Figure for Items {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-items",
            title: "Bytes of an item",
            source: "MemC3 (NSDI'13), §2.2, §4, §7 and Table 3 of §5.3",
            claim: "memcached has a header of 56 bytes for each item, of which 18 keep the strict \
                    order of use. Without the pointer for chaining, 7% more items fit, without \
                    what LRU needs 27%, and without both 40%.",
            here: "Nothing runs: the compiler lays out the fields that `struct _stritem` has in \
                   memcached 1.4.13, and those that the paper's caches leave out are left out. An \
                   item has a key of 16 bytes, a value of 32, and the text that memcached stores \
                   between them. Slab classes are computed as `slabs.c` does. The benchmark of \
                   caches in the published code of MemC3 sets the first class to header and 64 \
                   bytes, and stores no versions of items. With that, the items of Table 3 follow \
                   to the last digit. As a server starts (48 bytes, and versions), the classes \
                   decide more than the fields. Our copies of the tables have chunks of the same \
                   lengths, which a test compares.",
            kind: Kind::Exact,
            needs: Needs::one_core(16),
            columns: Columns {
                panel: "what",
                series: "cache",
                x: "place",
                y: "value",
            },
            plot: Plot::bars("", "")
                .columns(3)
                .paper("MemC3, §2.2, §4 and Table 3", paper()),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        for (name, mirror) in MIRRORS {
            let of_paper = layout(mirror, Slabs::PAPER);
            let as_started = layout(mirror, Slabs::DEFAULT);
            let version = as_started.item - of_paper.item;
            for (panel, value) in [
                (HEADER, of_paper.header + version),
                (ORDER, of_paper.order),
                (ITEM, of_paper.item),
                (CHUNK, of_paper.chunk),
                (STORED, of_paper.items_in(GIBIBYTE)),
                (DEFAULT, as_started.items_in(GIBIBYTE)),
            ] {
                run.add(Point::new(panel, name, PLACE, value as f64));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let ratio = data.ratio(DEFAULT, PLACE, CUCKOO_CLOCK, CHAINING_LRU);
        shape.beside(
            "items of MemC3 over those of memcached, as a server starts",
            "",
            ratio.map(|ratio| ratio.text(2)),
        );
    }
}
