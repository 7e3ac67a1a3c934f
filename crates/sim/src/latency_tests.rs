//! The server's latencies, held against those that clients measure while something stalls. Nothing
//! but stalls takes virtual time, so both have the same to measure.

use crate::clock::SimClock;
use crate::encrypted::{ClientStream, over};
use crate::server::Silent;
use glimmer_base::limits::SAMPLED_TURNS_EVERY;
use glimmer_node::{Command, Devices, DrivenWorker, Rest};
use glimmer_proto::Accepts;
use glimmer_server::{Config, DrivenServer, HugepagePolicy};
use glimmer_transport::stream::{
    ByteStream, LocalListener, LocalStream, Ready, Received, Sent, StreamFaults, StreamListener,
};
use glimmer_transport::{Endpoint, Wakeup};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SMALL_BYTES: usize = 100;
const LARGE_BYTES: usize = 64 << 10;
/// Room in a connection whose client reads slowly.
const ROOM_BYTES: usize = 2 << 10;
/// The parts of a microsecond by which a time within a bucket may differ from what is shown for it.
const ERROR: f64 = 1.0 / 16.0;

/// A stream whose worker is stopped while it receives, once, for this many microseconds.
struct Stalling {
    inner: Box<dyn ByteStream>,
    clock: SimClock,
    stall_us: Arc<AtomicU64>,
}

impl ByteStream for Stalling {
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        let received = self.inner.receive_at_most(into, bytes_max);
        if let Received::Full(1..) | Received::Drained(1..) = received {
            self.clock.advance(self.stall_us.swap(0, Relaxed));
        }
        received
    }

    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        self.inner.send_parts(parts)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.inner.wakeup()
    }

    fn ready(&self) -> Ready {
        self.inner.ready()
    }

    fn finish(&mut self) {
        self.inner.finish();
    }

    fn reset(self: Box<Self>) {
        self.inner.reset();
    }

    fn local(&self) -> Option<Endpoint> {
        self.inner.local()
    }

    fn peer(&self) -> Option<Endpoint> {
        self.inner.peer()
    }
}

/// A listener whose first connection stalls.
struct Listener {
    inner: LocalListener,
    clock: SimClock,
    stall_us: Arc<AtomicU64>,
    accepted: usize,
}

impl StreamListener for Listener {
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>> {
        let Some(stream) = self.inner.accept()? else {
            return Ok(None);
        };
        self.accepted += 1;
        Ok(Some(match self.accepted {
            1 => Box::new(Stalling {
                inner: stream,
                clock: self.clock.clone(),
                stall_us: self.stall_us.clone(),
            }),
            _ => stream,
        }))
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.inner.wakeup()
    }

    fn local(&self) -> Option<Endpoint> {
        self.inner.local()
    }
}

/// A server with one worker, and its clients.
struct World {
    server: DrivenServer,
    listener: LocalListener,
    clock: SimClock,
    stall_us: Arc<AtomicU64>,
    is_encrypted: bool,
}

/// A client, and what it has received.
struct Client {
    stream: ClientStream,
    received: Vec<u8>,
}

impl World {
    fn new(is_encrypted: bool) -> World {
        let clock = SimClock::default();
        let stall_us = Arc::new(AtomicU64::new(0));
        let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
        let stalling = Listener {
            inner: listener.clone(),
            clock: clock.clone(),
            stall_us: stall_us.clone(),
            accepted: 0,
        };
        let accepting: Box<dyn StreamListener> = match is_encrypted {
            true => over(Box::new(stalling)),
            false => Box::new(stalling),
        };
        let devices = Devices {
            listeners: vec![(accepting, Accepts::Any)],
            ..Devices::default()
        };
        let config = Config {
            tcp: Vec::new(),
            workers: 1,
            memory_bytes: 64 << 20,
            hugepages: HugepagePolicy::Off,
            ..Config::default()
        };
        let admin = Arc::new(Silent);
        let server =
            DrivenServer::assemble(&config, vec![devices], clock.shared(), admin, &mut || 7);
        World {
            server: server.unwrap(),
            listener,
            clock,
            stall_us,
            is_encrypted,
        }
    }

    fn connect(&mut self, room_bytes: usize) -> Client {
        let from = SocketAddr::from(([10, 0, 0, 2], 1));
        let faults = StreamFaults {
            buffer_bytes: room_bytes,
            ..StreamFaults::default()
        };
        let stream: LocalStream = self.listener.connect(from, faults, 1);
        let mut client = Client {
            stream: ClientStream::new(stream, self.is_encrypted),
            received: Vec::new(),
        };
        // Shakes hands, if that comes first.
        client.ask(self, b"delete key\r\n");
        self.exchange(&mut client, b"NOT_FOUND\r\n".len());
        client
    }

    fn worker(&mut self) -> &mut DrivenWorker {
        &mut self.server.node.workers[0]
    }

    /// Has the worker take turns until it would sleep.
    fn serve(&mut self) {
        let worker = self.worker();
        while worker.rest() == Rest::Busy || worker.is_called() {
            worker.turn();
        }
    }

    /// Goes on until a client has this many bytes, and forgets them.
    fn exchange(&mut self, client: &mut Client, bytes: usize) {
        while client.received.len() < bytes {
            client.take();
            self.serve();
        }
        assert_eq!(client.received.len(), bytes);
        client.received.clear();
    }

    fn store(&mut self, client: &mut Client, key: &str, bytes: usize) {
        let value = "v".repeat(bytes);
        client.ask(
            self,
            format!("set {key} 0 0 {bytes}\r\n{value}\r\n").as_bytes(),
        );
        self.exchange(client, b"STORED\r\n".len());
    }

    /// Percentiles of the reads of values of about this size, in microseconds, as the server shows
    /// them.
    fn shown(&self, bytes: usize) -> [f64; 3] {
        let latencies = self.server.node.figures().latencies(&[Command::Get]);
        let is_larger = |below: Option<u32>| below.is_none_or(|below| below as usize > bytes);
        let found = latencies.iter().find(|it| is_larger(it.below_bytes));
        SHARES.map(|share| found.unwrap().all.percentile_us(share).unwrap())
    }
}

impl Client {
    /// Sends a request, as the connection takes it.
    fn ask(&mut self, world: &mut World, mut request: &[u8]) {
        while let Sent::Part(count) = self.stream.send(request) {
            request = &request[count..];
            world.serve();
        }
        while self.stream.has_unsent() {
            world.serve();
            self.take();
        }
    }

    /// Receives what has arrived.
    fn take(&mut self) {
        let mut received = Vec::with_capacity(1 << 14);
        self.stream.receive(&mut received).unwrap();
        self.received.append(&mut received);
    }
}

/// Of which each is held against the server's.
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

/// Percentiles of what a client measured.
fn measured(mut us: Vec<u64>) -> [f64; 3] {
    us.sort_unstable();
    SHARES.map(|share| us[((us.len() as f64 * share).ceil() as usize).max(1) - 1] as f64)
}

fn agree(inside: [f64; 3], outside: [f64; 3], beside: f64, what: &str) {
    for (at, share) in SHARES.iter().enumerate() {
        let ratio = inside[at] / outside[at];
        assert!(
            (1.0 - ERROR - beside..=1.0 + ERROR).contains(&ratio),
            "{what}, p{}: {} us inside, {} us outside",
            share * 100.0,
            inside[at],
            outside[at]
        );
    }
}

/// The length of a stall by its number, and how many requests fall into it: two of a hundred
/// requests are long, and fewer than one is very long.
fn stall(number: u64) -> (u64, usize) {
    match number % 10 {
        5 => (300_000, 1),
        2 => (20_000, 4),
        _ => (1_000, 20),
    }
}

/// Ten has no divisor in common with the turns of which one is timed. So the sample has each stall
/// equally often after as many tens.
const ROUNDS: u64 = 10 * SAMPLED_TURNS_EVERY as u64;

fn a_stopped_worker(is_encrypted: bool) {
    let mut world = World::new(is_encrypted);
    let mut client = world.connect(1 << 20);
    world.store(&mut client, "key", SMALL_BYTES);
    let reply = format!("VALUE key 0 {SMALL_BYTES}\r\n").len() + SMALL_BYTES + 7;
    let mut us = Vec::new();
    for round in 0..ROUNDS {
        let begin_us = world.clock.us();
        let (stall_us, requests) = stall(round);
        world.stall_us.store(stall_us, Relaxed);
        client.ask(&mut world, &b"get key\r\n".repeat(requests));
        world.exchange(&mut client, requests * reply);
        us.resize(us.len() + requests, world.clock.us() - begin_us);
    }
    agree(world.shown(SMALL_BYTES), measured(us), 0.0, "stopped");
}

fn another_request_in_front(is_encrypted: bool) {
    let mut world = World::new(is_encrypted);
    let mut first = world.connect(1 << 20);
    let mut second = world.connect(1 << 20);
    world.store(&mut first, "front", 4 << 10);
    world.store(&mut first, "key", SMALL_BYTES);
    let front = format!("VALUE front 0 {}\r\n", 4 << 10).len() + (4 << 10) + 7;
    let reply = format!("VALUE key 0 {SMALL_BYTES}\r\n").len() + SMALL_BYTES + 7;
    let mut us = Vec::new();
    for round in 0..ROUNDS {
        let begin_us = world.clock.us();
        let (stall_us, requests) = stall(round);
        world.stall_us.store(stall_us, Relaxed);
        assert_eq!(first.stream.send(b"get front\r\n"), Sent::All);
        let gets = b"get key\r\n".repeat(requests);
        assert_eq!(second.stream.send(&gets), Sent::All);
        world.exchange(&mut second, requests * reply);
        us.resize(us.len() + requests, world.clock.us() - begin_us);
        world.exchange(&mut first, front);
    }
    agree(world.shown(SMALL_BYTES), measured(us), 0.0, "in front");
}

fn a_slow_reader(is_encrypted: bool) {
    let mut world = World::new(is_encrypted);
    let mut client = world.connect(ROOM_BYTES);
    world.store(&mut client, "large", LARGE_BYTES);
    let reply = format!("VALUE large 0 {LARGE_BYTES}\r\n").len() + LARGE_BYTES + 7;
    let mut us = Vec::new();
    // Reads take several turns: how many does not matter to the sample, as it is always as many.
    for round in 0..ROUNDS {
        let begin_us = world.clock.us();
        let pause_us = if round % 10 == 5 { 10_000 } else { 500 };
        client.ask(&mut world, b"get large\r\n");
        while client.received.len() < reply {
            world.serve();
            client.take();
            world.clock.advance(pause_us);
        }
        us.push(world.clock.us() - begin_us);
        world.exchange(&mut client, reply);
    }
    // The last bytes are with the stream while the client has yet to take them.
    let beside = 2.0 * ROOM_BYTES as f64 / LARGE_BYTES as f64;
    agree(world.shown(LARGE_BYTES), measured(us), beside, "slow");
}

#[test]
fn latencies_inside_are_those_of_clients_while_something_stalls() {
    for is_encrypted in [false, true] {
        a_stopped_worker(is_encrypted);
        another_request_in_front(is_encrypted);
        a_slow_reader(is_encrypted);
    }
}
