//! Minos, Figure 5: latency by load where half of the requests write.

use anyhow::Result;
use glimmer_queueing::{Outcome, Trimodal};

use crate::{
    Data, Figure, Kind, Needs, Run, Shape, Spec,
    simulated::{
        self, Curve, LARGE_BYTES, LARGE_PERCENT, PEAK, System, auto_over_paper, default_workload,
        latency_by_load, limit, limits, panel, ratios,
    },
};

const SYSTEMS: [System; 6] = [
    System::Keyhash,
    System::Handoff,
    System::Stealing,
    System::Paper,
    System::Auto,
    System::Static,
];
const GETS: f64 = 0.5;
/// Column with the highest load under the default workload, which has 95% of GETs.
const PEAK_READING: &str = "peak with 95% GETs, Mops";
const LOADS: std::ops::RangeInclusive<f64> = 0.16..=0.85;

/// The figure.
pub struct Writes;

impl Figure for Writes {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig5",
            title: "Latency by load: half of the requests write",
            source: "Minos (NSDI'19), Figure 5, §6.2",
            claim: "Up to saturation Minos has a p99 ten times below that of the others. Its peak \
                    is 10% below that of keyhash sharding, since it counts every request by size. \
                    With a static threshold it loses nothing.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. GET:PUT is 50:50. With a \
                   static threshold, the plan of the first epoch stays, and requests are not \
                   counted. A column has the highest load of each system with 95% of GETs.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: simulated::COLUMNS,
            plot: latency_by_load("p99"),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let workload = Trimodal::new(LARGE_PERCENT, LARGE_BYTES, GETS);
        let cases = simulated::cases(run, &SYSTEMS, &workload);
        let curve = Curve {
            searched: run.pick(600_000, 20_000),
            requests: run.pick(1_000_000, 20_000),
            latency_ns: Outcome::p99_ns,
        };
        let reading = simulated::cases(run, &SYSTEMS, &default_workload());
        let peaks = limits(run, &reading, curve.searched);
        for place in curve.places(run, &cases) {
            let of = reading.iter().zip(&peaks);
            let mut of = of.filter(|(other, _)| {
                (&other.panel, other.system) == (&place.case.panel, place.case.system)
            });
            let (_, reading) = of.next().expect("the same systems");
            let point = place.point(&place.case.panel, (curve.latency_ns)(&place.outcome));
            run.add(point.also(PEAK_READING, reading.peak));
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        // The paper has eight cores.
        let panel = panel(simulated::CORES[1]);
        let rows = [
            ("with its controller", System::Paper),
            ("static", System::Static),
        ];
        for (name, system) in rows {
            let peak = |system| limit(data, &panel, system, PEAK);
            let over = peak(system).zip(peak(System::Keyhash));
            shape.beside(
                &format!("{panel}: peak over keyhash, {name}"),
                "",
                over.map(|(ours, keyhash)| format!("{:.2}", ours / keyhash)),
            );
        }
        let ratios = ratios(data, &panel, System::Keyhash, System::Paper, &LOADS);
        shape.beside(
            &format!("{panel}: p99 of keyhash over size-aware from 1/6 to 0.85 of the peak, least"),
            "",
            ratios
                .into_iter()
                .reduce(f64::min)
                .map(|least| format!("{least:.1}")),
        );
        auto_over_paper(data, shape, "p99 from 1/6 to 0.85 of the peak", LOADS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, simulated::OF_PEAK};

    fn failures(auto: f64) -> usize {
        let mut data = Data::default();
        for system in SYSTEMS {
            let peak = if system == System::Auto { auto } else { 10.0 };
            let point = Point::new(panel(8), system.name(), 0.5, 5.0);
            data.add(point.also(OF_PEAK, 0.5).also(PEAK, peak));
        }
        Writes.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_formula() {
        assert_eq!(failures(10.0), 0);
        assert_eq!(failures(9.0), 1);
    }
}
