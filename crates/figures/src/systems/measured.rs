//! Loads a server, and tells what it takes.

use std::{fs, time::Duration};

use anyhow::{Context, Result, bail};
use glimmer_loadgen::{
    driver::Target,
    load::{Outcome, Plan},
};

use super::Running;
use crate::profile::{Calls, Sampler};

/// Threads of a client. More do not help against a few workers.
const CLIENT_THREADS_MAX: usize = 8;
/// Attempts until a measurement in which the server did something. Each is twice as long as the
/// previous one, up to a limit.
const TRIES_MAX: u32 = 8;
const TRY_MAX: Duration = Duration::from_secs(3);

impl Running {
    /// Executes a plan, with as many client threads as there are cores for them.
    pub fn measure(&self, plan: Plan) -> Result<Outcome> {
        self.measure_at(&self.target, plan)
    }

    /// The same, where the server's CPU time is without the looks in vain of a worker that never
    /// sleeps.
    pub fn measure_by_busy_time(&self, plan: Plan) -> Result<Outcome> {
        match self.between.as_ref().is_some_and(|it| it.is_polled()) {
            true => self.measure_by(self.client_cores(), plan, |plan| {
                (self.server).drive_by_busy_time(&self.target, plan, self.threads)
            }),
            false => self.measure(plan),
        }
    }

    /// The same with a client on each of the workers' cores.
    pub fn measure_on_its_cores(&self, plan: Plan) -> Result<Outcome> {
        self.measure_by(self.cores(), plan, |plan| {
            self.server.drive_at(&self.target, plan)
        })
    }

    pub(super) fn measure_at(&self, target: &Target, plan: Plan) -> Result<Outcome> {
        self.measure_by(self.client_cores(), plan, |plan| {
            self.server.drive_at(target, plan)
        })
    }

    fn measure_by(
        &self,
        cores: Vec<usize>,
        plan: Plan,
        drive: impl Fn(&Plan) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let _at_work = self.at_work()?;
        let large = plan.large.map_or(0, |large| large.threads);
        let threads = cores.len().saturating_sub(large);
        let plan = Plan {
            threads: threads.clamp(1, CLIENT_THREADS_MAX),
            cores,
            ..plan
        };
        // On a busy machine, the server may get no CPU time during a short measurement.
        for attempt in 0..TRIES_MAX {
            let longer =
                |measured: Duration| (measured * (1 << attempt)).min(measured.max(TRY_MAX));
            let plan = Plan {
                measured: plan.measured.map(longer),
                ..plan.clone()
            };
            let outcome = drive(&plan)?;
            if outcome.tally.operations() > 0 && outcome.server_cpu_s > 0.0 {
                return Ok(outcome);
            }
        }
        bail!(
            "{} did nothing in {TRIES_MAX} measurements; is the machine busy?",
            self.name
        )
    }

    /// The server's capacity in operations per second, computed from its CPU time per operation:
    /// its throughput if a client without costs kept all workers busy. Unlike the measured rate, it
    /// is meaningful where client and server share cores, and where the client cannot keep many
    /// workers busy.
    pub fn capacity_per_s(&self, outcome: &Outcome) -> f64 {
        self.threads as f64 * 1e9 / outcome.server_ns_per_operation()
    }

    /// Executes a plan. Returns also the part of the server's CPU time that it spends in
    /// the kernel.
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
        let sampler = Sampler::start(self.server.pid(), time, Calls::Unknown)?;
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

    /// Executes a plan. Returns also the part of the server's CPU time that it spends in the
    /// kernel, and the part of samples within calls that send and receive over TCP, for this long
    /// at most, if it was at work.
    pub fn measure_in_tcp(
        &self,
        plan: Plan,
        time: Duration,
    ) -> Result<(Outcome, f64, Option<f64>)> {
        let sampler = Sampler::start(self.server.pid(), time, Calls::Recorded)?;
        let (outcome, kernel) = self.measure_in_parts(plan)?;
        Ok((outcome, kernel, sampler.in_tcp()?))
    }
}
