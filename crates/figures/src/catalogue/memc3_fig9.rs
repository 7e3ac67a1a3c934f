//! MemC3, Figure 9: the full system over the network, with multi-get.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
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
/// The paper's systems, built from public source: names here, programs on the search path, and
/// arguments. The index is large enough from the start, as the published code cannot enlarge it.
pub(super) const ORIGINAL: &str = "memcached 1.4.13";
pub(super) const MODIFIED: &str = "memcached 1.4.13, modified";
const PUBLISHED: &str = "MemC3, published code";
pub(super) const OF_PAPER: [(&str, &str, &[&str]); 3] = [
    (ORIGINAL, "memcached-1.4.13", &["-o", HASHPOWER]),
    (
        MODIFIED,
        "memcached-1.4.13-modified",
        &["-L", "-o", HASHPOWER],
    ),
    (PUBLISHED, "memc3", &["-o", HASHPOWER]),
];
const HASHPOWER: &str = "hashpower=21";
/// 16-byte keys and 32-byte values (MemC3 §5.3).
pub(super) const ITEMS: Items = Items {
    keys: 2_000_000,
    key_bytes: 16,
    value_bytes: 32,
};
/// Keys of a multi-get.
pub(super) const KEYS: u32 = 100;
/// Requests in flight per connection: the `set`s between two multi-gets keep the server from
/// waiting.
pub(super) const IN_FLIGHT: u32 = 4;
pub(super) const MIX: Mix = Mix::new(true, 95);
const PANEL: &str = "";
const RATE: &str = "operations per s, measured";
const KERNEL: &str = "part of the server's CPU time in the kernel";

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
                   on each, and one thread up to one for each core. Client and server share the \
                   cores. The paper's systems are judged by their throughput as measured, each at \
                   its best number of threads. The picture shows the throughput for which the \
                   server's threads have CPU time: threads divided by CPU time per key. \
                   `memcached 1.4.13` is the version on which MemC3 is based. `MemC3, published \
                   code` is its authors' server, commit 84475d1 of \
                   [efficient/memc3](https://github.com/efficient/memc3), with four changes. It \
                   asks the kernel for huge pages, where it takes reserved ones. Its threads have \
                   the cores from the first on, where they have those from the seventh on. A \
                   writer takes a lock, as the paper says; the code as published lets writers of \
                   several threads race. And a replaced item is freed 65,536 writes later. The \
                   code as published frees it while replies refer to it, as it counts no \
                   references, and then sends wrong bytes: our client, which reads every reply, \
                   ended the measurement. The paper's own modified memcached is not public. \
                   `memcached 1.4.13, modified` has the published code's comparison of keys by \
                   words, huge pages, and a core for each thread. These three are built with \
                   `-O2 -DNDEBUG` and start with an index for all keys. `memcached` is the newest. \
                   `glimmer memc3` has MemC3's table in our server (`--table memc3`), \
                   `glimmer crcw` has MICA's. `memc3-shards` has memcached in several instances.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: THREADS_MAX,
                memory_mib: 10_000,
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
                    vec![Mark::point(PANEL, PUBLISHED, 1.0, 4.4e6 / 16.0)],
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
        let mut systems = systems::installed(all, run);
        for (name, program, arguments) in OF_PAPER {
            let system = System::build(name, program, run);
            systems.extend(system.map(|system| system.arguments(arguments)));
        }
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
            let (outcome, kernel) = case.server.measure_in_parts(plan)?;
            let (server, capacity) = (case.server, case.server.capacity_per_s(&outcome));
            let threads = server.threads() as f64;
            let point = Point::new(PANEL, server.name(), threads, capacity);
            let point = point.also(RATE, outcome.operations_per_s());
            Ok(point.also(KERNEL, kernel))
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for system in OURS {
            let ratio =
                |row: &Row| Some(data.ratio(PANEL, row.x.clone(), system, MEMCACHED)?.median);
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
        for (above, below) in [
            (PUBLISHED, ORIGINAL),
            (MODIFIED, ORIGINAL),
            (PUBLISHED, MEMCACHED),
            (OURS[1], PUBLISHED),
            (OURS[1], MEMCACHED),
        ] {
            let ratio = |value: fn(&Row) -> Option<f64>| {
                let best = |system| data.line(PANEL, system).filter_map(value).reduce(f64::max);
                Some(best(above)? / best(below)?)
            };
            let measured = ratio(|row| row.also(RATE));
            let by_cpu_time = ratio(|row| Some(row.spread().median));
            shape.beside(
                &format!("{above} over {below}, each at its best: as measured, by CPU time"),
                "",
                measured
                    .zip(by_cpu_time)
                    .map(|(measured, cpu)| format!("{measured:.2}, {cpu:.2}")),
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
