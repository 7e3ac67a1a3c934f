//! The results as a table.

use std::fmt;

use glimmer_loadgen::{
    load::{LargeApart, Latency},
    workload::{Law, Workload},
};
use glimmer_measure::{
    noise::Noise,
    report::{Column, Table},
    stats::Spread,
};
use glimmer_notation::per_second;
use serde::Serialize;

use super::{LargePace, Load};
use crate::servers::{self, Described};

/// Repetitions whose p99 spread more widely than this, relative to their median, are marked.
const SPREAD_MAX: f64 = 0.5;

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Latencies of requests for values of up to 1400 bytes.
    pub small: Latency,
    /// Latencies of the large requests, if any were sent.
    pub large: Option<Latency>,
    /// Large requests that were answered, per second.
    pub large_per_s: f64,
    /// How late the client sent its requests.
    pub client_late: Latency,
    /// CPU time of the server in seconds per second.
    pub server_cores: f64,
    /// Memory of the server at the end, in MiB.
    pub server_mib: f64,
    /// Connections of slow readers that the server closed.
    pub closed: u64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Requests over UDP that were never answered.
    pub lost: u64,
    /// Whether the server could not keep up.
    pub saturated: bool,
}

/// The repetitions of one server at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The server, with its dispatch policy.
    pub server: String,
    /// Its threads.
    pub threads: usize,
    /// Offered requests per second.
    pub requests_per_s: f64,
    /// What was sent beside the small requests.
    pub load: Load,
    /// The core of the client.
    pub client_core: usize,
    /// Whether no thread of the server may run on that core.
    pub client_has_its_core: bool,
    /// The repetitions.
    pub samples: Vec<Sample>,
}

impl Row {
    /// One figure of every repetition.
    pub fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    /// The same of a figure that is not told of few requests, and is then not a number.
    fn each_told(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.each(|sample| figure(sample).unwrap_or(f64::NAN))
    }

    /// Latencies of small requests, p99 in microseconds.
    pub fn p99_us(&self) -> Vec<f64> {
        self.each_told(|sample| sample.small.p99_us)
    }

    /// What a reader has to know before trusting this row.
    pub(super) fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        let count = self
            .samples
            .iter()
            .filter(|sample| sample.saturated)
            .count();
        if count > 0 {
            remarks.push(format!("SATURATED in {count} of {}", self.samples.len()));
        }
        // Of few requests, the longest counts: a p99 is not told.
        let slow = Spread::of(&self.each(|sample| sample.small.slow().1));
        if slow.width() > SPREAD_MAX {
            remarks.push("NOISY".to_owned());
        }
        let lost: u64 = self.samples.iter().map(|sample| sample.lost).sum();
        if lost > 0 {
            remarks.push(format!("LOST {lost}"));
        }
        let missed: u64 = self.samples.iter().map(|sample| sample.misses).sum();
        if missed > 0 {
            remarks.push(format!("MISSED {missed}"));
        }
        let closed: u64 = self.samples.iter().map(|sample| sample.closed).sum();
        if closed > 0 {
            remarks.push(format!("CLOSED {closed} slow readers"));
        }
        let late = Spread::of(&self.each(|sample| sample.client_late.slow().1)).median;
        if late > slow.median / 2.0 {
            remarks.push(format!("CLIENT LATE by {late:.0} µs"));
        }
        remarks.join(", ")
    }
}

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The servers.
    pub servers: Vec<Described>,
    /// The requests.
    pub workload: Workload,
    /// Connections of the small requests.
    pub connections: usize,
    /// Connections and threads of the large requests.
    pub large: LargeApart,
    /// When the large requests were sent.
    pub large_pace: LargePace,
    /// Clients that took the largest value slowly.
    pub slow_readers: usize,
    /// Each server's `-m` in MiB; Redis has no limit.
    pub memory_mib: usize,
    /// Length of one measurement in seconds.
    pub seconds: f64,
    /// Repetitions.
    pub repeat: usize,
    /// Cores of the machine.
    pub cores: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// What else the machine did.
    pub noise: Noise,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Report {
    /// The other load of the same server at the same rate.
    fn alone(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|other| {
            other.load == Load::Alone
                && (&other.server, other.threads, other.requests_per_s)
                    == (&row.server, row.threads, row.requests_per_s)
        })
    }

    fn table(&self, threads: usize, rate: f64) -> Option<(String, Table)> {
        let of_here = |row: &&Row| row.threads == threads && row.requests_per_s == rate;
        let mut rows: Vec<&Row> = self.rows.iter().filter(of_here).collect();
        // A server's loads side by side, and servers in the order of their start.
        let place = |row: &&Row| {
            self.rows
                .iter()
                .position(|other| other.server == row.server)
        };
        rows.sort_by_key(|row| (place(row), row.load));
        let first = rows.first()?;
        let text = |head: &str, figure: fn(&Sample) -> f64| {
            Column::new(head, move |row: &Row| Spread::of(&row.each(figure)).text(0))
        };
        let told = |head: &str, figure: fn(&Sample) -> Option<f64>| {
            Column::new(head, move |row: &Row| {
                Spread::of(&row.each_told(figure)).text(0)
            })
        };
        // Empty where no large requests were sent.
        let large = |head: &str, figure: fn(&Sample, Latency) -> Option<f64>| {
            Column::new(head, move |row: &Row| {
                let of = |sample: &Sample| {
                    let large = sample.large?;
                    Some(figure(sample, large).unwrap_or(f64::NAN))
                };
                let values: Option<Vec<f64>> = row.samples.iter().map(of).collect();
                values.map_or(String::new(), |values| Spread::of(&values).text(0))
            })
        };
        let head = format!("small requests, -t {threads}, {}", per_second(rate));
        let columns = [
            Column::new(head, |row: &Row| {
                format!("{}, {}", row.server, row.load.name())
            }),
            text("p50 µs", |sample| sample.small.p50_us),
            told("p99 µs", |sample| sample.small.p99_us),
            told("p99.9 µs", |sample| sample.small.p999_us),
            Column::new("p99 over alone", |row: &Row| {
                let ratio = self.alone(row).filter(|_| row.load != Load::Alone);
                let ratio = ratio.map(|alone| Spread::of_ratios(&row.p99_us(), &alone.p99_us()));
                ratio.map_or(String::new(), |ratio| ratio.text(1))
            }),
            large("p50 of large, µs", |_, large| Some(large.p50_us)),
            large("p99 of large, µs", |_, large| large.p99_us),
            large("large per s", |sample, _| Some(sample.large_per_s)),
            Column::new("server cores", |row: &Row| {
                let cores = row.each(|sample| sample.server_cores);
                format!("{:.2}", Spread::of(&cores).median)
            }),
            text("server MiB", |sample| sample.server_mib),
            Column::new("remarks", Row::remarks),
        ];
        let table = Table::of(rows.iter().copied(), columns);
        let shared = match first.client_has_its_core {
            true => "of its own".to_owned(),
            false => "that it shares with the server, so compare rows only".to_owned(),
        };
        let client = format!("The client runs on core {}, {shared}.", first.client_core);
        Some((client, table))
    }
}

/// The values of a list in their order, each once.
fn distinct<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = match self.workload.law {
            Law::Trimodal { large_share, .. } => large_share * 100.0,
            _ => 0.0,
        };
        servers::list(&self.servers, out)?;
        let (max, connections) = (self.workload.sizes.max(), self.large.connections);
        let large = match self.large_pace {
            LargePace::Due => format!(
                "{share}% of the requests are for values of 1500 to {max} bytes, on {connections} \
                 connections of their own; the others have {}",
                self.connections
            ),
            LargePace::Saturating => format!(
                "{connections} further connections ask for values of 1500 to {max} bytes as fast \
                 as they are answered; the others are {}",
                self.connections
            ),
        };
        writeln!(
            out,
            "{} keys, {:.0}% reads. Beside large: {large}. Poisson arrivals; latency counts from \
             the time a request was due. Median (min..max) of {} repetitions of {} s, all servers \
             in turn.",
            self.workload.keys,
            self.workload.mix.get * 100.0,
            self.repeat,
            self.seconds,
        )?;
        if self.slow_readers > 0 {
            writeln!(
                out,
                "Beside slow readers: {} connections take a value of {max} bytes at 640 KB/s each. \
                 Servers have -m {}, except Redis.",
                self.slow_readers, self.memory_mib,
            )?;
        }
        for threads in distinct(self.rows.iter().map(|row| row.threads)) {
            for rate in distinct(self.rows.iter().map(|row| row.requests_per_s)) {
                if let Some((client, table)) = self.table(threads, rate) {
                    write!(out, "\n{client}\n\n{table}")?;
                }
            }
        }
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        write!(out, "{}", self.noise)
    }
}
