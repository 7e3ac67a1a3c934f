//! MemC3, Figure 4: the cost of an insert, by load factor and number of cuckoo paths.

use std::{fmt, time::Duration};

use anyhow::Result;
use glimmer_base::Seed;

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    construct::{self, Paths},
    plot::{Mark, Plot, Unit},
};

const PANEL: &str = "";
/// Hundredths of the slots per point.
const STEP: usize = 2;

/// The figure.
pub struct InsertCost;

struct Case {
    bytes: usize,
    paths: Paths,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.paths.name())
    }
}

impl Figure for InsertCost {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-fig4",
            title: "Cost of a cuckoo insert by load factor",
            source: "MemC3 (NSDI'13), Figure 4, §5.2",
            claim: "An insert takes 43 ns in an empty table and still less than 100 ns at a load \
                    of 70%. At a load of 95% it takes 1.3 µs with one path and 0.84 µs with two. \
                    More than two paths have diminishing or negative returns.",
            here: "One thread fills an index of 64 MiB, and each point is the time of the inserts \
                   into one fiftieth of the slots. The figure shows the paper's random paths and \
                   the search that our table uses. An insert into an empty table is mostly a cache \
                   miss, which costs more on this machine than on the paper's. The claims \
                   therefore compare how the cost rises.",
            kind: Kind::Timing,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "panel",
                series: "index",
                x: "load factor, %",
                y: "insert, ns",
            },
            plot: Plot::lines("load factor, %", "time per insert")
                .unit(Unit::Nanoseconds)
                .log_y()
                .columns(1)
                .paper(
                    "MemC3 §5.2: at 95% 1.3 µs with one path and 0.84 µs with two; at 70% within \
                     100 ns",
                    vec![
                        Mark::point(PANEL, "cuckoo, 1 path", 95.0, 1300.0),
                        Mark::point(PANEL, "cuckoo, 2 paths", 95.0, 840.0),
                        Mark::point(PANEL, "cuckoo, 2 paths", 70.0, 100.0),
                    ],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let bytes = run.pick(64 << 20, 1 << 20);
        let step_keys = construct::slots_in(bytes) / 100 * STEP;
        let mut cases = Paths::ALL.map(|paths| Case { bytes, paths });
        let mut points = Vec::new();
        run.rounds(run.repeat(5), &mut cases, |case, _, seed| {
            let built = construct::cuckoo(case.bytes, case.paths, Seed(seed))?;
            let steps = built.hundredths.chunks_exact(STEP).enumerate();
            let mut steps = steps.map(|(step, times)| {
                let load = ((step + 1) * STEP) as f64;
                let total: Duration = times.iter().sum();
                let each_ns = total.as_secs_f64() * 1e9 / step_keys as f64;
                Point::new(PANEL, case.paths.name(), load, each_ns)
            });
            let first = steps.next().expect("an index takes more than a key");
            points.extend(steps);
            Ok(first)
        })?;
        points.into_iter().for_each(|point| run.add(point));
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let at = |paths: Paths, load: f64| data.median(PANEL, paths.name(), load);
        let breadth = at(Paths::Random(2), 94.0).zip(at(Paths::Breadth, 94.0));
        shape.beside(
            "cost at 94% load, two random paths over our search",
            "",
            breadth.map(|(two, ours)| format!("{:.2}", two / ours)),
        );
    }
}
