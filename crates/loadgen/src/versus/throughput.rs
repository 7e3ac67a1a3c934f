//! Operations per second, closed loop.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{Bench, GET_SHARE, Scenario, WARM_UP, thousands};
use crate::{
    client::closed::{Burst, Outcome, Plan},
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
    stats::Spread,
    trivial::Trivial,
};

/// A closed-loop scenario and its bursts.
#[derive(Clone, Copy)]
pub struct Shape {
    scenario: Scenario,
    burst: Burst,
}

impl Shape {
    /// The bursts of a scenario, if it is a closed loop on the loaded servers.
    pub fn of(scenario: Scenario) -> Option<Shape> {
        let burst = match scenario {
            Scenario::Pipeline32 => Burst::Single {
                requests: 32,
                get_share: GET_SHARE,
            },
            Scenario::Pipeline1 => Burst::Single {
                requests: 1,
                get_share: GET_SHARE,
            },
            Scenario::Multiget50 => Burst::MultiGet { keys: 50 },
            Scenario::OpenLoop | Scenario::CpuScaling => return None,
        };
        Some(Shape { scenario, burst })
    }
}

/// One server's repetitions.
#[derive(Debug, Serialize)]
pub struct Row {
    pub(super) server: String,
    pub(super) operations_per_s: Vec<f64>,
    client_busy: Vec<f64>,
    server_ns_per_operation: Vec<f64>,
    hits: u64,
    misses: u64,
}

impl Row {
    fn new(server: &str) -> Row {
        let server = server.to_owned();
        Row {
            server,
            operations_per_s: vec![],
            client_busy: vec![],
            server_ns_per_operation: vec![],
            hits: 0,
            misses: 0,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.operations_per_s.push(outcome.operations_per_s());
        self.client_busy.push(outcome.client_busy());
        self.server_ns_per_operation
            .push(outcome.server_ns_per_operation());
        self.hits += outcome.tally.hits;
        self.misses += outcome.tally.misses;
    }
}

/// All servers in one scenario.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub(super) scenario: Scenario,
    pub(super) rows: Vec<Row>,
    ceiling: Row,
}

/// Measures all servers in turn, and with them a server that stores nothing.
pub fn compare(bench: &mut Bench<'_>, shape: Shape) -> Result<Comparison> {
    let options = bench.options;
    let mut rows: Vec<Row> = options
        .servers
        .iter()
        .map(|kind| Row::new(kind.name()))
        .collect();
    let mut ceiling = Row::new("no store at all");
    let trivial = Trivial::start(options.value_bytes, Some(SERVER_CORE), None)?;
    for repetition in 0..options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: options.connections,
            burst: shape.burst,
            popularity: options.popularity,
            warm_up: WARM_UP,
            measured: options.measured,
            seed: repetition as u64,
        };
        for (server, row) in bench.servers.iter().zip(&mut rows) {
            let outcome = machine::on_core(Some(CLIENT_CORE), || server.closed(&plan))??;
            row.add(&outcome);
            let rate = outcome.operations_per_s() / 1e3;
            let (name, of) = (&row.server, options.repeat);
            let scenario = shape.scenario;
            bench.step(format_args!(
                "{scenario:?} {}/{of}: {name} {rate:.0} k/s",
                repetition + 1
            ));
        }
        let nothing = || trivial.closed(&plan);
        ceiling.add(&machine::on_core(Some(CLIENT_CORE), nothing)??);
        bench.step(&ceiling.server);
    }
    Ok(Comparison {
        scenario: shape.scenario,
        rows,
        ceiling,
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let mut table = Table::new([
            match self.scenario {
                Scenario::Multiget50 => "multi-get of 50 keys, reads only".to_owned(),
                Scenario::Pipeline1 => "pipeline 1, 95% reads".to_owned(),
                _ => "pipeline 32, 95% reads".to_owned(),
            },
            "k ops/s".to_owned(),
            format!("{} is so many times this", first.server),
            "client busy".to_owned(),
            "server CPU ns/op".to_owned(),
            "misses".to_owned(),
        ]);
        for row in self.rows.iter().chain([&self.ceiling]) {
            let ratio = Spread::of_ratios(&first.operations_per_s, &row.operations_per_s);
            let missed = row.misses as f64 / (row.hits + row.misses).max(1) as f64;
            table.row([
                row.server.clone(),
                thousands(&Spread::of(&row.operations_per_s)),
                ratio.text(2),
                format!("{:.0}%", Spread::of(&row.client_busy).median * 100.0),
                Spread::of(&row.server_ns_per_operation).text(0),
                format!("{:.3}%", missed * 100.0),
            ]);
        }
        write!(out, "{table}")
    }
}
