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
    packet::{Message, PacketDevice, RxBatch, TxBatch, Wakeup},
    transports,
};
use serde::Serialize;

#[cfg(feature = "dpdk")]
mod memif;

use crate::{
    lab::{Place, Receiver, tags_stay},
    servers::{CONNECTIONS_MAX, Contender, Kind, Launch},
};

/// The name of both interfaces, each in its namespace.
const INTERFACE: &str = "veth0";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 2);
/// The transports of the kernel's interfaces, the first of which all others are compared with.
const TRANSPORTS: [&str; 3] = ["udp", "udp-plain", "xdp:veth0"];
/// What is not measured here.
#[cfg(not(feature = "dpdk"))]
const LEFT_OUT: &str = "dpdk: left out, this program was built without the feature `dpdk`\n";
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

/// What opens a device.
type Opens = Box<dyn Fn(&Halves) -> Result<Box<dyn PacketDevice>>>;

/// What is measured: a transport with everything at its ends.
struct Way {
    name: String,
    /// What the server is told.
    server: String,
    /// Where the server is reached by this transport.
    server_at: Ipv4Addr,
    /// The devices of its client, of an echo, and of the echo's client.
    client: Opens,
    echo: Opens,
    echo_client: Opens,
}

impl Way {
    /// A transport at the pair of interfaces between both halves.
    fn of_interface(transport: &'static str) -> Way {
        let client =
            || -> Opens { Box::new(move |halves| halves.open(&halves.clients, transport, CLIENT)) };
        Way {
            name: transport.to_owned(),
            server: transport.to_owned(),
            server_at: SERVER,
            client: client(),
            echo: Box::new(move |halves| halves.open(&halves.servers, transport, SERVER)),
            echo_client: client(),
        }
    }
}

/// Every way that there is, and a line for each transport that is left out.
fn ways() -> (Vec<Way>, String) {
    let ways: Vec<Way> = TRANSPORTS.into_iter().map(Way::of_interface).collect();
    #[cfg(feature = "dpdk")]
    return memif::beside(ways);
    #[cfg(not(feature = "dpdk"))]
    (ways, LEFT_OUT.to_owned())
}

/// Measures every transport in turn, as often as the options say.
///
/// # Errors
///
/// If there are no namespaces to be had, or a server does not start.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let halves = Halves::new()?;
    let (ways, mut left_out) = ways();
    let mut rows = Vec::new();
    for way in ways {
        match (way.echo)(&halves) {
            Ok(_) => {
                let row = Row {
                    transport: way.name.clone(),
                    echo_per_s: Vec::new(),
                    reads_per_s: Vec::new(),
                };
                rows.push((row, way));
            }
            Err(error) => left_out += &format!("{}: left out, {error:#}\n", way.name),
        }
    }
    for repetition in 1..=options.repeat {
        for (row, way) in &mut rows {
            progress(&format!("{}: {repetition} of {}", way.name, options.repeat));
            row.echo_per_s.push(halves.echo(way, options.measured)?);
            row.reads_per_s.push(halves.reads(way, options.measured)?);
        }
    }
    let rows = rows.into_iter().map(|(row, _)| row).collect();
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
    fn echo(&self, way: &Way, measured: Duration) -> Result<f64> {
        let device = (way.echo)(self)?;
        let address = device.address()?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let echo = scope.spawn(|| echo(device, &stop));
            let rate = self.drive(&way.echo_client, address, measured);
            stop.store(true, Ordering::Relaxed);
            echo.join().expect("an echo does not panic")?;
            rate
        })
    }

    /// Reads that our server answers in a second.
    fn reads(&self, way: &Way, measured: Duration) -> Result<f64> {
        let launch = Launch {
            contender: Contender::from(Kind::Glimmer),
            threads: 1,
            cores: vec![machine::SERVER_CORE],
            memory_mib: MEMORY_MIB,
            value_bytes: 0,
            udp: true,
            connections_max: CONNECTIONS_MAX,
            arguments: vec!["--packet-transport".into(), way.server.clone()],
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
        let there = SocketAddr::new(way.server_at.into(), address.port());
        self.drive(&way.client, there, measured)
    }

    /// Sends requests from one core, and returns the replies per second.
    fn drive(
        &self,
        client: &dyn Fn(&Halves) -> Result<Box<dyn PacketDevice>>,
        to: SocketAddr,
        measured: Duration,
    ) -> Result<f64> {
        let mut device = client(self)?;
        let core = machine::client_cores(1).first().copied();
        machine::on_core(core, || drive(&mut *device, to, measured))?
    }
}

/// Sends back what arrives.
fn echo(mut device: Box<dyn PacketDevice>, stop: &AtomicBool) -> Result<()> {
    machine::pin([machine::SERVER_CORE])?;
    let mut waiting = Waiting::of(&*device)?;
    let mut received = RxBatch::default();
    while !stop.load(Ordering::Relaxed) {
        waiting.wait()?;
        while device.receive(&mut received) > 0 {
            device.send_back(&mut received);
        }
    }
    Ok(())
}

/// How a thread waits for datagrams: until it is woken, or by looking again and again.
struct Waiting(Option<Poller>);

impl Waiting {
    fn of(device: &dyn PacketDevice) -> Result<Waiting> {
        if let Wakeup::Poll = device.wakeup() {
            return Ok(Waiting(None));
        }
        let poller = Poller::new(1)?;
        poller.watch_level(device.wakeup(), 0)?;
        Ok(Waiting(Some(poller)))
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(poller) = &mut self.0 {
            poller.wait(Some(TICK))?;
        }
        Ok(())
    }
}

/// Keeps requests under way, and counts replies.
fn drive(device: &mut dyn PacketDevice, to: SocketAddr, measured: Duration) -> Result<f64> {
    let send = |device: &mut dyn PacketDevice, count: usize| {
        let mut out = TxBatch::new(device);
        (0..count).for_each(|_| out.push(Message::alone(to, REQUEST)));
        out.finish();
    };
    let mut waiting = Waiting::of(device)?;
    let mut received = RxBatch::default();
    let mut heard = Instant::now();
    // The first one finds the way, and its reply shows it.
    send(device, 1);
    let (mut begin, mut back, mut is_warm) = (Instant::now(), 0u64, false);
    while begin.elapsed() < measured || !is_warm && begin.elapsed() < PATIENCE {
        waiting.wait()?;
        let mut more = 0;
        while device.receive(&mut received) > 0 {
            more += (0..received.count())
                .map(|at| received.datagrams(at))
                .sum::<usize>();
        }
        back += more as u64;
        if more == 0 && heard.elapsed() < TICK {
            continue;
        }
        heard = Instant::now();
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
