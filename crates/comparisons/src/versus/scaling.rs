//! The cost of a second thread: the server's CPU time per operation with two threads compared with
//! one.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{Bench, GET_SHARE, SATURATED, Scenario, say_saturated};
use crate::{
    client::{
        closed::{self, Burst},
        open::{self, Idle},
    },
    row::{Figure, Row},
    servers::{Contender, Kind, Server},
};
use glimmer_loadgen::load::sweep;
use glimmer_measure::{report::Table, stats::Spread};

const THREADS: [usize; 2] = [1, 2];
const CORES: [usize; 2] = [0, 1];
pub const BURST_REQUESTS: u32 = 32;
const BURST: Burst = Burst::Single {
    requests: BURST_REQUESTS,
    get_share: GET_SHARE,
};
/// The fixed rate: well below the maximum of one thread, so that the client leaves enough CPU time
/// to the servers on two cores.
const REQUESTS_PER_S: f64 = 300_000.0;

/// CPU time per operation in nanoseconds at a fixed rate, by number of threads.
const FIXED: [Figure; 2] = [
    Figure::part("fixed_rate_ns", 0),
    Figure::part("fixed_rate_ns", 1),
];
/// The same in a closed loop.
const CLOSED: [Figure; 2] = [
    Figure::part("saturated_ns", 0),
    Figure::part("saturated_ns", 1),
];

/// All configurations.
#[derive(Debug, Serialize)]
pub struct Comparison {
    rows: Vec<Row>,
}

/// The measured configurations of a server, as arguments.
fn variants(kind: Kind) -> &'static [&'static [&'static str]] {
    match kind {
        Kind::Glimmer => &[
            &["--access", "erew"],
            &["--access", "crew"],
            &["--access", "crcw"],
        ],
        Kind::Memcached | Kind::Pogocache | Kind::Masstree => &[&[]],
        // They have only one thread.
        Kind::Redis | Kind::Valkey | Kind::Echo => &[],
    }
}

/// Measurements per repetition.
pub fn cases(servers: &[Contender]) -> usize {
    let variants = servers.iter().map(|server| variants(server.kind()).len());
    THREADS.len() * variants.sum::<usize>()
}

/// Measures our access modes, and memcached if it takes part.
pub fn compare(bench: &mut Bench<'_>) -> Result<Comparison> {
    let options = bench.options;
    let mut rows = Vec::new();
    for contender in &options.servers {
        for variant in variants(contender.kind()) {
            let start = |threads: usize| -> Result<Server> {
                let mut launch = bench.launch(contender, threads, CORES.to_vec());
                launch
                    .arguments
                    .extend(variant.iter().map(ToString::to_string));
                let server = launch.start()?;
                bench.fill(&server)?;
                Ok(server)
            };
            let servers = [start(THREADS[0])?, start(THREADS[1])?];
            let name = [&[contender.name()], *variant].concat().join(" ");
            rows.push(measure(bench, name, &servers)?);
        }
    }
    Ok(Comparison { rows })
}

fn measure(bench: &Bench<'_>, server: String, servers: &[Server; 2]) -> Result<Row> {
    let options = bench.options;
    let mut row = Row::of_server(server, &[&FIXED[..], &CLOSED, &[SATURATED]].concat());
    for repetition in 0..options.repeat {
        let seed = repetition as u64;
        let fixed = open::Plan {
            connections: options.connections,
            burst: BURST,
            arrivals_per_s: REQUESTS_PER_S / f64::from(BURST_REQUESTS),
            popularity: options.popularity,
            idle: Idle::Sleep,
            warm_up: options.warm_up(),
            measured: options.measured,
            seed,
        };
        let saturated = closed::Plan {
            connections: options.connections,
            cores: Vec::new(),
            burst: BURST,
            popularity: options.popularity,
            warm_up: options.warm_up(),
            measured: options.measured,
            seed,
        };
        for (index, server) in servers.iter().enumerate() {
            let at_rate = server.open(&fixed)?.outcome;
            let fixed_ns = at_rate.server_ns_per_operation();
            let saturated_ns = server.closed(&saturated)?.server_ns_per_operation();
            row.add(FIXED[index], fixed_ns);
            row.count(SATURATED, (!sweep::kept_up(&at_rate)).into());
            row.add(CLOSED[index], saturated_ns);
            let (name, threads) = (&row.name, THREADS[index]);
            bench.step(
                Scenario::CpuScaling,
                repetition,
                format_args!(
                    "{name} -t {threads}, {fixed_ns:.0} ns an operation at a fixed rate, \
                     {saturated_ns:.0} ns saturated"
                ),
            );
        }
    }
    Ok(row)
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = format!(
            "at {:.0} k/s in bursts of {BURST_REQUESTS}",
            REQUESTS_PER_S / 1e3
        );
        let saturated = format!("saturated, {BURST_REQUESTS} in flight");
        let mut table = Table::new([
            "server CPU time per operation, ns",
            "load",
            "-t 1",
            "-t 2",
            "-t 2 over -t 1",
        ]);
        for row in &self.rows {
            for (load, [one, two]) in [(&rate, FIXED), (&saturated, CLOSED)] {
                table.row([
                    row.name.clone(),
                    load.clone(),
                    row.spread(one).text(0),
                    row.spread(two).text(0),
                    Spread::of_ratios(row.each(two), row.each(one)).text(2),
                ]);
            }
        }
        write!(out, "{table}")?;
        say_saturated(&self.rows, &FIXED, out)
    }
}
