//! What carries datagrams, side by side: an echo over each transport, and our server's reads over
//! memcached's UDP protocol, one request to a datagram, between two network namespaces.
//!
//! The client uses the same transport as the server, so that it is not the slower end. Echo and
//! server answer datagrams of one length; a reply of the server is longer than its request, as
//! memcached's protocol has it.

use std::{
    fmt,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::fd::{AsFd, AsRawFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use glimmer_measure::{
    machine,
    namespaces::{Namespace, ip},
    report::Table,
    stats::Spread,
};
use glimmer_transport::{
    Poller,
    packet::{Message, PacketDevice, RxBatch, TxBatch},
    transports,
};
use serde::Serialize;

use crate::{
    lab::{Place, Receiver, tags_stay},
    servers::{CONNECTIONS_MAX, Contender, Kind, Launch},
};

/// The name of both interfaces, each in its namespace.
const INTERFACE: &str = "veth0";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 2);
/// The transports, the first of which the others are compared with.
const TRANSPORTS: [&str; 3] = ["udp", "udp-plain", "xdp:veth0"];
/// What is not measured here.
const LEFT_OUT: &str = "dpdk: left out, this build has no such transport\n";
/// Requests under way at a time.
const IN_FLIGHT: usize = 256;
/// A client that hears nothing for so long sends again.
const TICK: Duration = Duration::from_millis(20);
/// Time for the first reply.
const PATIENCE: Duration = Duration::from_secs(5);
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
}

/// All transports that this machine can do.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// A row for each.
    pub rows: Vec<Row>,
    /// Why others are missing, a line for each.
    pub left_out: String,
}

/// The machine's two halves: a namespace for servers and one for clients.
struct Halves {
    servers: Arc<Namespace>,
    clients: Namespace,
}

/// Measures every transport in turn, as often as the options say.
///
/// # Errors
///
/// If there are no namespaces to be had, or a server does not start.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let halves = Halves::new()?;
    let mut left_out = LEFT_OUT.to_owned();
    let mut rows = Vec::new();
    for transport in TRANSPORTS {
        match halves.open(&halves.servers, transport, SERVER) {
            Ok(_) => rows.push(Row {
                transport: transport.to_owned(),
                echo_per_s: Vec::new(),
                reads_per_s: Vec::new(),
            }),
            Err(error) => left_out += &format!("{transport}: left out, {error:#}\n"),
        }
    }
    for repetition in 1..=options.repeat {
        for row in &mut rows {
            let transport = &row.transport;
            progress(&format!("{transport}: {repetition} of {}", options.repeat));
            row.echo_per_s
                .push(halves.echo(transport, options.measured)?);
            row.reads_per_s
                .push(halves.reads(transport, options.measured)?);
        }
    }
    Ok(Report { rows, left_out })
}

impl Halves {
    fn new() -> Result<Halves> {
        let lacks = "two network namespaces: this needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN";
        let (servers, clients) = (Namespace::new(), Namespace::new());
        let (servers, clients) = (servers.context(lacks)?, clients.context(lacks)?);
        let there = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            clients.as_fd().as_raw_fd()
        );
        servers.inside(|| {
            ip(&format!(
                "link add {INTERFACE} type veth peer name {INTERFACE} netns {there}"
            ))
        })?;
        for (namespace, address) in [(&servers, SERVER), (&clients, CLIENT)] {
            namespace.inside(|| -> Result<()> {
                tags_stay(INTERFACE)?;
                ip("link set lo up")?;
                ip(&format!("address add {address}/24 dev {INTERFACE}"))?;
                Ok(ip(&format!("link set {INTERFACE} up"))?)
            })?;
        }
        Ok(Halves {
            servers: Arc::new(servers),
            clients,
        })
    }

    /// A device over a transport, at any port.
    fn open(
        &self,
        namespace: &Namespace,
        transport: &str,
        at: Ipv4Addr,
    ) -> Result<Box<dyn PacketDevice>> {
        let transport = transports::named(transport).map_err(anyhow::Error::msg)?;
        namespace.inside(|| Ok(transport.open((at, 0).into())?))
    }

    /// Datagrams that come back from an echo in a second.
    fn echo(&self, transport: &str, measured: Duration) -> Result<f64> {
        let device = self.open(&self.servers, transport, SERVER)?;
        let address = device.address()?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let echo = scope.spawn(|| echo(device, &stop));
            let rate = self.drive(transport, address, measured);
            stop.store(true, Ordering::Relaxed);
            echo.join().expect("an echo does not panic")?;
            rate
        })
    }

    /// Reads that our server answers in a second.
    fn reads(&self, transport: &str, measured: Duration) -> Result<f64> {
        let launch = Launch {
            contender: Contender::from(Kind::Glimmer),
            threads: 1,
            cores: vec![machine::SERVER_CORE],
            memory_mib: MEMORY_MIB,
            value_bytes: 0,
            udp: true,
            connections_max: CONNECTIONS_MAX,
            arguments: vec!["--packet-transport".into(), transport.into()],
        };
        let place = Place {
            ip: SERVER.into(),
            interface: Some(INTERFACE.into()),
            receiver: Receiver::Sender,
            namespace: Some(self.servers.clone()),
        };
        let _visit = self.clients.visit()?;
        let server = launch.start_at(&place)?;
        let address = server.address();
        store(address)?;
        self.drive(transport, address, measured)
    }

    /// Sends requests from one core, and returns the replies per second.
    fn drive(&self, transport: &str, to: SocketAddr, measured: Duration) -> Result<f64> {
        let mut device = self.open(&self.clients, transport, CLIENT)?;
        let core = machine::client_cores(1).first().copied();
        machine::on_core(core, || drive(&mut *device, to, measured))?
    }
}

/// Sends back what arrives.
fn echo(mut device: Box<dyn PacketDevice>, stop: &AtomicBool) -> Result<()> {
    machine::pin([machine::SERVER_CORE])?;
    let mut poller = Poller::new(1)?;
    poller.watch_level(device.wakeup(), 0)?;
    let mut received = RxBatch::default();
    while !stop.load(Ordering::Relaxed) {
        poller.wait(Some(TICK))?;
        while device.receive(&mut received) > 0 {
            device.send_back(&mut received);
        }
    }
    Ok(())
}

/// Keeps requests under way, and counts replies.
fn drive(device: &mut dyn PacketDevice, to: SocketAddr, measured: Duration) -> Result<f64> {
    let send = |device: &mut dyn PacketDevice, count: usize| {
        let mut out = TxBatch::new(device);
        (0..count).for_each(|_| out.push(Message::alone(to, REQUEST)));
        out.finish();
    };
    let mut poller = Poller::new(1)?;
    poller.watch_level(device.wakeup(), 0)?;
    let mut received = RxBatch::default();
    // The first one finds the way, and its reply shows it.
    send(device, 1);
    let (mut begin, mut back, mut is_warm) = (Instant::now(), 0u64, false);
    while begin.elapsed() < measured || !is_warm && begin.elapsed() < PATIENCE {
        poller.wait(Some(TICK))?;
        let mut more = 0;
        while device.receive(&mut received) > 0 {
            more += (0..received.count())
                .map(|at| received.datagrams(at))
                .sum::<usize>();
        }
        back += more as u64;
        match (is_warm, more) {
            (false, 1..) => {
                (begin, back, is_warm) = (Instant::now(), 0, true);
                send(device, IN_FLIGHT);
            }
            (false, 0) => send(device, 1),
            // Everything that was under way is lost.
            (true, 0) => send(device, IN_FLIGHT),
            (true, _) => send(device, more),
        }
    }
    ensure!(back > 0, "no datagram came back from {to}");
    Ok(back as f64 / begin.elapsed().as_secs_f64())
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
            ]);
        }
        write!(out, "{table}\n{}", self.left_out)
    }
}
