//! MICA, Figure 10: end-to-end throughput by system, dataset, skew and share of reads.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Mark, Plot},
    systems::{self, Items, Running, System},
    workload::Mix,
};

/// Datasets (MICA §5.1) with far fewer items than the paper's. Storing them through a socket takes
/// minutes, and their indexes still exceed a core's private caches.
const DATASETS: [(&str, Items); 3] = [
    ("tiny", Items::tiny(2_000_000)),
    (
        "small",
        Items {
            keys: 1_000_000,
            key_bytes: 16,
            value_bytes: 64,
        },
    ),
    (
        "large",
        Items {
            keys: 200_000,
            key_bytes: 128,
            value_bytes: 1024,
        },
    ),
];
const QUICK_KEYS: u64 = 2000;
const PEERS: [Server; 4] = [
    Server::Memcached,
    Server::Redis,
    Server::Pogocache,
    Server::Masstree,
];
const OURS: [&str; 3] = ["glimmer erew", "glimmer crew", "glimmer crcw"];
pub(super) const CLIENT_BUSY: &str = "client busy";

/// MICA's throughput in Mops for these workloads: the lowest and highest values in the text.
const PAPER: [(&str, &str, f64, f64); 8] = [
    ("tiny", "uniform, 50% GET", 76.9, 76.9),
    ("tiny", "uniform, 95% GET", 75.5, 75.5),
    ("tiny", "skewed, 50% GET", 70.4, 70.4),
    ("tiny", "skewed, 95% GET", 65.6, 65.6),
    ("large", "uniform, 50% GET", 12.6, 14.6),
    ("large", "uniform, 95% GET", 8.6, 9.4),
    ("large", "skewed, 50% GET", 12.6, 14.6),
    ("large", "skewed, 95% GET", 8.6, 9.4),
];

fn paper() -> Vec<Mark> {
    let of_one_core = |mops: f64| mops * 1e6 / 16.0;
    let mark = |(dataset, workload, least, most)| {
        Mark::bar(dataset, OURS[0], workload, of_one_core(least)).to(of_one_core(most))
    };
    PAPER.map(mark).into()
}

pub(super) const COLUMNS: Columns = Columns {
    panel: "dataset",
    series: "system",
    x: "workload",
    y: "operations per s",
};

/// The figure.
pub struct EndToEnd;

/// One bar.
pub(super) struct Case<'a> {
    pub server: &'a Running,
    pub dataset: &'static str,
    pub items: Items,
    pub mix: Mix,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}: {}", self.dataset, self.mix, self.server)
    }
}

impl Figure for EndToEnd {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig10",
            title: "End-to-end throughput by system, dataset, skew and share of reads",
            source: "MICA (NSDI'14), Figure 10, §5.2",
            claim: "MICA performs best, regardless of the skew and the share of GETs. On tiny \
                    items it reaches 75.5–76.9 Mops with uniform keys and 65.6–70.5 with skewed \
                    keys, so skew costs at most 14%. The next best system reaches 16.5 Mops, and \
                    Memcached less than 6.1. MICA's lead shrinks with large items, because the \
                    network limits MICA and not the other systems.",
            here: "One worker runs on one core and one client on another. They speak memcached's \
                   text protocol (Redis: RESP; Masstree: that of its own server `mtd`, which runs \
                   without its log) over TCP on loopback, with 50 connections and 32 requests in \
                   flight on each. The paper uses 16 cores, Ethernet without the \
                   kernel, and one request per packet. Items have the paper's sizes, but there are \
                   fewer of them (2, 1 and 0.2 million). With one worker, the access modes differ \
                   only in the cost of synchronisation; `mica-fig16` measures several workers. The \
                   column `client busy` of the data shows where the client was nearly always busy. \
                   There the client is the limit, and our real lead is larger than the figure \
                   shows.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 4096,
                peers: &PEERS,
            },
            columns: COLUMNS,
            plot: Plot::bars("", "operations per second").columns(1).paper(
                "MICA, EREW, §5.2 and Tables 1 and 2, for one of its 16 cores: 76.9, 75.5, 70.4 \
                 and 65.6 Mops with tiny items, 12.6 to 14.6 and 8.6 to \
                 9.4 with large ones",
                paper(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let ours = ["erew", "crew", "crcw"].map(System::glimmer);
        let all = ours.into_iter().chain(PEERS.map(System::peer)).collect();
        let systems = systems::installed(all, run);
        for (dataset, full) in DATASETS {
            let items = run.pick(full, full.only(QUICK_KEYS));
            let start = |system: &System| system.start(run, items);
            let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
            let mut cases: Vec<Case<'_>> = Mix::ALL
                .into_iter()
                .flat_map(|mix| {
                    servers.iter().map(move |server| Case {
                        server,
                        dataset,
                        items,
                        mix,
                    })
                })
                .collect();
            run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
                let outcome = case
                    .server
                    .measure(case.mix.saturating(run, case.items, 500, seed))?;
                let rate = outcome.operations_per_s();
                let point =
                    Point::new(case.dataset, case.server.name(), case.mix.to_string(), rate);
                Ok(point.also(CLIENT_BUSY, outcome.client_busy()))
            })?;
        }
        Ok(())
    }
}
