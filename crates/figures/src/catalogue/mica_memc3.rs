//! MICA, Figure 10, beside MemC3: its authors' server, and its table in ours.

use anyhow::Result;

use super::mica_fig10::{CLIENT_BUSY, COLUMNS, Case};
use crate::{
    Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
    systems::{Items, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(2_000_000);
const PANEL: &str = "tiny";
const MICA: &str = "glimmer erew";
const TABLE: &str = "glimmer memc3";
const PUBLISHED: &str = "MemC3, published code";
const KERNEL: &str = "part of the server's CPU time in the kernel";
const CPU_NS: &str = "server CPU per request, ns";

/// The figure.
pub struct Rival;

impl Figure for Rival {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-memc3",
            title: "End-to-end throughput beside MemC3",
            source: "MICA (NSDI'14), Figure 10, §5.2",
            claim: "On tiny items MICA executes at least 65.6 million operations per second, and \
                    MemC3 less than 6.1 million.",
            here: "As `mica-fig10`, on tiny items: one worker on one core and one client on \
                   another, TCP on loopback, 50 connections with 32 requests in flight on each. \
                   The paper has an internal version of MemC3 and gives it MICA's network stack. \
                   `MemC3, published code` is its authors' server of `memc3-fig9`, over the \
                   kernel as ours. `glimmer memc3` is MemC3's table in our server, so it has the \
                   same network stack as `glimmer erew`, and the same server around it.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 4096),
            columns: COLUMNS,
            plot: Plot::bars("", "operations per second").columns(1).paper(
                "MICA §5.2, for one of its 16 cores: 65.6 Mops, and MemC3's limit of 6.1 Mops",
                vec![
                    Mark::bar(PANEL, MICA, "skewed, 95% GET", 65.6e6 / 16.0),
                    Mark::bar(PANEL, PUBLISHED, "skewed, 95% GET", 6.1e6 / 16.0),
                ],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let mut systems = vec![System::glimmer("erew"), System::memc3()];
        let published = System::build(PUBLISHED, "memc3", run);
        systems.extend(published.map(|system| system.arguments(&["-o", "hashpower=21"])));
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let of = |mix| {
            let case = move |server| Case {
                server,
                dataset: PANEL,
                items,
                mix,
            };
            servers.iter().map(case)
        };
        let mut cases: Vec<Case<'_>> = Mix::ALL.into_iter().flat_map(of).collect();
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let plan = case.mix.saturating(run, case.items, 500, seed);
            let (outcome, kernel) = case.server.measure_in_parts(plan)?;
            let rate = outcome.operations_per_s();
            let point = Point::new(PANEL, case.server.name(), case.mix.to_string(), rate);
            let point = point.also(CLIENT_BUSY, outcome.client_busy());
            let point = point.also(KERNEL, kernel);
            Ok(point.also(CPU_NS, outcome.server_ns_per_operation()))
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let cpu = |series| data.row(PANEL, series, "skewed, 95% GET")?.also(CPU_NS);
        for rival in [TABLE, PUBLISHED] {
            let ratio = cpu(rival).zip(cpu(MICA));
            shape.beside(
                &format!("skewed, 95% GET: server CPU per request of {rival} over {MICA}"),
                "",
                ratio.map(|(theirs, ours)| format!("{:.2}", theirs / ours)),
            );
        }
    }
}
