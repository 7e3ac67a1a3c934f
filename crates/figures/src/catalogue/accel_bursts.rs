//! A hot key that changes: the share of reads that each body of the accelerator answers, and what
//! the server's CPU does meanwhile, by the number of reads to a change.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::{
    accelerator::{Body, Changing, Running, SOFTWARE, Setup, Subject},
    lab::{Lab, Namespaces, Receiver},
};
use glimmer_measure::{machine, stats::Spread};

use crate::{Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec, plot::Plot};

/// The figure.
pub struct Changes;

/// Changes in a row, by panel.
const WAYS: [(&str, u64); 2] = [("even", 1), ("in bursts", 200)];
const RATIOS: [u64; 9] = [1, 2, 4, 8, 13, 30, 100, 300, 1000];
/// Reads of a measurement, at least. A burst with its reads is one at least, too.
const READS: u64 = 20_000;
const SLOTS: usize = 1024;
/// Our server with the packet program in the generic mode.
const GENERIC: &str = "glimmer xdp, generic";
const LOST: &str = "lost";

fn answered(way: &str) -> String {
    format!("answered, %: changes {way}")
}

fn used(way: &str) -> String {
    format!("server's CPU, µs per request: changes {way}")
}

/// A server with its load.
struct Case<'a> {
    server: &'a Running,
    way: &'static str,
    load: Changing,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, ratio) = (self.way, self.load.reads_per_change);
        write!(out, "{}, changes {way}, {ratio} reads to each", self.server)
    }
}

impl Figure for Changes {
    fn spec(&self) -> Spec {
        Spec {
            name: "accel-bursts",
            title: "Hot keys that change",
            source: "a claim of this project",
            claim: "The share of reads that are answered has no cliff: at every number of reads to \
                    a change, evenly or in bursts, keys whose hits save more than their changes \
                    cost stay in the accelerator.",
            here: "A client reads four keys at random over memcached's UDP protocol, up to 16 at a \
                   time, and changes them over TCP: one change and its reads in turn (even), or \
                   200 changes at once and then all their reads (in bursts). The paper does not \
                   describe changes. Each server has a veth pair of its own between two network \
                   namespaces. `glimmer xdp, generic` has the packet program in the kernel's \
                   generic mode, because the other end of its pair would drop what the driver \
                   sends. Reads that a packet program answers on a veth pair take the client's CPU \
                   time and none of the server's. The time of the server is divided by reads and \
                   changes. The horizontal axis is the number of reads to a change.",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 1024),
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "reads to a change",
                y: "as the panel says",
            },
            plot: Plot::lines("reads to a change", "as the panel says")
                .log_x()
                .columns(2),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut lab = match Namespaces::new(Receiver::Sender) {
            Ok(namespaces) => Lab::Namespaces(namespaces),
            Err(missing) => {
                run.note(format!("measured on loopback, without XDP: {missing:#}"));
                Lab::Loopback
            }
        };
        let mut subjects = vec![Subject::ours(Body::Off), Subject::ours(Body::Model)];
        if matches!(lab, Lab::Namespaces(_)) {
            let programs = [
                Subject::generic(),
                Subject::ours(Body::XdpNative),
                Subject::ours(Body::Tcx),
            ];
            subjects.extend(programs);
        }
        let setup = Setup {
            client_cores: machine::client_cores(1),
            memory_mib: 64,
            slots: SLOTS,
            arguments: Vec::new(),
        };
        let mut running = Vec::new();
        for subject in subjects {
            match subject.start(&mut lab, &setup) {
                Ok(server) => running.push(server),
                Err(error) => run.note(format!("{subject} is left out: {error:#}")),
            }
        }
        let ratios = run.pick(&RATIOS[..], &[4, 30]);
        let reads = run.pick(READS, 200);
        let mut cases = Vec::new();
        for (way, burst) in WAYS {
            for &reads_per_change in ratios {
                let load = Changing {
                    reads_per_change,
                    burst: run.pick(burst, burst.min(10)),
                    reads,
                };
                cases.extend(running.iter().map(|server| Case { server, way, load }));
            }
        }
        run.rounds_of_many(run.repeat(5), &mut cases, |case, _, seed| {
            let found = case.server.change(case.load, seed)?;
            let (series, x) = (case.server.to_string(), case.load.reads_per_change as f64);
            let cpu = Point::new(used(case.way), &*series, x, found.server_us)
                .also(LOST, found.lost as f64);
            let share = found.hit_share.map(|share| {
                Point::new(answered(case.way), &*series, x, 100.0 * share)
                    .also(LOST, found.lost as f64)
            });
            Ok([Some(cpu), share].into_iter().flatten().collect())
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (way, _) in WAYS {
            let panel = answered(way);
            for system in data.series() {
                let line: Vec<Spread> = data.line(&panel, system).map(|row| row.spread()).collect();
                let shares = line.iter().map(|spread| spread.median);
                let Some(least) = shares.clone().min_by(f64::total_cmp) else {
                    continue;
                };
                let steps = shares.clone().zip(shares.skip(1));
                let fall = steps.map(|(before, after)| before - after);
                shape.at_least(
                    &format!("{system}, changes {way}: least share at any ratio, %"),
                    "",
                    Some(least),
                    75.0,
                );
                shape.at_most(
                    &format!("{system}, changes {way}: largest fall to the next ratio, %"),
                    "",
                    Some(fall.fold(0.0, f64::max)),
                    10.0,
                );
            }
        }
        let cpu = |ratio: f64, system| data.median(&used(WAYS[1].0), system, ratio);
        for ratio in [1.0, 13.0] {
            let [off, generic] = [SOFTWARE, GENERIC].map(|system| cpu(ratio, system));
            shape.at_most(
                &format!("server's CPU of {GENERIC} over that of {SOFTWARE}, in bursts, {ratio}"),
                "",
                off.zip(generic).map(|(off, generic)| generic / off),
                1.0,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(share: impl Fn(u64) -> f64, cpu: f64) -> usize {
        let mut data = Data::default();
        for (way, _) in WAYS {
            for ratio in RATIOS {
                let x = ratio as f64;
                data.add(Point::new(answered(way), GENERIC, x, share(ratio)));
                data.add(Point::new(used(way), GENERIC, x, cpu));
                data.add(Point::new(used(way), SOFTWARE, x, 1.0));
            }
        }
        Changes.judged(&data).failures().count()
    }

    #[test]
    fn a_cliff_fails_and_none_does_not() {
        assert_eq!(failures(|_| 99.0, 0.3), 0);
        assert_eq!(failures(|ratio| 80.0 + ratio as f64 / 50.0, 0.3), 0);
        // Nothing is answered below eight reads to a change, or above it.
        assert_eq!(failures(|ratio| if ratio < 8 { 5.0 } else { 99.0 }, 0.3), 2);
        assert_eq!(failures(|ratio| if ratio < 8 { 99.0 } else { 5.0 }, 0.3), 4);
        assert_eq!(failures(|_| 99.0, 1.2), 2);
    }
}
