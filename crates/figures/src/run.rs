//! A measurement under way: repetitions in turn, progress, and the machine's own noise beside them.

use std::time::Duration;

use anyhow::Result;
use glimmer_measure::{
    ceiling::Region,
    machine::{self, SERVER_CORE},
    progress::Progress,
    stats::Spread,
};

use crate::{Data, Point, figure::Kind};

/// Memory that the machine's own figure is taken from, in bytes: well beyond a core's own caches.
const REGION_BYTES: usize = 256 << 20;
/// Length of a look at the machine.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// Length of a measurement in a quick run.
const QUICK_TIME: Duration = Duration::from_millis(100);

/// How long and how often to measure.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Tiny parameters, for tests: everything runs, nothing is proved.
    pub quick: bool,
    /// Repetitions, unless each figure is to choose.
    pub repeat: Option<usize>,
    /// Length of one measurement, unless each figure is to choose.
    pub measured: Option<Duration>,
}

/// A measurement under way.
pub struct Run<'a> {
    settings: &'a Settings,
    progress: &'a dyn Progress,
    region: Option<Region>,
    random_reads_per_s: Vec<f64>,
    data: Data,
    notes: Vec<String>,
}

/// What a measurement left.
pub(crate) struct Measured {
    pub data: Data,
    pub notes: Vec<String>,
    pub random_reads_per_s: Vec<f64>,
}

impl<'a> Run<'a> {
    /// A measurement that has not begun. The machine is looked at beside timings only.
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
            Kind::Timing | Kind::Exact => None,
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

    /// One of two parameters: the one to show, or a tiny one that only shows that everything runs.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.settings.quick { quick } else { full }
    }

    /// How often to repeat: what the user wants, or once if quick, or `unless_told` times.
    pub fn repeat(&self, unless_told: usize) -> usize {
        let told = self.settings.repeat;
        told.unwrap_or_else(|| self.pick(unless_told, 1))
    }

    /// How long to measure: what the user wants, or a moment if quick, or `unless_told` milliseconds.
    pub fn measured(&self, unless_told_ms: u64) -> Duration {
        let unless_told = Duration::from_millis(unless_told_ms);
        let told = self.settings.measured;
        told.unwrap_or_else(|| self.pick(unless_told, QUICK_TIME))
    }

    /// How long to drive a server before what it does counts.
    pub fn warm_up(&self) -> Duration {
        self.pick(Duration::from_millis(300), Duration::from_millis(20))
    }

    /// Cores that may be used.
    pub fn cores(&self) -> usize {
        machine::cores()
    }

    /// Says what takes a while.
    pub fn say(&self, what: impl AsRef<str>) {
        self.progress.say(what.as_ref());
    }

    /// Something that a reader of the figure has to know: what was left out, and why.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        self.progress.say(&note);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a point that is measured once.
    pub fn add(&mut self, point: Point) {
        self.data.add(point);
    }

    /// What has been measured so far.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Measures every case once, then every case again, so that a slow spell of the machine falls on all of them. `measure` gets the case and
    /// the number of the repetition, which is also a good seed.
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

    /// [`Run::rounds`] for cases that are several points each.
    pub fn rounds_of_many<C: std::fmt::Display>(
        &mut self,
        repeat: usize,
        cases: &mut [C],
        mut measure: impl FnMut(&mut C, &Run<'_>, u64) -> Result<Vec<Point>>,
    ) -> Result<()> {
        self.progress.expect(repeat * cases.len());
        for repetition in 0..repeat {
            if let Some(region) = &self.region {
                let reads = region.random_reads_per_s(&[SERVER_CORE], LOOK_TIME)?;
                self.random_reads_per_s.push(reads);
            }
            for case in &mut *cases {
                for point in measure(case, self, repetition as u64)? {
                    self.data.add(point);
                }
                self.progress.step(&case.to_string());
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Measured {
        Measured {
            data: self.data,
            notes: self.notes,
            random_reads_per_s: self.random_reads_per_s,
        }
    }
}

/// How far the machine's own figure spread while something was measured, as part of its median.
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
            measured: None,
        };
        let mut run = Run::new(&settings, Kind::Timing, &heard).unwrap();
        assert_eq!(run.repeat(7), 2);
        run.rounds(2, &mut ["a", "b"], |case, _, repetition| {
            Ok(Point::new("", *case, "here", repetition as f64))
        })
        .unwrap();
        run.note("left out");
        run.note("left out");
        assert_eq!(
            *heard.0.lock().unwrap(),
            [
                "expect 4",
                "a",
                "b",
                "a",
                "b",
                "say left out",
                "say left out"
            ]
        );
        let Measured { data, notes, .. } = run.finish();
        assert_eq!(notes, ["left out"]);
        assert_eq!(data.row("", "b", "here").unwrap().samples, [0.0, 1.0]);
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
