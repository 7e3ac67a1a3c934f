//! A measurement in progress: repetitions in turn, progress, and the machine's own noise next to
//! them.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use glimmer_base::sync::{AtomicUsize, Mutex, Ordering};
use glimmer_comparisons::transports::Between;
use glimmer_measure::{
    ceiling::{AHEAD, Region},
    machine::{self, SERVER_CORE},
    progress::Progress,
    stats::Spread,
};

use crate::{Calibration, Data, Point, figure::Kind, transports::Transports};

/// Memory for measuring the machine's own figure, in bytes: much larger than a core's private
/// caches.
const REGION_BYTES: usize = 256 << 20;
/// Length of a measurement of the machine.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// Length of a measurement in a quick run.
const QUICK_TIME: Duration = Duration::from_millis(40);

/// How long and how often to measure.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Tiny parameters, for tests: everything runs, but nothing is proved.
    pub quick: bool,
    /// Repetitions; `None` lets each figure choose.
    pub repeat: Option<usize>,
    /// Length of one measurement; `None` lets each figure choose.
    pub measured: Option<Duration>,
    /// The costs of simulated servers; `None` for the committed ones.
    pub costs: Option<Calibration>,
    /// What is between servers and clients that are in different namespaces, for all figures.
    pub transports: Arc<Transports>,
}

/// A measurement in progress.
pub struct Run<'a> {
    settings: &'a Settings,
    progress: &'a dyn Progress,
    region: Option<Region>,
    random_reads_per_s: Vec<f64>,
    data: Data,
    notes: Vec<String>,
}

/// The results of a measurement.
pub(crate) struct Measured {
    pub data: Data,
    pub notes: Vec<String>,
    pub random_reads_per_s: Vec<f64>,
}

impl<'a> Run<'a> {
    /// Prepares a measurement. The machine's own figure is measured only next to timings.
    pub(crate) fn new(
        settings: &'a Settings,
        kind: Kind,
        progress: &'a dyn Progress,
    ) -> Result<Run<'a>> {
        let region = match kind {
            Kind::Timing if !settings.quick => {
                machine::raise_priority();
                Some(Region::new(REGION_BYTES)?)
            }
            Kind::Timing | Kind::Exact | Kind::Counted | Kind::Simulated => None,
        };
        Ok(Run {
            settings,
            progress,
            region,
            random_reads_per_s: Vec::new(),
            data: Data::default(),
            notes: Vec::new(),
        })
    }

    /// Chooses between the full parameter and the one for quick runs.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.settings.quick { quick } else { full }
    }

    /// The number of repetitions: the user's choice, or one for a quick run, or `unless_told`.
    pub fn repeat(&self, unless_told: usize) -> usize {
        let told = self.settings.repeat;
        told.unwrap_or_else(|| self.pick(unless_told, 1))
    }

    /// The length of a measurement: the user's choice, or a short time for a quick run, or
    /// `unless_told_ms` milliseconds.
    pub fn measured(&self, unless_told_ms: u64) -> Duration {
        let unless_told = Duration::from_millis(unless_told_ms);
        let told = self.settings.measured;
        told.unwrap_or_else(|| self.pick(unless_told, QUICK_TIME))
    }

    /// The costs of simulated servers: the user's, or the committed ones.
    pub fn costs(&self) -> Calibration {
        let told = self.settings.costs.clone();
        told.unwrap_or_else(Calibration::committed)
    }

    /// The transport of this kind: udp, udp-plain, xdp or dpdk. If this machine cannot have it, a
    /// note says that this series is left out, and why.
    pub fn between(&mut self, kind: &'static str, series: &str) -> Option<Arc<Between>> {
        match self.transport(kind) {
            Ok(between) => Some(between),
            Err(error) => {
                self.note(format!("{series} is left out: {error:#}"));
                None
            }
        }
    }

    /// A transport of this kind between two network namespaces.
    ///
    /// # Errors
    ///
    /// This machine cannot have it, or the program was built without it.
    pub fn transport(&self, kind: &'static str) -> Result<Arc<Between>> {
        self.settings.transports.of_kind(kind)
    }

    /// Length of a server's warm-up.
    pub fn warm_up(&self) -> Duration {
        self.pick(Duration::from_millis(300), Duration::from_millis(20))
    }

    /// The number of cores that may be used.
    pub fn cores(&self) -> usize {
        machine::cores()
    }

    /// Reports a step that takes a while.
    pub fn say(&self, what: impl AsRef<str>) {
        self.progress.say(what.as_ref());
    }

    /// Adds a note for the reader: what was left out, and why.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        self.progress.say(&note);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a point that is measured once.
    pub fn add(&mut self, point: Point) {
        match point.lacks_number() {
            Some(lack) => self.note(lack),
            None => self.data.add(point),
        }
    }

    /// What has been measured so far.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Measures every case once, then every case again, so that a slow spell of the machine affects
    /// all of them. `measure` receives the case and the number of the repetition, which also serves
    /// as a seed.
    pub fn rounds<C: std::fmt::Display>(
        &mut self,
        repeat: usize,
        cases: &mut [C],
        mut measure: impl FnMut(&mut C, &Run<'_>, u64) -> Result<Point>,
    ) -> Result<()> {
        self.rounds_of_many(repeat, cases, |case, run, repetition| {
            Ok(vec![measure(case, run, repetition)?])
        })
    }

    /// [`Run::rounds`] for cases with several points each.
    pub fn rounds_of_many<C: std::fmt::Display>(
        &mut self,
        repeat: usize,
        cases: &mut [C],
        mut measure: impl FnMut(&mut C, &Run<'_>, u64) -> Result<Vec<Point>>,
    ) -> Result<()> {
        self.progress.expect(repeat * cases.len());
        for repetition in 0..repeat {
            if let Some(region) = &self.region {
                let reads = region.random_reads_per_s::<AHEAD>(&[SERVER_CORE], LOOK_TIME)?;
                self.random_reads_per_s.push(reads);
            }
            for case in &mut *cases {
                for point in measure(case, self, repetition as u64)? {
                    match point.lacks_number() {
                        Some(lack) => self.note(lack),
                        None => self.data.add_of(repetition, point),
                    }
                }
                self.progress.step(&case.to_string());
            }
        }
        Ok(())
    }

    /// Computes every case on as many threads as there are cores, and returns the results in the
    /// order of the cases. For simulations, whose results do not depend on time.
    pub fn in_parallel<C: Sync, T: Send>(
        &self,
        cases: &[C],
        name: impl Fn(&C) -> String + Sync,
        compute: impl Fn(&C) -> T + Sync,
    ) -> Vec<T> {
        self.progress.expect(cases.len());
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some((place, case)) = {
                let place = next.fetch_add(1, Ordering::Relaxed);
                cases.get(place).map(|case| (place, case))
            } {
                let result = compute(case);
                self.progress.step(&name(case));
                found.lock().push((place, result));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.cores() {
                scope.spawn(work);
            }
        });
        let mut found = found.into_inner();
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, result)| result).collect()
    }

    pub(crate) fn finish(self) -> Measured {
        Measured {
            data: self.data,
            notes: self.notes,
            random_reads_per_s: self.random_reads_per_s,
        }
    }
}

/// The spread of the machine's own figure during the measurement, relative to its median.
pub(crate) fn noise(random_reads_per_s: &[f64]) -> Option<f64> {
    (!random_reads_per_s.is_empty()).then(|| Spread::of(random_reads_per_s).width())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Heard(Mutex<Vec<String>>);

    impl Progress for Heard {
        fn expect(&self, steps: usize) {
            self.0.lock().unwrap().push(format!("expect {steps}"));
        }
        fn step(&self, what: &str) {
            self.0.lock().unwrap().push(what.to_owned());
        }
        fn say(&self, what: &str) {
            self.0.lock().unwrap().push(format!("say {what}"));
        }
    }

    #[test]
    fn cases_are_taken_in_turn() {
        let heard = Heard(Mutex::default());
        let settings = Settings {
            quick: true,
            repeat: Some(2),
            ..Settings::default()
        };
        let mut run = Run::new(&settings, Kind::Timing, &heard).unwrap();
        assert_eq!(run.repeat(7), 2);
        run.rounds(2, &mut ["a", "b"], |case, _, repetition| {
            Ok(Point::new("", *case, "here", repetition as f64))
        })
        .unwrap();
        run.rounds(1, &mut ["b"], |case, _, _| {
            Ok(Point::new("", *case, "here", f64::NAN))
        })
        .unwrap();
        run.note("left out");
        run.note("left out");
        let lack = "no number was measured of b at  here";
        assert_eq!(
            *heard.0.lock().unwrap(),
            [
                "expect 4",
                "a",
                "b",
                "a",
                "b",
                "expect 1",
                &format!("say {}", lack),
                "b",
                "say left out",
                "say left out"
            ]
        );
        let Measured { data, notes, .. } = run.finish();
        assert_eq!(notes, [lack, "left out"]);
        assert_eq!(data.row("", "b", "here").unwrap().samples, [0.0, 1.0]);
    }

    #[test]
    fn parallel_results_have_the_order_of_their_cases() {
        let heard = Heard(Mutex::default());
        let settings = Settings::default();
        let run = Run::new(&settings, Kind::Simulated, &heard).unwrap();
        let cases: Vec<u64> = (0..100).collect();
        let squares = run.in_parallel(&cases, u64::to_string, |case| case * case);
        assert!(
            squares
                .iter()
                .zip(&cases)
                .all(|(square, case)| *square == case * case)
        );
        assert_eq!(squares.len(), 100);
        assert_eq!(heard.0.lock().unwrap().len(), 101);
    }

    #[test]
    fn a_measurement_that_fails_ends_the_rounds() {
        let heard = Heard(Mutex::default());
        let settings = Settings::default();
        let mut run = Run::new(&settings, Kind::Exact, &heard).unwrap();
        let error = run
            .rounds(3, &mut ["a"], |_, _, _| anyhow::bail!("no server"))
            .unwrap_err();
        assert_eq!(error.to_string(), "no server");
    }

    #[test]
    fn noise_is_the_width_of_the_spread() {
        assert_eq!(noise(&[]), None);
        assert_eq!(noise(&[90.0, 100.0, 110.0]), Some(0.2));
    }
}
