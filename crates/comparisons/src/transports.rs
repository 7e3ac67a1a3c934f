//! What carries datagrams, side by side: an echo over each transport, and our server's reads over
//! memcached's UDP protocol, one request to a datagram, between two network namespaces.
//!
//! The client uses the same transport as the server, so that it is not the slower end. Echo and
//! server answer datagrams of one length; a reply of the server is longer than its request, as
//! memcached's protocol has it.

use std::{
    fmt,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use glimmer_measure::{report::Table, stats::Spread};
use serde::Serialize;

mod between;
mod echo;
#[cfg(feature = "dpdk")]
mod memif;
mod ways;

use crate::servers::{BusyTime, CONNECTIONS_MAX, Contender, Kind, Launch};

pub use between::Between;
use echo::{Driven, Pace, datagrams_per_s};
use ways::{Halves, Way};

/// The kind of transport that needs a feature.
const DPDK: &str = "dpdk";
/// Requests under way at a time.
const IN_FLIGHT: usize = 256;
const MEMORY_MIB: usize = 64;
/// The header of a datagram of memcached's, and a read.
const REQUEST: &[u8] = b"\0\x01\0\0\0\x01\0\0get key\r\n";

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of one measurement.
    pub measured: Duration,
    /// Repetitions of every measurement.
    pub repeat: usize,
    /// Queues of the interface, each of which has a worker and a thread of the echo.
    pub queues: usize,
}

/// Datagrams per second over one transport, of each repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The transport.
    pub transport: String,
    /// Of an echo.
    pub echo_per_s: Vec<f64>,
    /// Of our server.
    pub reads_per_s: Vec<f64>,
    /// CPU time of all workers for a read, in nanoseconds, without that of looking in vain.
    pub server_ns: Vec<f64>,
}

/// All transports that this machine can do.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// A row for each.
    pub rows: Vec<Row>,
    /// Why others are missing, a line for each.
    pub left_out: String,
}

/// Every way that there is, and a line for each transport that is left out.
fn all_ways(queues: usize) -> (Vec<Way>, String) {
    let interfaces = ways::TRANSPORTS.into_iter();
    let mut ways: Vec<Way> = interfaces.map(Way::of_interface).collect();
    match by_dpdk(queues) {
        Ok(way) => {
            ways.push(way);
            (ways, String::new())
        }
        Err(error) => (ways, format!("{DPDK}: left out, {error:#}\n")),
    }
}

/// The way of this kind: udp, udp-plain, xdp or dpdk.
///
/// # Errors
///
/// The kind is unknown, the program was built without it, or this machine lacks what it needs.
fn way_of_kind(kind: &str) -> Result<Way> {
    let mut interfaces = ways::TRANSPORTS.into_iter();
    match interfaces.find(|(known, _)| *known == kind) {
        Some(interface) => Ok(Way::of_interface(interface)),
        None => by_dpdk(1).context(DPDK),
    }
}

#[cfg(feature = "dpdk")]
fn by_dpdk(queues: usize) -> Result<Way> {
    memif::way(queues)
}

#[cfg(not(feature = "dpdk"))]
fn by_dpdk(_: usize) -> Result<Way> {
    anyhow::bail!("this program was built without the feature `dpdk`")
}

/// Measures every transport in turn, as often as the options say.
///
/// # Errors
///
/// If there are no namespaces to be had, or a server does not start.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let halves = Halves::new(options.queues)?;
    let (ways, mut left_out) = all_ways(options.queues);
    let mut rows = Vec::new();
    for way in ways {
        match way.echo.open(&halves, 1) {
            Ok(_) => {
                let row = Row {
                    transport: way.name.clone(),
                    echo_per_s: Vec::new(),
                    reads_per_s: Vec::new(),
                    server_ns: Vec::new(),
                };
                rows.push((row, way));
            }
            Err(error) => left_out += &format!("{}: left out, {error:#}\n", way.name),
        }
    }
    for repetition in 1..=options.repeat {
        for (row, way) in &mut rows {
            progress(&format!("{}: {repetition} of {}", way.name, options.repeat));
            let pace = Pace::InFlight(IN_FLIGHT);
            let echoed = datagrams_per_s(&halves, way, (REQUEST, pace), options.measured);
            row.echo_per_s.push(echoed?);
            let read = reads(&halves, way, &[pace], options.measured)?[0];
            row.reads_per_s.push(read.per_s());
            let ns = read.server_cpu.as_nanos() as f64;
            row.server_ns.push(ns / read.replies as f64);
        }
    }
    let rows = rows.into_iter().map(|(row, _)| row).collect();
    Ok(Report { rows, left_out })
}

/// Reads that our server answers, at each of these paces.
fn reads(halves: &Halves, way: &Way, paces: &[Pace], measured: Duration) -> Result<Vec<Driven>> {
    let queues = halves.queues;
    let mut arguments = vec!["--packet-transport".into(), way.server.clone()];
    if queues > 1 {
        // Each worker executes what arrives at its queue.
        arguments.extend(["--dispatch".into(), "keyhash".into()]);
    }
    let launch = Launch {
        contender: Contender::from(Kind::Glimmer),
        threads: queues,
        cores: (0..queues).map(echo::core_of).collect(),
        memory_mib: MEMORY_MIB,
        value_bytes: 0,
        udp: true,
        connections_max: CONNECTIONS_MAX,
        arguments,
    };
    let _visit = halves.visit_clients()?;
    let server = launch.start_at(&halves.place())?;
    let address = server.address();
    store(address)?;
    let there = SocketAddr::new(way.server_at.into(), address.port());
    let driven = paces.iter().map(|&pace| {
        let busy = BusyTime::of(&server, queues);
        let (requests, cpu) = ((there, (REQUEST, pace)), || busy.look());
        let driven = echo::drive_from(halves, &way.client, requests, measured, &cpu)?;
        Ok(Driven {
            server_cpu: driven.server_cpu.mul_f64(busy.part()),
            ..driven
        })
    });
    driven.collect()
}

/// Stores the item that is read.
fn store(server: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(b"set key 0 0 8\r\nthe item\r\n")?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    ensure!(&answer == b"STORED\r\n", "the item is not stored");
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "thousand datagrams/s",
            "echo",
            "memcached UDP get",
            "of the echo",
            "of udp",
            "server ns",
        ]);
        let thousands = |rates: &[f64]| {
            let rates: Vec<f64> = rates.iter().map(|rate| rate / 1e3).collect();
            Spread::of(&rates).text(0)
        };
        for row in &self.rows {
            let of_echo = Spread::of_ratios(&row.reads_per_s, &row.echo_per_s);
            let of_udp = Spread::of_ratios(&row.reads_per_s, &self.rows[0].reads_per_s);
            table.row([
                row.transport.clone(),
                thousands(&row.echo_per_s),
                thousands(&row.reads_per_s),
                of_echo.text(2),
                of_udp.text(2),
                Spread::of(&row.server_ns).text(0),
            ]);
        }
        write!(out, "{table}\n{}", self.left_out)
    }
}
