//! What a server spends and does during a measurement, beside its outcome.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use glimmer_loadgen::load::{Outcome, Plan};

use super::Running;
use crate::profile::Sampler;

impl Running {
    /// Executes a plan. Returns also the part of the server's CPU time that it spent in the kernel.
    pub fn measure_in_parts(&self, plan: Plan) -> Result<(Outcome, f64)> {
        let before = self.cpu_ticks()?;
        let outcome = self.measure(plan)?;
        let after = self.cpu_ticks()?;
        let [user, kernel] = [0, 1].map(|part| (after[part] - before[part]) as f64);
        Ok((outcome, kernel / (user + kernel).max(1.0)))
    }

    /// Executes a plan. Returns also how many turns the workers of our server took per request.
    pub fn measure_turns(&self, plan: Plan) -> Result<(Outcome, f64)> {
        let count = || -> Result<[u64; 2]> {
            let figures = self.server.stats("glimmer")?;
            let of = |name| figures.get(name).copied().context("no count of turns");
            Ok([of("turns")?, of("requests")?])
        };
        let before = count()?;
        let outcome = self.measure(plan)?;
        let after = count()?;
        let [turns, requests] = [0, 1].map(|which| (after[which] - before[which]) as f64);
        Ok((outcome, turns / requests.max(1.0)))
    }

    /// Executes a plan twice. Returns the second outcome, and the share of the server's time that
    /// went into copying during the first, for this long at most, if it was at work.
    pub fn measure_copying(&self, plan: Plan, time: Duration) -> Result<(Outcome, Option<f64>)> {
        let sampler = Sampler::start(self.server.pid(), time)?;
        self.measure(plan.clone())?;
        let copying = sampler.copying()?;
        Ok((self.measure(plan)?, copying))
    }

    /// CPU time of the server outside and inside the kernel.
    fn cpu_ticks(&self) -> Result<[u64; 2]> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.server.pid()))?;
        // The name before it may have any characters. `utime` and `stime` are fields 14 and 15.
        let (_, fields) = text.rsplit_once(')').context("no name in stat")?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
        let mut next = || anyhow::Ok(ticks.next().context("stat is too short")??);
        Ok([next()?, next()?])
    }
}
