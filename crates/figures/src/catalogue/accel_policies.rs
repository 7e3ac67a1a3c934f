//! The share of reads that each policy of the accelerator answers, in virtual time: by the
//! parameters that the paper leaves out, and by those of its own policy.

use std::fmt;

use anyhow::Result;
use glimmer_hotset::Policy;
use glimmer_hotset::policies::{Counting, Paper};
use glimmer_hotset::virtual_time::{Drawn, Trial};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::{Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec, plot::Plot};

/// The figure.
pub struct Policies;

const SLOTS: usize = 1024;
const KEYS: u64 = 1_000_000;
const REPETITIONS: u64 = 5;
const EXPONENT: f64 = 0.99;
const EXPONENTS: [f64; 6] = [0.8, 0.9, EXPONENT, 1.05, 1.1, 1.2];
/// One request of ETC in this many is for a value that no slot holds.
const ETC_LARGE_ONE_IN: u32 = 800;
/// Requests of the 1,024 most popular keys under Pareto's law, in percent.
const TOPS: [f64; 6] = [11.0, 13.0, 15.0, 20.0, 25.0, 30.0];
const PARETO_SHAPE: f64 = 1.16;
const SAMPLES: [u32; 6] = [1, 2, 4, Paper::SAMPLE_EVERY, 16, 32];
const BATCHES: [usize; 5] = [10, 30, Paper::BATCH_KEYS, 300, 1_000];
const TOO_LONG: usize = 100_000;
const COUNTING: &str = "counting";
const PAPER: &str = "paper";

const ETC: &str = "answered, %: ETC by exponent";
const PARETO: &str = "answered, %: Pareto by requests of the best 1,024 keys, %";
const BY_SAMPLE: &str = "answered, %: Zipf 0.99, one read sampled of";
const BY_BATCH: &str = "answered, %: Zipf 0.99, by keys of a batch";
const WRITTEN: &str = "batches per 1,000 reads: Zipf 0.99, by keys of a batch";

/// What draws the keys.
#[derive(Clone, Copy)]
enum Law {
    /// Zipf's law, and some values that no slot holds.
    Etc(f64),
    Zipf,
    /// The most popular keys get this share of the requests, in percent.
    Pareto(f64),
}

/// A law, a policy, and where the result is shown.
struct Case {
    panel: &'static str,
    x: f64,
    law: Law,
    /// The paper's policy with these numbers, or the default one.
    paper: Option<(u32, usize)>,
}

impl Case {
    fn series(&self) -> &'static str {
        match self.paper {
            Some(_) => PAPER,
            None => COUNTING,
        }
    }

    fn policy(&self) -> Box<dyn Policy> {
        match self.paper {
            Some(numbers) => Box::new(Paper::with(SLOTS, numbers, 0)),
            None => Box::new(Counting::new(SLOTS, 0)),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}, {}", self.series(), self.panel, self.x)
    }
}

/// Draws a key and the bytes of its value.
type Draw = Box<dyn FnMut(&mut SmallRng) -> (u64, usize)>;

fn drawing(law: Law) -> Draw {
    let zipf = |exponent| Zipf::new(KEYS as f64, exponent).expect("an exponent above zero");
    match law {
        Law::Zipf => {
            let zipf = zipf(EXPONENT);
            Box::new(move |rng| (zipf.sample(rng) as u64, 8))
        }
        Law::Etc(exponent) => {
            let zipf = zipf(exponent);
            Box::new(move |rng| match rng.random_ratio(1, ETC_LARGE_ONE_IN) {
                true => (KEYS + rng.random_range(1..=625), TOO_LONG),
                false => (zipf.sample(rng) as u64, 8),
            })
        }
        Law::Pareto(percent) => {
            let below = 1.0 - percent / 100.0;
            let scale = SLOTS as f64 / (below.powf(-1.0 / PARETO_SHAPE) - 1.0);
            Box::new(move |rng| {
                let rest = 1.0 - rng.random::<f64>();
                let at = scale * (rest.powf(-1.0 / PARETO_SHAPE) - 1.0);
                (at as u64, 8)
            })
        }
    }
}

fn cases() -> Vec<Case> {
    let numbers = (Paper::SAMPLE_EVERY, Paper::BATCH_KEYS);
    let both = |panel, x, law| {
        [Some(numbers), None].map(|paper| Case {
            panel,
            x,
            law,
            paper,
        })
    };
    let paper = |panel, x, numbers| Case {
        panel,
        x,
        law: Law::Zipf,
        paper: Some(numbers),
    };
    let etc = EXPONENTS.into_iter();
    let mut cases: Vec<Case> = etc.flat_map(|x| both(ETC, x, Law::Etc(x))).collect();
    let tops = TOPS.into_iter();
    cases.extend(tops.flat_map(|x| both(PARETO, x, Law::Pareto(x))));
    let samples = SAMPLES.into_iter();
    cases
        .extend(samples.map(|one_in| paper(BY_SAMPLE, one_in.into(), (one_in, Paper::BATCH_KEYS))));
    let batches = BATCHES.into_iter();
    cases.extend(batches.map(|keys| paper(BY_BATCH, keys as f64, (Paper::SAMPLE_EVERY, keys))));
    cases
}

impl Figure for Policies {
    fn spec(&self) -> Spec {
        Spec {
            name: "accel-policies",
            title: "Reads that are answered, by policy",
            source: "§VI-B and Figures 17 and 18 of §VII-B",
            claim: "One read of eight is sampled, and the keys of a batch of 100 are written \
                    together. About 11% of the requests with Pareto distributed keys are \
                    answered, and 40% of Facebook's ETC.",
            here: "In virtual time: a policy, its 1,024 slots, and requests from a law, of which \
                   three million warm up and a million count. The paper gives no parameters of \
                   its distributions, so they are varied. `paper` is the paper's policy and \
                   `counting` the default. ETC has a million keys under Zipf's law, and one \
                   request in 800 is for a value that no slot holds. Pareto's law has a key for \
                   every unit, the shape 1.16, and a scale with which the 1,024 most popular keys \
                   get the share on the horizontal axis. Nothing changes a value. The other panels \
                   vary the two numbers of the paper's policy. Points are medians over five seeds.",
            kind: Kind::Simulated,
            needs: Needs::one_core(64),
            columns: Columns {
                panel: "panel",
                series: "policy",
                x: "as the panel says",
                y: "as the panel says",
            },
            plot: Plot::lines("as the panel says", "as the panel says").columns(2),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let (warm_up, counted) = run.pick((3_000_000, 1_000_000), (20_000, 10_000));
        let seeds = 0..run.pick(REPETITIONS, 1);
        let cases = cases();
        let trials: Vec<(&Case, u64)> = seeds
            .flat_map(|seed| cases.iter().map(move |case| (case, seed)))
            .collect();
        let found = run.in_parallel(
            &trials,
            |(case, _)| case.to_string(),
            |(case, seed)| {
                let mut rng = SmallRng::seed_from_u64(*seed);
                let mut draw = drawing(case.law);
                let trial = Trial {
                    slots: SLOTS,
                    policy: case.policy(),
                    seeds: rng.random(),
                    warm_up,
                    counted,
                };
                trial.run(|| {
                    let (number, value_bytes) = draw(&mut rng);
                    Drawn {
                        number,
                        value_bytes,
                        is_change: false,
                    }
                })
            },
        );
        for ((case, _), found) in trials.iter().zip(found) {
            let series = case.series();
            run.add(Point::new(
                case.panel,
                series,
                case.x,
                100.0 * found.share(),
            ));
            if case.panel == BY_BATCH {
                let batches = found.offers as f64 / case.x;
                let per_thousand = 1e3 * batches / found.reads as f64;
                run.add(Point::new(WRITTEN, series, case.x, per_thousand));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (panel, places) in [(ETC, &EXPONENTS[..]), (PARETO, &TOPS[..])] {
            for &x in places {
                let [ours, paper] = [COUNTING, PAPER].map(|it| data.median(panel, it, x));
                shape.at_least(
                    &format!("{panel}, at {x}: {COUNTING} over {PAPER}"),
                    "ours beside the paper's",
                    ours.zip(paper).map(|(ours, paper)| ours / paper),
                    1.0,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_answers_less_than_the_papers_fails() {
        for (ours, failures) in [(40.0, 0), (20.0, EXPONENTS.len() + TOPS.len())] {
            let mut data = Data::default();
            for case in cases() {
                let share = if case.paper.is_some() { 30.0 } else { ours };
                data.add(Point::new(case.panel, case.series(), case.x, share));
            }
            assert_eq!(Policies.judged(&data).failures().count(), failures);
        }
    }
}
