//! MICA, Figure 16: the access modes, end to end and in the engine alone.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_microbench::store_alone::Mode;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    alone::{self, Alone},
    plot::{Mark, Plot},
    systems::{self, Items, Running, System},
    workload::Mix,
};

const END_TO_END: &str = "end to end, requests at any worker";
const ALONE: &str = "engine alone, requests directed to their core";
const PEERS: [Server; 1] = [Server::Memcached];
const EREW: &str = "glimmer erew";
/// Tiny items (MICA §5.1), both over sockets and in the engine alone.
const ITEMS: Items = Items::tiny(1_000_000);
const ITEMS_ALONE: u32 = 8_000_000;
const RATE: &str = "operations per s, measured";

/// The figure.
pub struct AccessModes;

/// One bar of the upper panel.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    mix: Mix,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.mix, self.server)
    }
}

impl Figure for AccessModes {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig16",
            title: "Access modes: EREW, CREW, CRCW",
            source: "MICA (NSDI'14), Figure 16 and Table 1, §5.5",
            claim: "EREW performs consistently well. CREW is slightly better with skewed keys and \
                    95% GETs, because many cores can read a popular item. CRCW has no advantage \
                    over either, but is better than any other system. All of this assumes clients \
                    that send each request to its owner. Where the server's cores have to hand \
                    requests over (Table 1), EREW keeps 40.0 to 44.1% of its throughput.",
            here: "The figure tests both halves of the claim. The lower panel measures the engine \
                   alone on all cores, with every request at its owner, where the paper's clients \
                   send it. The upper panel measures the whole server with a worker on every core \
                   and a memcached client, which cannot choose the worker. Under EREW most \
                   requests cross to another worker, under CREW the writes cross, and under CRCW \
                   nothing crosses. That is why CRCW is the default. Client and server share the \
                   cores, so the upper panel shows the throughput for which the workers have CPU \
                   time: workers divided by CPU time per operation.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 5000,
                peers: &PEERS,
            },
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "workload",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second").columns(1).paper(
                "MICA, EREW, §5.2 and Tables 1 and 2, for two of its 16 cores, requests directed \
                 to their core: 76.9, 75.5, 70.4 and 65.6 Mops",
                [
                    ("uniform, 50% GET", 76.9),
                    ("uniform, 95% GET", 75.5),
                    ("skewed, 50% GET", 70.4),
                    ("skewed, 95% GET", 65.6),
                ]
                .map(|(load, mops)| Mark::bar(END_TO_END, EREW, load, mops * 1e6 / 8.0))
                .into(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        self.end_to_end(run)?;
        let items = run.pick(ITEMS_ALONE, 50_000);
        let store = |mode| Alone::new(run, items, mode, run.cores());
        let mut stores = Mode::ALL
            .into_iter()
            .map(store)
            .collect::<Result<Vec<_>>>()?;
        alone::rounds(
            run,
            run.repeat(5),
            &mut stores,
            &Mix::ALL,
            400,
            |store, mix, rate| Point::new(ALONE, store.name(), mix.to_string(), rate),
        )
    }
}

impl AccessModes {
    fn end_to_end(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let workers = run.cores();
        let ours = Mode::ALL.map(|mode| System::glimmer(mode.name()));
        let all = ours.into_iter().chain(PEERS.map(System::peer));
        let all = all.map(|system| system.threads(workers)).collect();
        let systems = systems::installed(all, run);
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let mut cases = Vec::new();
        for mix in Mix::ALL {
            cases.extend(servers.iter().map(|server| Case { server, items, mix }));
        }
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let outcome = case
                .server
                .measure(case.mix.saturating(run, case.items, 500, seed))?;
            let capacity = case.server.capacity_per_s(&outcome);
            let point = Point::new(
                END_TO_END,
                case.server.name(),
                case.mix.to_string(),
                capacity,
            );
            Ok(point.also(RATE, outcome.operations_per_s()))
        })
    }
}
