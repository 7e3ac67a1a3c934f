//! The limit of the load generator: how fast it draws keys, and how fast one of its threads drives
//! a dummy server.

use std::{
    fmt,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Result;
use rand::{SeedableRng, rngs::SmallRng};
use serde::Serialize;

use crate::{
    client::closed::{Burst, Plan},
    row::{self, BUSY, Column, Figure, Row},
    trivial::Trivial,
};
use glimmer_loadgen::workload::{Law, Popularity};
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
    stats::Spread,
};
use glimmer_notation::per_second;

/// Draws between two reads of the clock.
const BLOCK: u64 = 1 << 16;
/// Number of keys to draw from.
const KEYS: u64 = 100_000_000;
const LAWS: [Law; 5] = [
    Law::Uniform,
    Law::Zipf { exponent: 0.5 },
    Law::Zipf { exponent: 0.99 },
    Law::Zipf { exponent: 1.0 },
    Law::Zipf { exponent: 1.2 },
];
/// Requests in flight on each connection.
const PIPELINES: [u32; 4] = [1, 32, 128, 512];

/// What to measure, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Length of one repetition.
    pub measured: Duration,
    /// Repetitions.
    pub repeat: usize,
    /// Connections.
    pub connections: usize,
    /// Length of a value in bytes.
    pub value_bytes: usize,
}

const PER_S: Figure = Figure::repeated("per_s");

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    draws: Vec<Row>,
    requests: Vec<Row>,
}

/// Measures the load generator. `progress` receives a line for each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let cores = machine::cores();
    let core = |wanted: usize| Some(wanted.min(cores - 1));
    let mut draws = Vec::new();
    for law in LAWS {
        progress(&format!("drawing keys, {law}"));
        let rate = |_| machine::on_core(core(CLIENT_CORE), || draws_per_s(law, options.measured));
        let mut row = row(format!("{law}, {KEYS} keys"));
        for per_s in (0..options.repeat).map(rate) {
            row.add(PER_S, per_s?);
        }
        draws.push(row);
    }
    let server = Trivial::start(options.value_bytes, core(SERVER_CORE), None)?;
    let mut requests = Vec::new();
    for in_flight in PIPELINES {
        progress(&format!(
            "{in_flight} requests in flight on each of {} connections",
            options.connections
        ));
        let mut row = row(format!("pipeline {in_flight}"));
        for repetition in 0..options.repeat {
            let plan = Plan {
                connections: options.connections,
                cores: Vec::new(),
                burst: Burst::Single {
                    requests: in_flight,
                    get_share: 0.95,
                },
                popularity: Popularity::zipf(1_000_000, 0.99),
                warm_up: options.measured / 4,
                measured: options.measured,
                seed: repetition as u64,
            };
            let outcome = machine::on_core(core(CLIENT_CORE), || server.closed(&plan))??;
            row.add(PER_S, outcome.operations_per_s());
            row.add(BUSY, outcome.client_busy());
        }
        requests.push(row);
    }
    Ok(Report { draws, requests })
}

fn row(what: String) -> Row {
    Row::new("what", what, &[PER_S, BUSY])
}

fn draws_per_s(law: Law, measured: Duration) -> f64 {
    let mut sampler = Popularity::new(law, KEYS).sampler();
    let mut rng = SmallRng::seed_from_u64(1);
    let begin = Instant::now();
    let (mut draws, mut sum) = (0u64, 0u64);
    while begin.elapsed() < measured {
        (0..BLOCK).for_each(|_| sum = sum.wrapping_add(sampler.draw(&mut rng)));
        draws += BLOCK;
    }
    black_box(sum);
    draws as f64 / begin.elapsed().as_secs_f64()
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |head| {
            Column::new(head, |row: &Row| {
                let Spread { median, min, max } = row.spread(PER_S);
                let [median, min, max] = [median, min, max].map(per_second);
                format!("{median} ({min}..{max})")
            })
        };
        let draws = [row::name("keys drawn by one core"), rate("rate")];
        let requests = [
            row::name("one client core, a server without a store"),
            rate("requests"),
            row::busy(),
        ];
        writeln!(out, "{}", Table::of(&self.draws, draws))?;
        write!(out, "{}", Table::of(&self.requests, requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enough::enough;

    #[test]
    fn every_path_is_gone_through() {
        let measure = |measured| {
            let options = Options {
                measured,
                repeat: 1,
                connections: 4,
                value_bytes: 64,
            };
            run(&options, &|_| {}).unwrap()
        };
        let has_all = |report: &Report| {
            let rows = report.draws.iter().chain(&report.requests);
            rows.flat_map(|row| row.each(PER_S)).all(|&rate| rate > 0.0)
        };
        let report = enough(Duration::from_millis(30), measure, has_all);
        assert!(has_all(&report), "{report:?}");
        assert_eq!(
            (report.draws.len(), report.requests.len()),
            (LAWS.len(), PIPELINES.len())
        );
        assert!(report.to_string().contains("pipeline 512"));
    }
}
