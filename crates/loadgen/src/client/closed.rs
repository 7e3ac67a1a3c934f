//! Closed loop: every connection sends a burst, waits for all its replies, and sends the next. Measures what a server can do at most.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{Connection, Protocol, Tally, poll::Poll};
use crate::{
    machine,
    popularity::{Popularity, Sampler},
};

/// A server that is silent for so long has failed.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What a connection sends at a time.
#[derive(Clone, Copy, Debug)]
pub enum Burst {
    /// So many requests, each a read with this probability, else a write.
    Single {
        /// Requests in flight on a connection.
        requests: u32,
        /// Probability of a read.
        get_share: f64,
    },
    /// One read of so many keys.
    MultiGet {
        /// Keys in the request.
        keys: u32,
    },
}

/// Draws bursts of requests.
pub struct Bursts {
    burst: Burst,
    popularity: Sampler,
    rng: SmallRng,
    numbers: Vec<u32>,
    version: u32,
}

impl Bursts {
    /// The same seed draws the same requests.
    pub fn new(burst: Burst, popularity: Popularity, seed: u64) -> Bursts {
        let rng = SmallRng::seed_from_u64(seed);
        Bursts {
            burst,
            popularity: popularity.sampler(),
            rng,
            numbers: Vec::new(),
            version: 0,
        }
    }

    /// Appends a burst to what a connection is about to send.
    #[inline]
    pub fn build(&mut self, protocol: &impl Protocol, connection: &mut Connection) {
        let Connection { out, steps, .. } = connection;
        match self.burst {
            Burst::Single {
                requests,
                get_share,
            } => {
                let reads_below = (get_share * f64::from(u32::MAX)) as u32;
                for _ in 0..requests {
                    let number = self.popularity.draw(&mut self.rng) as u32;
                    if self.rng.random::<u32>() < reads_below {
                        protocol.get(number, out, steps);
                    } else {
                        self.version = self.version.wrapping_add(1);
                        protocol.set(number, self.version, out, steps);
                    }
                }
            }
            Burst::MultiGet { keys } => {
                self.numbers.clear();
                let draw = |_| self.popularity.draw(&mut self.rng) as u32;
                self.numbers.extend((0..keys).map(draw));
                protocol.multi_get(&self.numbers, out, steps);
            }
        }
    }
}

/// How long to measure, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Connections, all driven by the calling thread.
    pub connections: usize,
    /// What each sends at a time.
    pub burst: Burst,
    /// Which keys.
    pub popularity: Popularity,
    /// Goes before and is not counted.
    pub warm_up: Duration,
    /// What is counted.
    pub measured: Duration,
    /// Seed of keys and verbs.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Operations in the measured time.
    pub tally: Tally,
    /// The measured time in seconds.
    pub seconds: f64,
    /// CPU seconds of the client's thread in that time.
    pub client_cpu_s: f64,
    /// CPU seconds of the server in that time.
    pub server_cpu_s: f64,
}

impl Outcome {
    /// Keys read and written per second.
    pub fn operations_per_s(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }

    /// The client's CPU time as part of the time that passed: near one, the client was the limit and not the server.
    pub fn client_busy(&self) -> f64 {
        self.client_cpu_s / self.seconds
    }

    /// CPU time of the server per operation in nanoseconds.
    pub fn server_ns_per_operation(&self) -> f64 {
        self.server_cpu_s * 1e9 / self.tally.operations() as f64
    }
}

/// A moment of a measurement.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    at: Instant,
    tally: Tally,
    client_cpu: Duration,
    server_cpu: Duration,
}

impl Sample {
    pub(super) fn take(
        at: Instant,
        tally: Tally,
        server_cpu: &dyn Fn() -> Result<Duration>,
    ) -> Result<Sample> {
        Ok(Sample {
            at,
            tally,
            client_cpu: machine::thread_cpu(),
            server_cpu: server_cpu()?,
        })
    }

    pub(super) fn until(&self, end: &Sample) -> Outcome {
        Outcome {
            tally: end.tally.since(&self.tally),
            seconds: (end.at - self.at).as_secs_f64(),
            client_cpu_s: (end.client_cpu - self.client_cpu).as_secs_f64(),
            server_cpu_s: end.server_cpu.saturating_sub(self.server_cpu).as_secs_f64(),
        }
    }
}

/// Drives a server as fast as it answers. `server_cpu` says how much CPU time the server has used so far.
pub fn run(
    address: SocketAddr,
    protocol: &impl Protocol,
    plan: &Plan,
    server_cpu: &dyn Fn() -> Result<Duration>,
) -> Result<Outcome> {
    ensure!(plan.connections > 0, "a client has at least one connection");
    let open = |_| Connection::open(address);
    let mut connections = (0..plan.connections)
        .map(open)
        .collect::<Result<Vec<_>>>()?;
    let mut poll = Poll::new(&connections)?;
    let mut bursts = Bursts::new(plan.burst, plan.popularity, plan.seed);
    let mut tally = Tally::default();

    let measure_from = Instant::now() + plan.warm_up;
    let mut first: Option<Sample> = None;
    let mut heard = Instant::now();
    for connection in &mut connections {
        bursts.build(protocol, connection);
        connection.send()?;
    }
    loop {
        let before = tally.operations();
        for place in poll.ready_ms(100)? {
            let connection = &mut connections[place];
            if connection.has_output() {
                connection.send()?;
            }
            connection.receive(protocol, &mut tally, |_| {})?;
            if connection.steps.is_empty() {
                bursts.build(protocol, connection);
                connection.send()?;
            }
        }
        let now = Instant::now();
        if tally.operations() > before {
            heard = now;
        } else if now - heard > SILENCE_MAX {
            bail!(
                "the server has not answered for {} s",
                SILENCE_MAX.as_secs()
            );
        } else {
            // A burst larger than the socket's buffer goes out as room appears.
            connections
                .iter_mut()
                .filter(|c| c.has_output())
                .try_for_each(Connection::send)?;
        }
        match &first {
            None if now >= measure_from => first = Some(Sample::take(now, tally, server_cpu)?),
            Some(first) if now >= first.at + plan.measured => {
                return Ok(first.until(&Sample::take(now, tally, server_cpu)?));
            }
            _ => {}
        }
    }
}
