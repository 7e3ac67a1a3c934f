//! MICA, Figure 14: throughput by number of cores.

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

/// Cores of the paper's server.
const CORES_MAX: usize = 16;
const PEERS: [Server; 1] = [Server::Memcached];
const EREW: &str = "glimmer erew";
/// Skewed keys, which are harder for a partitioned store (MICA §5.4).
const MIXES: [Mix; 2] = [Mix::new(true, 50), Mix::new(true, 95)];
const ITEMS: Items = Items::tiny(1_000_000);
const ITEMS_ALONE: u32 = 8_000_000;
const RATE: &str = "operations per s, measured";

/// Throughput by cores, with the paper's points in the panels of 50% and of 95% GETs.
pub(super) fn plot([half, most]: [&'static str; 2]) -> Plot {
    Plot::lines("cores", "operations per second")
        .whole_x()
        .paper(
            "MICA, EREW, Table 2, for one of its 16 cores: 70.4 Mops with 50% GET, 65.6 with 95%",
            vec![
                Mark::point(half, EREW, 1.0, 70.4e6 / 16.0),
                Mark::point(most, EREW, 1.0, 65.6e6 / 16.0),
            ],
        )
}

/// The figure.
pub struct Cores;

/// One point of an upper panel.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    mix: Mix,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {}, {} cores",
            self.mix,
            self.server,
            self.server.threads()
        )
    }
}

fn end_to_end(mix: Mix) -> String {
    format!("end to end, {}% GET", mix.gets_percent)
}

fn engine_alone(mix: Mix) -> String {
    format!("engine alone, {}% GET", mix.gets_percent)
}

impl Figure for Cores {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig14",
            title: "Throughput by number of cores, skewed keys",
            source: "MICA (NSDI'14), Figure 14, §5.4",
            claim: "Only MICA and Masstree perform better with more cores, MICA nearly linearly up \
                    to 16. Memcached, MemC3 and RAMCloud scale poorly and perform best with 2 \
                    cores.",
            here: "Tiny items, skewed keys, from 1 core to all cores of the machine. The upper \
                   panels measure the whole server over TCP. Client and server share the cores, so \
                   the panels show the throughput for which the workers have CPU time: workers \
                   divided by CPU time per operation. Under EREW, a memcached client's requests \
                   have to cross between workers; under CRCW they do not. The lower panels measure \
                   the engine alone, with every request at its owner, where the paper's clients \
                   send it. CPU time does not include waiting for locks, so memcached's problem \
                   beyond 2 cores would need more than 2 cores to show.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: CORES_MAX,
                memory_mib: 5000,
                peers: &PEERS,
            },
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "cores",
                y: "operations per s",
            },
            plot: plot(["end to end, 50% GET", "end to end, 95% GET"]),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let counts = systems::thread_counts(run.cores().min(CORES_MAX));
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let ours = ["erew", "crcw"].map(System::glimmer);
        let all = ours.into_iter().chain(PEERS.map(System::peer)).collect();
        let systems = systems::installed(all, run);
        let mut servers = Vec::new();
        for &count in &counts {
            for system in &systems {
                servers.push(system.clone().threads(count).start(run, items)?);
            }
        }
        let mut cases = Vec::new();
        for mix in MIXES {
            cases.extend(servers.iter().map(|server| Case { server, items, mix }));
        }
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let outcome = case
                .server
                .measure(case.mix.saturating(run, case.items, 500, seed))?;
            let (server, capacity) = (case.server, case.server.capacity_per_s(&outcome));
            let cores = server.threads() as f64;
            let point = Point::new(end_to_end(case.mix), server.name(), cores, capacity);
            Ok(point.also(RATE, outcome.operations_per_s()))
        })?;
        drop(servers);

        let items = run.pick(ITEMS_ALONE, 50_000);
        let mut stores = Vec::new();
        for &count in &counts {
            for mode in [Mode::Erew, Mode::Crcw] {
                stores.push(Alone::new(run, items, mode, count)?);
            }
        }
        alone::rounds(
            run,
            run.repeat(5),
            &mut stores,
            &MIXES,
            400,
            |store, mix, rate| {
                Point::new(
                    engine_alone(mix),
                    store.name(),
                    store.workers() as f64,
                    rate,
                )
            },
        )
    }
}
