//! Decides when a measurement begins.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{Progress, WarmUp, plan::LONGEST, record::Glance, run::Shared, steady::Detector};

/// Interval between two samples of the warm-up.
pub const SAMPLE: Duration = Duration::from_millis(250);
/// Decides when the warm-up is over.
pub struct Warming<'a> {
    shared: &'a Shared<'a>,
    detector: Detector,
    sampled: Option<(Instant, (u64, u64, u64))>,
    pub began: Option<Instant>,
    /// Whether the warm-up ended in a steady state, if that was requested.
    pub steady: Option<bool>,
    /// Its length in seconds.
    pub seconds: f64,
    /// Whether the warm-up is over.
    pub opened: bool,
}

impl<'a> Warming<'a> {
    pub fn new(shared: &'a Shared<'a>) -> Self {
        Warming {
            shared,
            detector: Detector::default(),
            sampled: None,
            began: None,
            steady: None,
            seconds: 0.0,
            opened: false,
        }
    }

    /// Checks the threads' progress and ends the warm-up if it is time.
    pub fn look(&mut self, progress: &mut dyn FnMut(Progress<'_>)) {
        let Shared { plan, ready, .. } = self.shared;
        if self.opened || ready.load(Ordering::Acquire) < plan.all_threads() {
            return;
        }
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        match plan.warm_up {
            // The end is known in advance and announced at once: the window opens on time, however
            // busy this thread's core is.
            WarmUp::Fixed(warm_up) => self.open(warm_up),
            WarmUp::Steady(max) => {
                let glances = self.shared.glances.iter().map(Glance::look);
                let sum = glances.fold((0, 0, 0), |sum, glance| {
                    (sum.0 + glance.0, sum.1 + glance.1, sum.2 + glance.2)
                });
                let (at, before) = *self.sampled.get_or_insert((now, sum));
                let passed = (now - at).as_secs_f64();
                if passed < SAMPLE.as_secs_f64() {
                    return;
                }
                self.sampled = Some((now, sum));
                let operations_per_s = (sum.0 - before.0) as f64 / passed;
                let (hits, reads) = (sum.1 - before.1, sum.1 - before.1 + sum.2 - before.2);
                let hit_ratio = if reads == 0 {
                    1.0
                } else {
                    hits as f64 / reads as f64
                };
                progress(Progress::Warming {
                    seconds: (now - began).as_secs_f64(),
                    operations_per_s,
                });
                let steady = self.detector.push(operations_per_s, hit_ratio);
                if steady || now - began >= max {
                    self.steady = Some(steady);
                    self.open(now - began);
                }
            }
        }
    }

    /// Opens the window this long after the threads began.
    pub fn open(&mut self, warm_up: Duration) {
        let began = self.began.expect("the threads have begun");
        let from = (began + warm_up - self.shared.start).as_nanos() as u64;
        let length = self.shared.plan.measured.unwrap_or(LONGEST).as_nanos() as u64;
        // A thread that has failed has ended the window already.
        if self.shared.window.to() > 0 {
            self.shared.window.open(from, from + length);
        }
        self.seconds = warm_up.as_secs_f64();
        self.opened = true;
    }
}
