//! MemC3, Figure 9: the full system over the network, with multi-get.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
    systems::{self, Items, Running, System},
    workload::Mix,
};

/// Threads of the paper's figure.
const THREADS_MAX: usize = 16;
const PEERS: [Server; 1] = [Server::Memcached];
/// MICA's table and MemC3's.
const OURS: [&str; 2] = ["glimmer crcw", "glimmer memc3"];
const MEMCACHED: &str = "memcached";
/// 16-byte keys and 32-byte values (MemC3 §5.3).
const ITEMS: Items = Items {
    keys: 2_000_000,
    key_bytes: 16,
    value_bytes: 32,
};
/// Keys of a multi-get.
const KEYS: u32 = 100;
/// Requests in flight per connection: the `set`s between two multi-gets keep the server from
/// waiting.
const IN_FLIGHT: u32 = 4;
const MIX: Mix = Mix::new(true, 95);
const PANEL: &str = "";
const RATE: &str = "operations per s, measured";

/// The figure.
pub struct FullSystem;

struct Case<'a> {
    server: &'a Running,
    items: Items,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {} threads", self.server, self.server.threads())
    }
}

impl Figure for FullSystem {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-fig9",
            title: "Full system over the network, 100 keys per get, by server threads",
            source: "MemC3 (NSDI'13), Figure 9, §5.4",
            claim: "With 95% GETs in batches of 100 and 5% SETs, Zipf-distributed keys of 16 bytes \
                    and values of 32, MemC3 reaches 4.4 Mops, almost 3 times the original \
                    Memcached's 1.5. Memcached sharded over the cores does worst, because hot keys \
                    load one shard more than the others.",
            here: "The same mix over TCP on loopback, with 50 connections and 4 requests in flight \
                   on each, and one thread up to one for each core. `glimmer memc3` uses MemC3's \
                   table (`--table memc3`), `glimmer crcw` uses MICA's. Client and server share \
                   the cores, so the figure shows the throughput for which the server's threads \
                   have CPU time: threads divided by CPU time per key. Sharding needs a client \
                   that splits its multi-gets and is left out.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: THREADS_MAX,
                memory_mib: 4500,
                peers: &PEERS,
            },
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "server threads",
                y: "keys per s",
            },
            plot: Plot::lines("server threads", "keys per second")
                .whole_x()
                .paper(
                    "MemC3 §5.4, for one thread: 4.4 million with 16 threads",
                    vec![Mark::point(PANEL, OURS[1], 1.0, 4.4e6 / 16.0)],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let all = vec![
            System::glimmer("crcw"),
            System::memc3(),
            System::peer(Server::Memcached),
        ];
        let systems = systems::installed(all, run);
        let mut servers = Vec::new();
        for count in systems::thread_counts(run.cores().min(THREADS_MAX)) {
            for system in &systems {
                servers.push(system.clone().threads(count).start(run, items)?);
            }
        }
        let case = |server| Case { server, items };
        let mut cases: Vec<Case<'_>> = servers.iter().map(case).collect();
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let pace = Pace::Closed {
                in_flight: IN_FLIGHT,
            };
            let plan = Plan {
                seed,
                ..MIX.plan(run, case.items, KEYS, pace, 700)
            };
            let outcome = case.server.measure(plan)?;
            let (server, capacity) = (case.server, case.server.capacity_per_s(&outcome));
            let threads = server.threads() as f64;
            let point = Point::new(PANEL, server.name(), threads, capacity);
            Ok(point.also(RATE, outcome.operations_per_s()))
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for system in OURS {
            let ratio = |row: &crate::Row| {
                Some(data.ratio(PANEL, row.x.clone(), system, MEMCACHED)?.median)
            };
            let ratios: Option<Vec<f64>> = data.line(PANEL, system).map(ratio).collect();
            shape.at_least(
                &format!(
                    "{system}: throughput by CPU time over memcached, least favourable number of \
                     threads"
                ),
                "",
                ratios.and_then(|ratios| ratios.into_iter().reduce(f64::min)),
                2.0,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(ours: f64, theirs: &[f64]) -> usize {
        let mut data = Data::default();
        for (threads, theirs) in [1.0, 2.0].into_iter().zip(theirs) {
            for system in OURS {
                data.add(Point::new(PANEL, system, threads, ours * threads));
            }
            data.add(Point::new(PANEL, MEMCACHED, threads, *theirs));
        }
        FullSystem.judged(&data).failures().count()
    }

    #[test]
    fn three_times_holds_and_less_than_two_anywhere_does_not() {
        assert_eq!(failures(3.0, &[1.0, 2.0]), 0);
        assert_eq!(failures(3.0, &[1.0, 4.0]), 2);
        assert_eq!(failures(1.0, &[1.0, 2.0]), 2);
        // Without memcached there is nothing to compare with.
        assert_eq!(failures(3.0, &[]), 0);
    }
}
