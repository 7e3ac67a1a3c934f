//! Statistics of each worker of our server.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use anyhow::{Context, Result};
use glimmer_connect::Link;
use glimmer_notation::Location;

use super::Server;
use glimmer_loadgen::driver::Dialect;

/// How long a server may take to answer `stats`.
const PATIENCE: Duration = Duration::from_secs(5);

/// What one worker did for native clients since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    /// Requests executed.
    pub requests: u64,
    /// Datagrams received.
    pub datagrams: u64,
    /// Calls that received them.
    pub receives: u64,
    /// Turns of its loop, with or without requests.
    pub turns: u64,
    /// CPU time of its thread, in microseconds.
    pub cpu_us: u64,
}

impl Worker {
    /// The difference to an earlier state.
    pub fn since(self, before: Worker) -> Worker {
        Worker {
            requests: self.requests - before.requests,
            datagrams: self.datagrams - before.datagrams,
            receives: self.receives - before.receives,
            turns: self.turns - before.turns,
            cpu_us: self.cpu_us - before.cpu_us,
        }
    }

    /// Average number of datagrams per receiving call.
    pub fn burst(self) -> f64 {
        self.datagrams as f64 / self.receives.max(1) as f64
    }

    /// Calls that received something, per turn. Well below one, a worker that never sleeps had
    /// time left.
    pub fn receives_per_turn(self) -> f64 {
        self.receives as f64 / self.turns.max(1) as f64
    }

    /// CPU time per request in nanoseconds.
    pub fn ns_per_request(self) -> f64 {
        self.cpu_us as f64 * 1e3 / self.requests.max(1) as f64
    }
}

impl Server {
    /// What each worker did for native clients. Only for our server.
    pub fn native_workers(&self) -> Result<Vec<Worker>> {
        let (native, all) = (self.stats("native")?, self.stats("workers")?);
        let workers = (0..).map_while(|worker| {
            let of = |figures: &HashMap<String, u64>, name| {
                figures.get(&format!("worker:{worker}:{name}")).copied()
            };
            Some(Worker {
                requests: of(&native, "requests")?,
                datagrams: of(&native, "datagrams")?,
                receives: of(&native, "receives")?,
                turns: of(&all, "turns")?,
                cpu_us: of(&all, "cpu_us")?,
            })
        });
        Ok(workers.collect())
    }

    /// The numeric values in the reply to `stats` with an argument, which may be empty.
    pub fn stats(&self, argument: &str) -> Result<HashMap<String, u64>> {
        let said = self.said_by_stats(argument)?.into_iter();
        let figures = said.filter_map(|(name, value)| Some((name, value.parse().ok()?)));
        Ok(figures.collect())
    }

    /// What a server with memcached's commands answers to `stats settings`; nothing if it has
    /// other commands.
    pub fn settings(&self) -> BTreeMap<String, String> {
        match self.contender().kind().dialect() {
            Dialect::Text => self.said_by_stats("settings").unwrap_or_default(),
            _ => BTreeMap::new(),
        }
    }

    /// The reply to `stats` with an argument, which may be empty.
    fn said_by_stats(&self, argument: &str) -> Result<BTreeMap<String, String>> {
        let address = self.address;
        let location = Location::Tcp(address.ip().to_string(), address.port());
        let mut link = Link::open(&location, &self.admission, PATIENCE)?;
        let figures = link.stats(argument)?;
        let figures = figures.with_context(|| format!("stats {argument} is not known"))?;
        Ok(figures.into_iter().collect())
    }
}
