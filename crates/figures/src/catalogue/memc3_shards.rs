//! MemC3, Figure 9: memcached in one instance per core, from the most loaded of them.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::{Pace, Plan};

use super::memc3_fig9::{IN_FLIGHT, ITEMS, KEYS, MIX, MODIFIED, OF_PAPER, ORIGINAL};
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::Plot,
    systems::{Items, Running, System},
    workload::Hottest,
};

/// Instances, up to the paper's number of cores.
const SHARDS: [u32; 4] = [1, 2, 4, 16];
const PANEL: &str = "";
const SHARE: &str = "share of the most loaded instance";
const PER_GET: &str = "keys per get";
const CPU_NS: &str = "server CPU per key, ns";

/// The figure.
pub struct Sharding;

enum Case<'a> {
    /// One server with several threads.
    Whole { server: &'a Running, items: Items },
    /// The most loaded of several servers with one thread each.
    Sharded {
        server: &'a Running,
        items: Items,
        shards: u32,
        hottest: Hottest,
    },
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Case::Whole { server, .. } => write!(out, "{server}, {} threads", server.threads()),
            Case::Sharded { server, shards, .. } => {
                write!(out, "{}, {shards} instances", sharded(server))
            }
        }
    }
}

impl Case<'_> {
    fn measure(&self, run: &Run<'_>, seed: u64) -> Result<Point> {
        let pace = Pace::Closed {
            in_flight: IN_FLIGHT,
        };
        match *self {
            Case::Whole { server, items } => {
                let plan = MIX.plan(run, items, KEYS, pace, 700);
                let outcome = server.measure(Plan { seed, ..plan })?;
                let (threads, all) = (server.threads(), server.capacity_per_s(&outcome));
                let point = Point::new(PANEL, server.name(), threads as f64, all);
                Ok(point.also(CPU_NS, outcome.server_ns_per_operation()))
            }
            Case::Sharded {
                server,
                items,
                shards,
                hottest: Hottest { law, share },
            } => {
                let per_get = (share * f64::from(KEYS)).round() as u32;
                let plan = MIX.plan_of(law, run, items, per_get, pace, 700);
                let outcome = server.measure(Plan { seed, ..plan })?;
                let all = server.capacity_per_s(&outcome) / share;
                let point = Point::new(PANEL, sharded(server), f64::from(shards), all);
                let point = point.also(SHARE, share).also(PER_GET, f64::from(per_get));
                Ok(point.also(CPU_NS, outcome.server_ns_per_operation()))
            }
        }
    }
}

/// The series of several instances of a server.
fn sharded(server: &Running) -> String {
    format!("{server}, sharded")
}

impl Figure for Sharding {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-shards",
            title: "memcached with several threads, and in several instances",
            source: "MemC3 (NSDI'13), Figure 9, §5.4",
            claim: "The optimised memcached, sharded with one instance for each core, performs \
                    worst, because hot keys load one instance more than the others.",
            here: "The workload and the servers of `memc3-fig9`: 95% GETs of 100 keys, \
                   Zipf-distributed, over TCP on loopback, with 50 connections and 4 requests in \
                   flight on each. Clients divide the keys among the instances by a hash, and \
                   the 100 keys of a GET likewise. The instance that gets most of the requests \
                   runs alone, with one thread and its part of the items. With a core for each \
                   instance, all of them execute what the most loaded one permits: the rate for \
                   which its core has CPU time, over its share of the requests. The picture shows \
                   that, and the same for servers with several threads: threads divided by CPU \
                   time per key. A thread that sleeps for a lock takes no CPU time, which favours \
                   several threads. Their number is limited by the machine's cores, and that of \
                   instances is not.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 6000),
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "threads or instances",
                y: "keys per s",
            },
            plot: Plot::lines("threads or instances", "keys per second").whole_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(16_000));
        let build = |name, run: &mut Run<'_>| {
            let (_, program, arguments) = OF_PAPER.into_iter().find(|of| of.0 == name)?;
            Some(System::build(name, program, run)?.arguments(arguments))
        };
        let [original, modified] = [ORIGINAL, MODIFIED].map(|name| build(name, run));
        // Without the paper's builds ours shows that the figure runs. No claim is about it.
        let is_none = original.is_none() && modified.is_none();
        let modified = modified.or_else(|| is_none.then(System::memc3));
        let mut whole = Vec::new();
        for system in original.iter().chain(&modified) {
            for threads in [1, 2] {
                whole.push(system.clone().threads(threads).start(run, items)?);
            }
        }
        let mut sharded = Vec::new();
        for shards in SHARDS {
            let items = items.only(items.keys / u64::from(shards));
            if let Some(modified) = &modified {
                sharded.push((shards, items, modified.start(run, items)?));
            }
        }
        let mut cases: Vec<Case<'_>> = whole
            .iter()
            .map(|server| Case::Whole { server, items })
            .collect();
        cases.extend(sharded.iter().map(|(shards, items, server)| Case::Sharded {
            server,
            items: *items,
            shards: *shards,
            hottest: Hottest::of(*shards, items.keys),
        }));
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            case.measure(run, seed)
        })
    }
}
