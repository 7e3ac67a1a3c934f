//! Large values: bytes per second of values of 10 KB, 100 KB and 1 MB, with clients of different
//! habits. A server that suits one client may not suit another, so that none of them decides alone.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{Bench, Scenario};
use crate::{
    client::{
        VALUE_BYTES_MAX,
        closed::{Burst, Plan},
    },
    row::{self, BUSY, Figure, HITS, MISSES, Row},
    servers::{Contender, Launch, Server},
};
use glimmer_loadgen::{
    load::{self, Pass},
    workload::Popularity,
};
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
    stats::Spread,
};

/// What a client of large values is like.
#[derive(Clone, Copy, Debug, Serialize)]
struct Habit {
    connections: usize,
    /// Requests in flight on each connection.
    in_flight: u32,
    /// Bytes that it reads at a time, at most.
    read_bytes: usize,
}

const READ_SMALL: usize = 64 << 10;
const READ_LARGE: usize = 1 << 20;
/// The most requests in flight on a connection.
pub const IN_FLIGHT_MAX: u32 = 8;
/// The clients, whatever `--connections` says. Each of the three habits meets both values of each
/// of the others, which takes half of all combinations. The most in flight, 64 values, bounds the
/// client's memory.
const HABITS: [Habit; 4] = [
    Habit::new(1, 1, READ_SMALL),
    Habit::new(1, IN_FLIGHT_MAX, READ_LARGE),
    Habit::new(8, 1, READ_LARGE),
    Habit::new(8, IN_FLIGHT_MAX, READ_SMALL),
];

impl Habit {
    const fn new(connections: usize, in_flight: u32, read_bytes: usize) -> Habit {
        Habit {
            connections,
            in_flight,
            read_bytes,
        }
    }

    /// In a table. A client that writes reads short replies, so that its reads do not matter.
    fn name(self, load: Load) -> String {
        let Habit {
            connections,
            in_flight,
            read_bytes,
        } = self;
        let plural = if connections == 1 { "" } else { "s" };
        let name = format!("{connections} connection{plural}, {in_flight} in flight");
        match load {
            Load::Get => format!("{name}, read({} KiB)", read_bytes >> 10),
            Load::Set => name,
        }
    }
}

/// Bytes of values in every server: more than most caches of a processor hold.
const DATA_BYTES: usize = 256 << 20;
/// The values take at most this part (1 / n) of a server's memory, so that nothing is evicted.
const MEMORY_PART: usize = 8;

/// Lengths of values in bytes, with their names and the loads that are measured.
const SIZES: [(usize, &str, &[Load]); 3] = [
    (10 << 10, "10 KB", &[Load::Get]),
    (100 << 10, "100 KB", &[Load::Get, Load::Set]),
    (VALUE_BYTES_MAX, "1 MB", &[Load::Get, Load::Set]),
];

/// What a client does with large values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Load {
    Get,
    Set,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Load::Get => "GET",
            Load::Set => "SET",
        }
    }
}

const BYTES: Figure = Figure::repeated("value_bytes_per_s");
/// CPU time of the server for a MiB of values, in microseconds.
const SERVER_US: Figure = Figure::repeated("server_us_per_mib");

/// All servers under one load.
#[derive(Debug, Serialize)]
struct Measured {
    size: &'static str,
    value_bytes: usize,
    load: Load,
    clients: Vec<Client>,
}

/// All servers with one client.
#[derive(Debug, Serialize)]
struct Client {
    #[serde(flatten)]
    habit: Habit,
    rows: Vec<Row>,
}

/// All loads.
#[derive(Debug, Serialize)]
pub struct Comparison {
    tables: Vec<Measured>,
}

/// Measurements per repetition.
pub fn cases(servers: &[Contender]) -> usize {
    servers.len() * HABITS.len() * SIZES.iter().map(|(_, _, loads)| loads.len()).sum::<usize>()
}

/// Measures all servers in turn. They are started again for each length.
pub fn compare(bench: &mut Bench<'_>) -> Result<Comparison> {
    let mut tables = Vec::new();
    for (value_bytes, size, loads) in SIZES {
        let keys = keys(bench.options.memory_mib, value_bytes);
        let servers = start(bench, value_bytes, keys)?;
        for &load in loads {
            let clients = HABITS.map(|habit| {
                let rows = measure(bench, &servers, (size, value_bytes), keys, (load, habit))?;
                Ok(Client { habit, rows })
            });
            tables.push(Measured {
                size,
                value_bytes,
                load,
                clients: clients.into_iter().collect::<Result<_>>()?,
            });
        }
    }
    Ok(Comparison { tables })
}

/// Number of keys for values of a length.
fn keys(memory_mib: usize, value_bytes: usize) -> u32 {
    let data_bytes = DATA_BYTES.min((memory_mib << 20) / MEMORY_PART);
    (data_bytes / value_bytes).max(1) as u32
}

/// Starts every server and stores all keys in each.
fn start(bench: &mut Bench<'_>, value_bytes: usize, keys: u32) -> Result<Vec<Server>> {
    let options = bench.options;
    let mut servers = Vec::new();
    for contender in &options.servers {
        let launch = Launch {
            value_bytes,
            udp: false,
            ..bench.launch(contender, 1, vec![SERVER_CORE])
        };
        let server = launch.start()?;
        let fill = || server.pass(Pass::Write, 0..keys, |_| {});
        machine::on_core(Some(CLIENT_CORE), fill)??;
        bench.note_settings(&server);
        servers.push(server);
    }
    Ok(servers)
}

fn measure(
    bench: &mut Bench<'_>,
    servers: &[Server],
    (size, value_bytes): (&str, usize),
    keys: u32,
    (load, habit): (Load, Habit),
) -> Result<Vec<Row>> {
    let figures = [BYTES, BUSY, SERVER_US, HITS, MISSES];
    let row = |server: &Server| Row::of_server(server.name(), &figures);
    let mut rows: Vec<Row> = servers.iter().map(row).collect();
    let mib = value_bytes as f64 / f64::from(1 << 20);
    for repetition in 0..bench.options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: habit.connections,
            cores: bench.options.client_cores.clone(),
            burst: Burst::Single {
                requests: habit.in_flight,
                get_share: if load == Load::Get { 1.0 } else { 0.0 },
            },
            popularity: Popularity::uniform(u64::from(keys)),
            warm_up: bench.options.warm_up(),
            measured: bench.options.measured,
            seed: repetition as u64,
        };
        let plan = load::Plan {
            read_bytes: Some(habit.read_bytes),
            ..plan.with_values(value_bytes)
        };
        for (server, row) in servers.iter().zip(&mut rows) {
            let outcome = machine::on_core(Some(CLIENT_CORE), || server.drive(&plan))??;
            let bytes_per_s = outcome.operations_per_s() * value_bytes as f64;
            row.add(BYTES, bytes_per_s);
            row.add(BUSY, outcome.client_busy());
            row.add(SERVER_US, outcome.server_ns_per_operation() / 1e3 / mib);
            row.count(HITS, outcome.tally.hits);
            row.count(MISSES, outcome.tally.misses);
            let (name, client) = (&row.name, habit.name(load).replace("KiB", "k"));
            let load = load.name().to_lowercase();
            // Progress lines are lower-case but for units.
            let size = size.replace("KB", "k").replace("MB", "M");
            let line = format_args!(
                "{load} {size}, {client}: {name}, {:.0} M bytes/s",
                bytes_per_s / 1e6
            );
            bench.step(Scenario::Large, repetition, line);
        }
    }
    Ok(rows)
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        row::apart(&self.tables, out)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.clients[0].rows[0].name;
        let mut table = Table::new([
            format!("{} of {}", self.load.name(), self.size),
            "server".to_owned(),
            "GB/s".to_owned(),
            format!("speedup of {first} over this"),
            "client busy".to_owned(),
            "server CPU µs/MiB".to_owned(),
            format!("CPU of {first} / CPU of this"),
            "misses".to_owned(),
        ]);
        for Client { habit, rows } in &self.clients {
            let first = &rows[0];
            for row in rows {
                let gb_per_s: Vec<f64> = row.each(BYTES).iter().map(|bytes| bytes / 1e9).collect();
                let over = |figure| Spread::of_ratios(first.each(figure), row.each(figure)).text(2);
                let misses = row.counted(MISSES);
                let reads = (row.counted(HITS) + misses).max(1) as f64;
                table.row([
                    habit.name(self.load),
                    row.name.clone(),
                    Spread::of(&gb_per_s).text(2),
                    over(BYTES),
                    format!("{:.0}%", row.spread(BUSY).median * 100.0),
                    row.spread(SERVER_US).text(0),
                    over(SERVER_US),
                    format!("{:.3}%", misses as f64 / reads * 100.0),
                ]);
            }
        }
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_habit_meets_both_values_of_the_others() {
        let of = |habit: &Habit| {
            [
                habit.connections,
                habit.in_flight as usize,
                habit.read_bytes,
            ]
        };
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let pairs: BTreeSet<_> = HABITS
                .iter()
                .map(of)
                .map(|of| (of[one], of[other]))
                .collect();
            assert_eq!(pairs.len(), 4, "{pairs:?}");
        }
        let names = |load| HABITS.map(|habit| habit.name(load));
        assert_eq!(
            names(Load::Get)[1],
            "1 connection, 8 in flight, read(1024 KiB)"
        );
        let writes: BTreeSet<_> = names(Load::Set).into();
        assert_eq!(writes.len(), 4, "{writes:?}");
    }

    #[test]
    fn the_values_fit_into_the_servers() {
        assert_eq!(keys(4096, 10 << 10), 26_214);
        for (value_bytes, _, _) in SIZES {
            let bytes = keys(64, value_bytes) as usize * value_bytes;
            assert!((7 << 20..=8 << 20).contains(&bytes), "{bytes}");
        }
        assert_eq!(keys(1, VALUE_BYTES_MAX), 1);
    }
}
