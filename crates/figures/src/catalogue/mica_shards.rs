//! MICA, Table 2: Masstree in one instance per core, from the most loaded of 16.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Mark, Plot},
    systems::{self, Items, Running, System},
    workload::{Hottest, Mix, PIPELINE},
};

const SHARDS: u32 = 16;
/// The items of one instance.
const ITEMS: Items = Items::tiny(2_000_000);
const PANEL: &str = "";
const MASSTREE: &str = "masstree";
const OURS: &str = "glimmer erew";
const SHARE: &str = "share of the requests";
const CPU_NS: &str = "server CPU per request, ns";
const KERNEL: &str = "part of the server's CPU time in the kernel";

/// The figure.
pub struct Shards;

struct Case<'a> {
    server: &'a Running,
    items: Items,
    hottest: Hottest,
    mix: Mix,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.mix, self.server)
    }
}

impl Figure for Shards {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-shards",
            title: "16 servers that share no keys, from the most loaded of them",
            source: "MICA (NSDI'14), Table 2, §5.6",
            claim: "Masstree in one instance for each of 16 cores executes 5.8 Mops with 50% GETs \
                    and 17.9 with 95%, skewed: 8.2 and 27.3% of MICA, which has one partition for \
                    each core.",
            here: "Clients divide 32 million tiny items among 16 servers by a hash of the key. \
                   The one that gets most of the requests runs alone, with one worker, and holds \
                   its two million items. A client on another core sends it the requests for \
                   them, over TCP on loopback, with 50 connections and 32 requests in flight on \
                   each. It sends as many as it can; what is compared is the server's CPU time \
                   for a request. With a core for each server, 16 of them execute what the most \
                   loaded one permits: the rate for which its core has CPU time, over its share \
                   of the requests. The bars are that. `masstree` is Masstree's own server `mtd` \
                   of commit 1119842 of [masstree-beta](https://github.com/kohler/masstree-beta) \
                   with `-O3 --disable-assertions`, without its log, in its own protocol. Its \
                   addresses are changed to loopback. `glimmer erew` speaks memcached's text \
                   protocol. The paper gives both systems one network stack, past the kernel; \
                   here each has its own, over the kernel's.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 2048,
                peers: &[Server::Masstree],
            },
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "workload",
                y: "requests per s of 16 servers",
            },
            plot: Plot::bars("", "requests per second of 16 servers").paper(
                "MICA, Table 2, of 16 cores",
                vec![
                    Mark::bar(PANEL, MASSTREE, "skewed, 50% GET", 5.8e6),
                    Mark::bar(PANEL, MASSTREE, "skewed, 95% GET", 17.9e6),
                    Mark::bar(PANEL, OURS, "skewed, 50% GET", 70.4e6),
                    Mark::bar(PANEL, OURS, "skewed, 95% GET", 65.6e6),
                ],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let hottest = Hottest::of(SHARDS, items.keys);
        let all = vec![System::glimmer("erew"), System::peer(Server::Masstree)];
        let systems = systems::installed(all, run);
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let of = |gets_percent| {
            let case = move |server| Case {
                server,
                items,
                hottest,
                mix: Mix::new(true, gets_percent),
            };
            servers.iter().map(case)
        };
        let mut cases: Vec<Case<'_>> = [50, 95].into_iter().flat_map(of).collect();
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let pace = Pace::Closed {
                in_flight: PIPELINE,
            };
            let Hottest { law, share } = case.hottest;
            let plan = Plan {
                seed,
                ..case.mix.plan_of(law, run, case.items, 1, pace, 700)
            };
            let (outcome, kernel) = case.server.measure_in_parts(plan)?;
            let all = case.server.capacity_per_s(&outcome) / share;
            let point = Point::new(PANEL, case.server.name(), case.mix.to_string(), all);
            let point = point.also(SHARE, share).also(KERNEL, kernel);
            Ok(point.also(CPU_NS, outcome.server_ns_per_operation()))
        })
    }
}
