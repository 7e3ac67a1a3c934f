//! Minos, §3.1: how often small cores wait for one another at the queues of large cores.

use anyhow::Result;
use glimmer_dispatch::LargeCores;
use glimmer_queueing::{Accesses, Costs, Dispatch, Held, Server, Trial, Trimodal};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::Plot,
    simulated::{self, Case, GETS, LARGE_BYTES, LARGE_PERCENT, System, large_cores, limits, panel},
};

/// Percentages of large requests: those of the default workload, and the most of Figure 6.
const SHARES: [f64; 2] = [LARGE_PERCENT, 0.75];
/// Loads over the highest load without waits.
const LOADS: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];

const READS: &str = "reads of large cores' RX queues that wait, %";
const PUTS: &str = "puts into their software queues that wait, %";
const P99: &str = "p99 with waits over without";
const MEAN_WAIT: &str = "mean wait of all, ns";
const P99_US: &str = "p99 with waits, µs";
const PEAK_OVER: &str = "peak with waits over without";
const LARGE: &str = "large cores";

/// Without waits, and what an RX queue is otherwise.
const QUEUES: [&str; 3] = ["no waits", "queue in memory", "socket"];

/// For how long a core holds each of [`QUEUES`].
fn held(costs: &Costs) -> [Option<Held>; QUEUES.len()] {
    let held = |look_ns, receive_ns| {
        Some(Held {
            look_ns,
            receive_ns,
            put_ns: costs.enqueue_ns,
        })
    };
    [
        None,
        held(0.0, costs.dequeue_ns + costs.steal_ns),
        held(costs.poll_ns, costs.receive_ns),
    ]
}

/// The figure.
pub struct Contention;

impl Figure for Contention {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-contention",
            title: "Waits at the queues of large cores",
            source: "Minos (NSDI'19), §3.1; a statement in the text, no figure",
            claim: "Small cores synchronise on the RX queues and the software queues of large \
                    cores. Contention for them is low.",
            here: "Simulated in virtual time by the policy code of the server, with 8 cores, the \
                   paper's link and costs that `glimmer bench calibrate` measured at a server of \
                   ours. The workload is the default one (0.125% large requests), or that of \
                   Figure 6 with the most large requests (0.75%). One small core at a time reads \
                   the RX queue of a large core, or puts a request into its software queue. \
                   Another one that comes waits, and does nothing else. For how long a core has a \
                   queue follows from the same costs. With `queue in memory`, a core has the RX \
                   queue for as long as taking the requests takes from our queue from which any \
                   worker may take (`Mailbox`). With `socket`, it has the queue for as long as \
                   the kernel takes to hand over the batch. A put takes as long as a push to our \
                   ring whose cache lines another core has changed. These are upper bounds: a lock \
                   would be held for a part of these times. A core that finds an RX queue empty \
                   keeps nobody away and does not count. The large core takes requests from the \
                   other end of its software queue, and waits for nobody. At the highest loads \
                   replies fill the link, as in the paper. So the peak has room for waits, and p99 \
                   shows them. With `socket`, many reads wait, up to 39% of them, and p99 is up to \
                   4% higher; with `queue in memory`, up to 2% wait. Software queues of our \
                   server have no such waits: each pair of workers has a ring of its own.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "number",
                series: "workload and RX queue",
                x: "load over the highest load without waits",
                y: "as the panel says",
            },
            plot: Plot::lines("load over the highest without waits", ""),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let server = simulated::servers(run)[0];
        let case = |share: f64, held| Case {
            panel: format!("{}, {share}% large", panel(server.cores)),
            system: System::Paper,
            server: Server { held, ..server },
            workload: Trimodal::new(share, LARGE_BYTES, GETS),
        };
        let cases: Vec<Case> = SHARES
            .into_iter()
            .flat_map(|share| held(&server.costs).map(|held| case(share, held)))
            .collect();
        let found = limits(run, &cases, run.pick(200_000, 20_000));
        let loads = run.pick(&LOADS[..], &LOADS[..2]);
        // The first case of each workload has no waits.
        let base = |place: usize| place - place % QUEUES.len();
        let places: Vec<(usize, f64)> = (0..cases.len())
            .flat_map(|place| loads.iter().map(move |&load| (place, load)))
            .collect();
        let requests = run.pick(800_000, 20_000);
        let name = |&(place, load): &(usize, f64)| format!("{}, {load}", cases[place]);
        let outcomes = run.in_parallel(&places, name, |&(place, load)| {
            let case = &cases[place];
            let trial = Trial {
                offered_per_s: load * found[base(place)].peak * 1e6,
                requests,
                seed: 1,
            };
            let dispatch = Dispatch::SizeAware(LargeCores::Paper);
            case.server.simulate(dispatch, &case.workload, trial)
        });
        for (at, &(place, load)) in places.iter().enumerate() {
            let with = &outcomes[at];
            let without = at - (place - base(place)) * loads.len();
            if without == at {
                continue;
            }
            let share = SHARES[place / QUEUES.len()];
            let series = format!("{share}% large, {}", QUEUES[place % QUEUES.len()]);
            let waits = |panel, accesses: &Accesses| {
                let percent = 100.0 * accesses.waited_share();
                let mean_ns = accesses.waited_ns / accesses.count.max(1) as f64;
                Point::new(panel, &series, load, percent).also(MEAN_WAIT, mean_ns)
            };
            let large = with.plans.last().map_or(0, |(_, plan)| large_cores(plan).0);
            let peak_over = found[place].peak / found[base(place)].peak;
            let p99_over = with.p99_ns() / outcomes[without].p99_ns();
            run.add(waits(READS, &with.shared_reads));
            run.add(waits(PUTS, &with.shared_puts));
            run.add(
                Point::new(P99, &series, load, p99_over)
                    .also(P99_US, with.p99_ns() / 1e3)
                    .also(PEAK_OVER, peak_over)
                    .also(LARGE, large as f64),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_queue_is_held_the_more_wait() {
        let costs = crate::Calibration::committed();
        let simulate = |held| {
            let server = Server {
                held,
                epoch_requests: 20_000,
                ..costs.server(8)
            };
            let trial = Trial {
                offered_per_s: 5e6,
                requests: 60_000,
                seed: 1,
            };
            let paper = Dispatch::SizeAware(LargeCores::Paper);
            server.simulate(paper, &simulated::default_workload(), trial)
        };
        let [free, memory, socket] = held(&costs.costs()).map(simulate);
        assert_eq!(free.shared_reads, Accesses::default());
        let [memory, socket] = [memory, socket].map(|outcome| outcome.shared_reads.waited_share());
        assert!(0.0 < memory && 2.0 * memory < socket, "{memory}, {socket}");
    }
}
