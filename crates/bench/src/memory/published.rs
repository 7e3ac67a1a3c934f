//! `glimmer bench memory --published`: bytes per item at the sizes of published workloads.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::footprint::{self, Options, payload_bytes};
use glimmer_comparisons::servers::Contender;
use glimmer_loadgen::workload::{Sizes, Workload};
use glimmer_measure::report::Table;
use glimmer_microbench::segcache_kept::{self, Kept};
use serde::Serialize;

/// Length of a key in bytes.
const KEY_BYTES: usize = 20;
/// Lengths of values in bytes, from small to large among those of Twitter's clusters (Yang et al.,
/// OSDI'20).
const VALUE_BYTES: [u32; 4] = [10, 50, 230, 1_000];
/// Items are stored for this many times the memory.
const OVERFILL: f64 = 1.3;
/// Bytes per item beside key and value, to guess how many slots segcache's index wants.
const SLOT_GUESS_BYTES: f64 = 14.0;

/// One workload's sizes, and what they cost.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    payload_bytes: f64,
    /// By server: bytes per item.
    servers: Vec<(String, f64)>,
    segcache: Kept,
}

/// The table.
#[derive(Debug, Serialize)]
pub struct Report {
    memory_mib: usize,
    rows: Vec<Row>,
}

/// Fills the servers, and segcache, with items of each size.
pub fn run(
    servers: &[Contender],
    memory_mib: usize,
    glimmer_arguments: &[String],
    progress: &dyn Fn(&str),
) -> Result<Report> {
    let memory_bytes = memory_mib << 20;
    let mut rows = Vec::new();
    for (name, like) in shapes()? {
        progress(&format!("{name}:"));
        let payload = payload_bytes(&like, 1_000_000);
        let items = (memory_bytes as f64 / payload * OVERFILL) as u32;
        let report = footprint::run(
            &Options {
                servers: servers.to_vec(),
                items,
                first: 0,
                like: like.clone(),
                memory_mib,
                glimmer_arguments: glimmer_arguments.to_vec(),
            },
            progress,
        )?;
        let servers = report.bytes_per_item();
        let servers = servers
            .map(|(name, bytes)| (name.to_owned(), bytes))
            .collect();
        // The index has a power of two slots. The better of two sizes counts.
        let wanted = memory_bytes as f64 / (payload + SLOT_GUESS_BYTES);
        let power = wanted.log2().ceil() as u8;
        let mut best: Option<Kept> = None;
        for power in [power, power + 1] {
            progress(&format!(
                "segcache: storing {items} items, index of 2^{power} slots"
            ));
            let kept = segcache_kept::fill(memory_bytes, power, &like, items)?;
            let is_better = |best: &Kept| kept.bytes_per_item() < best.bytes_per_item();
            if best.as_ref().is_none_or(is_better) {
                best = Some(kept);
            }
        }
        rows.push(Row {
            name,
            payload_bytes: payload,
            servers,
            segcache: best.expect("two sizes were tried"),
        });
    }
    Ok(Report { memory_mib, rows })
}

/// The sizes of the workloads.
fn shapes() -> Result<Vec<(String, Workload)>> {
    let fixed = VALUE_BYTES.map(|bytes| {
        let like = Workload {
            key_bytes: KEY_BYTES,
            sizes: Sizes::Fixed(bytes),
            ..Workload::default()
        };
        (format!("{KEY_BYTES} + {bytes} bytes"), like)
    });
    let etc = Workload::preset("etc", None).map_err(anyhow::Error::msg)?;
    // Large values are as rare as one key in thousands, and would be stored last.
    let Sizes::Trimodal { large_max, .. } = etc.sizes else {
        anyhow::bail!("ETC has three classes of sizes");
    };
    let etc = Workload {
        sizes: Sizes::Trimodal {
            large_from: u64::MAX,
            large_max,
        },
        ..etc
    };
    let name = format!("ETC: {} + 1 to 1,400 bytes", etc.key_bytes);
    Ok(fixed.into_iter().chain([(name, etc)]).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "Bytes by which a process has grown for each item that it kept, in {} MiB. ETC is \
             Facebook's pool as Minos models it, without its large values. segcache is Pelikan's, \
             as a library in this process; its index has the better of two sizes.\n",
            self.memory_mib
        )?;
        let names = self.rows.first().map_or(&[][..], |row| &row.servers);
        let names = names.iter().map(|(name, _)| name.clone());
        let mut table = Table::new(
            ["key + value".to_owned(), "of them payload".to_owned()]
                .into_iter()
                .chain(names)
                .chain(["segcache".to_owned(), "first over segcache".to_owned()]),
        );
        for row in &self.rows {
            let segcache = row.segcache.bytes_per_item();
            let first = row.servers.first().map_or(0.0, |&(_, bytes)| bytes);
            let servers = row.servers.iter().map(|(_, bytes)| format!("{bytes:.1}"));
            table.row(
                [row.name.clone(), format!("{:.1}", row.payload_bytes)]
                    .into_iter()
                    .chain(servers)
                    .chain([format!("{segcache:.1}"), format!("{:.3}", first / segcache)]),
            );
        }
        write!(out, "{table}")
    }
}
