//! MICA, §4.3.3: items of mixed sizes in one space with segregated fits, and in slabs.

use std::{collections::VecDeque, fmt};

use anyhow::{Result, ensure};
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::{
    access::Erew,
    heap::{History, NewItem},
    memc3::{self, Memc3Config},
    mica_store::{self, StoreConfig},
    table::{Stored, Table, TableWriter},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{Columns, Figure, Kind, Needs, Point, Run, Spec, plot::Plot};

/// Memory of a partition in MiB.
const PARTITIONS_MIB: [usize; 4] = [8, 16, 32, 64];
/// Bytes of a value, least and most. All factors between are equally frequent.
const VALUE_BYTES: [f64; 2] = [64.0, 16_384.0];
const ITEM_BYTES_MAX: usize = 32 << 10;
/// Items that are stored have this many times the bytes of the memory.
const TURNOVERS: usize = 4;
const SEEDS: u64 = 5;
const KEY_BYTES: usize = 16;

const FITS: &str = "segregated fits";
const SLABS: &str = "slabs";
const PANEL: &str = "";
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// The figure.
pub struct Occupancy;

struct Case {
    heap: &'static str,
    mib: usize,
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {} MiB, seed {}", self.heap, self.mib, self.seed)
    }
}

impl Case {
    fn occupied_percent(&self, turnovers: usize) -> Result<f64> {
        let bytes = self.mib << 20;
        let held = match self.heap {
            FITS => {
                let config = StoreConfig {
                    bytes,
                    item_bytes_max: ITEM_BYTES_MAX,
                    hasher: Seed(self.seed).into(),
                    ..StoreConfig::default()
                };
                held(mica_store::Owner::<Erew>::new(&config)?, self, turnovers)?
            }
            _ => {
                let config = Memc3Config {
                    memory_bytes: bytes,
                    page_bytes: Memc3Config::page_bytes_for(bytes),
                    item_bytes_max: ITEM_BYTES_MAX,
                    hasher: Seed(self.seed).into(),
                    ..Memc3Config::default()
                };
                held(memc3::Owner::<Erew>::new(&config)?, self, turnovers)?
            }
        };
        Ok(100.0 * held as f64 / bytes as f64)
    }
}

fn key(number: usize) -> [u8; KEY_BYTES] {
    (number as u128).to_le_bytes()
}

/// Bytes of keys and values that a table has at the end. Where it has no room, the oldest items
/// leave: those of a store are removed, and a table that evicts does it itself.
fn held<T: Table>(mut table: T, case: &Case, turnovers: usize) -> Result<usize> {
    let seed = Seed(case.seed);
    let mut rng = SmallRng::seed_from_u64(case.seed);
    let value = vec![0; ITEM_BYTES_MAX];
    let [least, most] = VALUE_BYTES.map(f64::ln);
    let mut writer = table.enter(0);
    let (mut stored, mut offered, mut number) = (VecDeque::new(), 0, 0);
    while offered < turnovers * (case.mib << 20) {
        let value_bytes = rng.random_range(least..most).exp() as usize;
        let key = key(number);
        let item = NewItem {
            key: &key,
            value: [&value[..value_bytes], &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let keyhash = seed.keyhash(&key);
        while writer.put(keyhash, &item, NOW) == Stored::OutOfMemory {
            let oldest = stored.pop_front();
            ensure!(oldest.is_some(), "an empty table has no room for an item");
            let key = self::key(oldest.map_or(0, |(number, _)| number));
            writer.remove(seed.keyhash(&key), &key, NOW);
        }
        stored.push_back((number, KEY_BYTES + value_bytes));
        offered += KEY_BYTES + value_bytes;
        number += 1;
    }
    let is_there = |&&(number, _): &&(usize, usize)| {
        let key = key(number);
        writer.find(seed.keyhash(&key), &key, NOW).is_some()
    };
    Ok(stored.iter().filter(is_there).map(|(_, bytes)| bytes).sum())
}

impl Figure for Occupancy {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-heap",
            title: "Memory that items of mixed sizes occupy",
            source: "MICA (NSDI'14), §4.3.3; no figure",
            claim: "Segregated fits in one space make better use of a partition's memory than \
                    slabs, which give a whole block to a few items.",
            here: "A partition of store mode, which has the paper's heap, and one of MemC3's \
                   table, which has slabs. Keys and values that are there, as a share of the \
                   partition's memory with its index, after four times as many bytes were stored \
                   as it has. Values have from 64 bytes to 16 KiB, all factors between them \
                   equally often. Where the store has no room, its oldest items are removed; \
                   MemC3's table evicts, and nothing is read, so its oldest go as well. Its slabs \
                   have the pages that this server chooses, of 32 or 64 KiB. memcached's have 1 \
                   MiB, of which a partition with many classes wastes more.",
            kind: Kind::Counted,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "panel",
                series: "heap",
                x: "memory of a partition, MiB",
                y: "keys and values, % of the memory",
            },
            plot: Plot::lines(
                "memory of a partition, MiB",
                "keys and values, % of the memory",
            )
            .log_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let turnovers = run.pick(TURNOVERS, 1);
        let mut cases = Vec::new();
        for seed in 1..=run.repeat(SEEDS as usize) as u64 {
            for mib in run.pick(PARTITIONS_MIB.to_vec(), vec![PARTITIONS_MIB[0]]) {
                cases.extend([FITS, SLABS].map(|heap| Case { heap, mib, seed }));
            }
        }
        let found = run.in_parallel(&cases, Case::to_string, |case| {
            case.occupied_percent(turnovers)
        });
        for (case, percent) in cases.iter().zip(found) {
            run.add(Point::new(PANEL, case.heap, case.mib as f64, percent?));
        }
        Ok(())
    }
}
