//! What was measured of each server in each case.

use glimmer_loadgen::load::Latency;
use glimmer_measure::{noise::Noise, stats::Spread};
use glimmer_notation::{microseconds, per_second};
use serde::Serialize;

use super::{
    scenario::{Keys, Scenario},
    subject::{Body, Measured},
};
use crate::lab::Receiver;

/// The server that all others are compared with first.
pub const MEMCACHED: &str = "memcached";

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Requests answered per second.
    pub operations_per_s: f64,
    /// Latencies of all requests.
    pub latency: Latency,
    /// CPU time of the whole machine per request, in microseconds.
    pub machine_us: f64,
    /// The part of it that client and server used.
    pub own_us: f64,
    /// The share of reads that the accelerator answered; `None` without one.
    pub hit_share: Option<f64>,
    /// The share of reads that found their key, by the accelerator or by the store.
    pub hit_ratio: f64,
    /// Requests that were never answered.
    pub lost: u64,
    /// Stores that the server refused.
    pub refused: u64,
}

impl Sample {
    /// What one measurement gave.
    pub fn of(measured: &Measured) -> Sample {
        let outcome = &measured.outcome;
        Sample {
            operations_per_s: outcome.operations_per_s(),
            latency: Latency::of(&outcome.latency_ns()),
            machine_us: measured.machine_us(),
            own_us: measured.own_us(),
            hit_share: measured.hit_share,
            hit_ratio: outcome.tally.hit_ratio(),
            lost: outcome.tally.lost,
            refused: outcome.tally.refused,
        }
    }

    /// The measurement in a few words.
    pub fn told(&self) -> String {
        let (rate, p50) = (per_second(self.operations_per_s), self.latency.p50_us);
        let share = self.hit_share.map_or(String::new(), |share| {
            format!(", {:.1}% accelerated", share * 100.0)
        });
        format!("{rate}, p50 {}{share}", microseconds(p50))
    }
}

/// The repetitions of one server in one case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The case.
    pub case: String,
    /// Its scenario.
    pub scenario: Scenario,
    /// Its keys, where they are a choice.
    pub keys: Option<Keys>,
    /// The server.
    pub server: String,
    /// What answers reads of hot keys.
    pub body: Body,
    /// The repetitions.
    pub samples: Vec<Sample>,
}

impl Row {
    /// One figure of every repetition.
    pub fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    /// Whether other programs used much of the machine's CPU time.
    fn is_noisy(&self) -> bool {
        let foreign = self.each(|sample| 1.0 - sample.own_us / sample.machine_us);
        Spread::of(&foreign).median > FOREIGN_MAX
    }
}

/// A figure of a sample.
pub type Figure = fn(&Sample) -> f64;
/// Requests per second.
pub const RATE: Figure = |sample| sample.operations_per_s;
/// The median latency in microseconds.
pub const P50: Figure = |sample| sample.latency.p50_us;
/// CPU time of the machine per request, in microseconds.
pub const MACHINE: Figure = |sample| sample.machine_us;
/// CPU time of client and server per request, in microseconds.
pub const OWN: Figure = |sample| sample.own_us;
/// The share of the machine's CPU time that others may use before it says little of a request.
const FOREIGN_MAX: f64 = 0.1;

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The servers' versions.
    pub versions: Vec<String>,
    /// Whether all ran on loopback.
    pub loopback: bool,
    /// Who received for servers with a packet program.
    pub receiver: Receiver,
    /// Keys stored.
    pub keys: u64,
    /// Items for which an accelerator has room.
    pub slots: usize,
    /// Length of one measurement in seconds.
    pub seconds: f64,
    /// Repetitions.
    pub repeat: usize,
    /// Cores of the machine.
    pub cores: usize,
    /// Client threads.
    pub client_threads: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// What else the machine did.
    pub noise: Noise,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Report {
    /// The names of the cases in their order.
    pub fn cases(&self) -> Vec<&str> {
        let mut cases: Vec<&str> = self.rows.iter().map(|row| &row.case[..]).collect();
        cases.dedup();
        cases
    }

    /// A server's row in a case.
    pub fn row(&self, case: &str, server: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| (&row.case[..], &row.server[..]) == (case, server))
    }

    /// A figure of a row over that of another server in the same case, repetition by repetition.
    pub fn over(&self, row: &Row, server: &str, figure: Figure) -> Option<Spread> {
        let other = self
            .row(&row.case, server)
            .filter(|other| other.server != row.server)?;
        Some(Spread::of_ratios(&row.each(figure), &other.each(figure)))
    }

    /// The CPU time per request that says most in a case, and what it is: the machine's, or where
    /// other programs used some of it that of client and server. Threads that receive for
    /// interfaces are of neither, so that only the machine's counts with them.
    pub fn cpu(&self, case: &str) -> (Figure, &'static str) {
        let mut rows = self.rows.iter().filter(|row| row.case == case);
        match self.receiver == Receiver::Sender && rows.any(Row::is_noisy) {
            true => (OWN, "CPU of client and server"),
            false => (MACHINE, "CPU of the machine"),
        }
    }
}
