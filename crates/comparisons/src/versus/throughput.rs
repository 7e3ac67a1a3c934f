//! Operations per second in a closed loop.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{
    Bench, ECHO_NAME, GET_SHARE, Scenario,
    ways::{self, RESP_NAME, Way},
};
use crate::{
    client::closed::{Burst, Outcome, Plan},
    row::{self, BUSY, HITS, LOST, MISSES, RATE, Row, SERVER_NS},
    servers::Contender,
    trivial::Trivial,
};
use glimmer_loadgen::driver::Dialect;
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
};
use glimmer_notation::per_second;

/// Sockets of the UDP client. Each receives many datagrams with one system call.
pub const UDP_SOCKETS: u32 = 4;
/// Requests in flight on each connection or socket where there are several.
pub const IN_FLIGHT: u32 = 32;
/// memcached's protocols, the usual one first.
const PROTOCOLS: [Dialect; 3] = [Dialect::Text, Dialect::Meta, Dialect::Binary];

/// A closed-loop scenario and its bursts.
#[derive(Clone, Copy)]
pub struct Shape {
    scenario: Scenario,
    title: &'static str,
    burst: Burst,
    udp: Option<Udp>,
}

/// How datagrams of the UDP client pass through the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Udp {
    /// Each separately, like those of existing clients.
    Plain,
    /// Datagrams of equal length as one segment batch.
    Segmented,
}

impl Shape {
    /// The bursts of a scenario; empty unless it is a closed loop on the loaded servers.
    pub fn of(scenario: Scenario) -> Vec<Shape> {
        let singles = |requests, get_share| Burst::Single {
            requests,
            get_share,
        };
        let one = |title, burst, udp| Shape {
            scenario,
            title,
            burst,
            udp,
        };
        let (title, burst) = match scenario {
            Scenario::Pipeline32 => ("pipeline 32, 95% reads", singles(IN_FLIGHT, GET_SHARE)),
            Scenario::Pipeline1 => ("pipeline 1, 95% reads", singles(1, GET_SHARE)),
            Scenario::Multiget50 => (
                "multi-get of 50 keys, reads only",
                Burst::MultiGet { keys: 50 },
            ),
            Scenario::Protocols => (
                "by protocol, pipeline 32, reads only",
                singles(IN_FLIGHT, 1.0),
            ),
            Scenario::Udp => {
                let reads = singles(IN_FLIGHT, 1.0);
                let plain = "UDP, plain datagrams of one read, as existing clients send them";
                let batches = "UDP, the same in segment batches (UDP_SEGMENT)";
                return vec![
                    one(plain, reads, Some(Udp::Plain)),
                    one(batches, reads, Some(Udp::Segmented)),
                ];
            }
            Scenario::OpenLoop | Scenario::Connections | Scenario::Large | Scenario::CpuScaling => {
                return Vec::new();
            }
        };
        vec![one(title, burst, None)]
    }

    /// The ways in which a server is driven beside these, with their names; empty if it supports
    /// none of them.
    fn ways(self, server: &Contender, servers: &[Contender]) -> Vec<(String, Way)> {
        let is_memcached = server.kind().is_memcached();
        match self.scenario {
            Scenario::Protocols if !is_memcached => vec![],
            Scenario::Protocols => {
                let way = |dialect: Dialect| {
                    let name = format!("{} {}", server.name(), dialect.name());
                    (name, Way::Speaking(dialect))
                };
                PROTOCOLS.map(way).into()
            }
            Scenario::Udp if !is_memcached => vec![],
            Scenario::Udp => {
                let segmented = self.udp == Some(Udp::Segmented);
                vec![(server.name().to_owned(), Way::Udp { segmented })]
            }
            _ => ways::usual(server, servers),
        }
    }

    /// Measurements per repetition.
    pub fn cases(self, servers: &[Contender], has_ceilings: bool) -> usize {
        let ways = |server| self.ways(server, servers).len();
        let cases = servers.iter().map(ways);
        let ceilings = 1 + usize::from(self.is_one_at_a_time());
        cases.sum::<usize>() + if has_ceilings { ceilings } else { 0 }
    }

    /// Whether no connection has more than one request in flight, of one key.
    fn is_one_at_a_time(self) -> bool {
        self.scenario == Scenario::Pipeline1
    }
}

fn row(server: impl Into<String>) -> Row {
    Row::of_server(server, &[RATE, BUSY, SERVER_NS, HITS, MISSES, LOST])
}

fn add(row: &mut Row, outcome: &Outcome) {
    super::add(row, outcome);
    row.count_reads(&outcome.tally);
}

/// All servers in one scenario.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub(super) scenario: Scenario,
    title: &'static str,
    pub(super) rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<Row>,
    echo: Option<Row>,
}

/// Measures all servers in turn, a server without a store, and with one request at a time the bare
/// echo.
pub fn compare(bench: &mut Bench<'_>, shape: Shape) -> Result<Comparison> {
    let options = bench.options;
    let mut cases = bench.cases(|server| shape.ways(server, &options.servers), row);
    let (value_bytes, core) = (options.value_bytes, Some(SERVER_CORE));
    // Like the echo, it does not encrypt.
    let mut ceiling = match (options.is_encrypted(), shape.udp) {
        (true, _) => None,
        (_, Some(udp)) => Some(Trivial::start_udp(
            value_bytes,
            core,
            udp == Udp::Segmented,
        )?),
        (_, None) => Some(Trivial::start(value_bytes, core, None)?),
    }
    .map(|trivial| (trivial, row("no store at all")));
    let mut echo = match shape.is_one_at_a_time() {
        true => bench.echo()?.map(|server| (server, row(ECHO_NAME))),
        false => None,
    };
    for repetition in 0..options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: match shape.udp {
                Some(_) => UDP_SOCKETS as usize,
                None => options.connections,
            },
            cores: options.client_cores.clone(),
            burst: shape.burst,
            popularity: options.popularity,
            warm_up: options.warm_up(),
            measured: options.measured,
            seed: repetition as u64,
        };
        let scenario = shape.scenario;
        for (place, way, row) in &mut cases {
            let server = &bench.servers[*place];
            let target = way.target(server);
            let drive = || server.closed_at(&target, &plan);
            let outcome = machine::on_core(Some(CLIENT_CORE), drive)??;
            add(row, &outcome);
            let (name, rate) = (&row.name, per_second(outcome.operations_per_s()));
            bench.step(scenario, repetition, format_args!("{name}, {rate}"));
        }
        if let Some((trivial, row)) = &mut ceiling {
            let nothing = || trivial.closed(&plan);
            add(row, &machine::on_core(Some(CLIENT_CORE), nothing)??);
            bench.step(scenario, repetition, &row.name);
        }
        if let Some((server, row)) = &mut echo {
            let drive = || server.closed(&plan);
            add(row, &machine::on_core(Some(CLIENT_CORE), drive)??);
            bench.step(scenario, repetition, &row.name);
        }
    }
    Ok(Comparison {
        scenario: shape.scenario,
        title: shape.title,
        rows: cases.into_iter().map(|(_, _, row)| row).collect(),
        ceiling: ceiling.map(|(_, row)| row),
        echo: echo.map(|(_, row)| row),
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = || self.rows.iter().chain(&self.ceiling).chain(&self.echo);
        let first = rows().next().expect("one server at least");
        let in_resp = self.rows.iter().find(|row| row.name == RESP_NAME);
        let mut columns = vec![row::name(self.title), row::scaled("k ops/s", RATE, 1e3, 0)];
        columns.extend(
            [first]
                .into_iter()
                .chain(in_resp)
                .map(|over| row::speedup(RATE, over)),
        );
        columns.extend([row::busy(), row::spread("server CPU ns/op", SERVER_NS, 0)]);
        columns.extend(self.echo.iter().flat_map(row::beside_echo));
        columns.push(row::of_reads("misses", MISSES));
        columns.extend((self.scenario == Scenario::Udp).then(|| row::of_reads("lost", LOST)));
        let table = Table::of(rows(), columns);
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_speedup_for_each_way_of_ours() {
        let row = |name: &str| {
            let mut row = super::row(name);
            for figure in [RATE, BUSY, SERVER_NS] {
                row.add(figure, 1.0);
            }
            row
        };
        let comparison = Comparison {
            scenario: Scenario::Pipeline32,
            title: "",
            rows: ["glimmer", RESP_NAME, "redis"].map(row).into(),
            ceiling: Some(row("none")),
            echo: None,
        };
        let table = comparison.to_string();
        for name in ["glimmer", RESP_NAME] {
            assert!(
                table.contains(&format!("speedup of {name} over this")),
                "{table}"
            );
        }
    }
}
