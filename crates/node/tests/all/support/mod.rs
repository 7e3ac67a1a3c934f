//! An engine over plain hash maps, and what tests need to talk to a node.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::any::Any;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use glimmer_base::limits::{REPLY_BYTES_HIGH, REPORT_BYTES_HIGH, SLICE_BYTES, TURN_REQUESTS_MAX};
use glimmer_base::{Moment, Seed};
pub use glimmer_dispatch::AccessMode as Access;
use glimmer_dispatch::{Layout, POLICIES, PartitionMap, Policy, Settings};
use glimmer_engine::{Done, Engine, Figures, Job, LentParts, ListCursor, Listed, Rebuild, Status};
use glimmer_node::{
    Address, AdminHandler, BusyPoll, Clock, Node, NodeConfig, Observers, Part, Permits, SystemClock,
};
use glimmer_proto::text::{Limits, Reply, Shutdown, emit, lines};
use glimmer_proto::{Accepts, Form, Request, StoreMode, Verb};
use glimmer_transport::tcp::Liveness;
use glimmer_transport::transports;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// A clock that the test moves, in milliseconds.
#[derive(Debug, Default)]
pub struct TestClock(pub AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.0.load(Ordering::Relaxed),
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        0
    }

    fn ns(&self) -> u64 {
        self.now().ms * 1_000_000
    }
}

type Table = HashMap<Vec<u8>, (u32, Vec<u8>)>;

/// One worker's view of a store of hash maps, one partition per worker. It checks that every
/// request reaches a worker that may execute it.
pub struct MapEngine {
    me: usize,
    access: Access,
    tables: Arc<Vec<Mutex<Table>>>,
    /// A reply buffer with this many bytes takes no further reply.
    room: usize,
    /// Reads of others' partitions send one request in this many to the owner.
    asks_one_in: Option<u32>,
    rng: SmallRng,
}

/// How engines of a test behave.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    pub access: Access,
    pub room: usize,
    pub asks_one_in: Option<u32>,
    pub dispatch: &'static dyn Policy,
}

impl Habits {
    pub const EREW: Habits = Habits {
        access: Access::Erew,
        room: REPLY_BYTES_HIGH,
        asks_one_in: None,
        dispatch: POLICIES[0],
    };
    pub const CREW: Habits = Habits {
        access: Access::Crew,
        room: REPLY_BYTES_HIGH,
        asks_one_in: Some(4),
        dispatch: POLICIES[0],
    };
}

impl MapEngine {
    fn try_run(&mut self, job: &Job<'_>, out: &mut Vec<u8>) -> Status {
        let is_read = job.request.verb.is_read();
        let layout = self.layout();
        let owner = layout.map.owner(job.keyhash);
        assert!(
            layout.may_run(self.me, job.keyhash, is_read),
            "worker {} ran {job:?} of {owner}",
            self.me
        );
        if out.len() >= self.room {
            return Status::NoRoom;
        }
        if owner != self.me
            && self
                .asks_one_in
                .is_some_and(|n| self.rng.random_ratio(1, n))
        {
            return Status::AskOwner;
        }
        let mut table = self.tables[owner].lock().unwrap();
        if let (true, Some((_, value))) = (is_read, table.get(job.request.key))
            && value.len() > job.size_max.min(job.copy_max) as usize
        {
            let bytes = value.len() as u32;
            return Status::Elsewhere { bytes };
        }
        execute(&mut table, &job.request, out);
        Status::Done
    }
}

/// Changes the access mode of a store of [`MapEngine`]s.
#[derive(Debug)]
pub struct MapModes;

impl Rebuild for MapModes {
    fn rebuild(&self, engines: Vec<Box<dyn Engine>>, access: Access) -> Vec<Box<dyn Engine>> {
        let change = |engine: Box<dyn Engine>| -> Box<dyn Engine> {
            let engine: Box<dyn Any> = engine;
            let mut engine = engine.downcast::<MapEngine>().unwrap();
            engine.access = access;
            engine
        };
        engines.into_iter().map(change).collect()
    }
}

impl Engine for MapEngine {
    fn layout(&self) -> Layout {
        Layout {
            map: PartitionMap::new(self.tables.len(), self.tables.len()),
            access: self.access,
        }
    }

    fn run_with(
        &mut self,
        _: Moment,
        jobs: &[Job<'_>],
        outs: &mut [Vec<u8>],
        _: &mut LentParts,
        done: &mut [Done],
    ) {
        let mut failed: HashMap<u32, Status> = HashMap::new();
        for (job, done) in jobs.iter().zip(done) {
            let out = &mut outs[job.out as usize];
            let status = match failed.get(&job.out) {
                Some(Status::NoRoom) => Status::NoRoom,
                Some(_) => Status::Skipped,
                None => self.try_run(job, out),
            };
            if status != Status::Done {
                failed.entry(job.out).or_insert(status);
            }
            *done = Done {
                status,
                kind: None,
                end: out.len(),
                read_bytes: 0,
            };
        }
    }

    fn flush(&mut self, _: Moment, _: u64) {
        for table in self.tables.iter() {
            table.lock().unwrap().clear();
        }
    }

    fn list(
        &mut self,
        _: Moment,
        _: &mut ListCursor,
        _: usize,
        _: &mut dyn FnMut(&Listed<'_>),
    ) -> bool {
        false
    }

    fn expire(&mut self, _: Moment, _: &mut ListCursor, _: usize) -> Option<u64> {
        None
    }

    fn figures(&self) -> Arc<dyn Figures> {
        unimplemented!("a node does not ask for its engines' figures")
    }
}

fn execute(table: &mut Table, request: &Request<'_>, out: &mut Vec<u8>) {
    let Form::Text(Reply { last, quiet, .. }) = request.form else {
        unimplemented!("these tests speak the classic text protocol")
    };
    let found = table.get_mut(request.key);
    let line = match request.verb {
        Verb::Get | Verb::GetAndTouch { .. } => {
            if let Some((flags, value)) = found {
                emit::value_head(out, request.key, *flags, value.len(), None);
                out.extend_from_slice(value);
                emit::value_tail(out, last);
            } else if last {
                out.extend_from_slice(lines::END.as_bytes());
            }
            return;
        }
        Verb::Store {
            mode, flags, value, ..
        } => match (mode, found) {
            (StoreMode::Set, _) | (StoreMode::Add, None) | (StoreMode::Replace, Some(_)) => {
                table.insert(request.key.to_vec(), (flags, value.to_vec()));
                lines::STORED
            }
            (StoreMode::Append, Some((_, old))) => {
                old.extend_from_slice(value);
                lines::STORED
            }
            _ => lines::NOT_STORED,
        },
        Verb::Delete if found.is_some() => {
            table.remove(request.key);
            lines::DELETED
        }
        Verb::Refused { reason } => {
            table.remove(request.key);
            reason.line()
        }
        _ => lines::NOT_FOUND,
    };
    if !quiet {
        out.extend_from_slice(line.as_bytes());
    }
}

/// Answers `stats` with one figure.
pub struct Admin;

impl AdminHandler for Admin {
    /// `stats long N` has N pieces, as long as pieces may be.
    fn stats(&self, argument: &[u8], from: u64, _: Moment, out: &mut Vec<u8>) -> Part {
        let argument = String::from_utf8_lossy(argument);
        let pieces = argument.strip_prefix("long ");
        let pieces = pieces.map_or(0, |pieces| pieces.parse().unwrap());
        if from < pieces {
            let value = "x".repeat(REPORT_BYTES_HIGH - 30);
            emit::stat(out, &format!("{from:09}"), &value);
            return Part::More(from + 1);
        }
        emit::stat(out, "argument", &argument);
        out.extend_from_slice(lines::END.as_bytes());
        Part::Last
    }

    /// `CLIENT LIST` has three pieces.
    fn clients(&self, from: u64, _: Moment, out: &mut Vec<u8>) -> Option<u64> {
        out.extend_from_slice(format!("id={from}\n").as_bytes());
        (from < 2).then_some(from + 1)
    }

    fn admits(&self, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(lines::SHUTDOWN_NOT_ENABLED.as_bytes());
        false
    }
}

/// A configuration for tests: a free port on loopback, small buffers.
pub fn config() -> NodeConfig {
    NodeConfig {
        dispatch: Arc::new(POLICIES[0]),
        dispatch_settings: Settings::DEFAULT,
        dispatch_pause_ms: 0,
        slow_ms: 1,
        access_modes: Some(Arc::new(MapModes)),
        packets: transports::default(),
        listen: vec![Address::Tcp("127.0.0.1:0".parse().unwrap())],
        listen_names: Vec::new(),
        udp: Vec::new(),
        udp_names: Vec::new(),
        liveness: Liveness::default(),
        native: None,
        busy_poll: BusyPoll::Off,
        rejects_beyond_max: true,
        encryption: None,
        turn_requests: TURN_REQUESTS_MAX,
        slice_bytes: SLICE_BYTES,
        permits: Permits::DEFAULT,
        crawler: true,
        observers: Observers::new(Arc::new(SystemClock::start()), b':', false),
        tenants: Arc::default(),
        locked: false,
        backlog: 128,
        connections_max: 1024,
        idle_timeout: None,
        buffer_bytes: 0,
        accepts: Accepts::Any,
        accepts_at: Vec::new(),
        limits: Limits::default(),
        hasher: Seed(7).into(),
        cores: Vec::new(),
        clock: Arc::new(SystemClock::start()),
    }
}

/// Starts a node with this many workers.
pub fn start(workers: usize, habits: Habits) -> Node {
    start_with(config(), workers, habits)
}

/// Starts a node with this many workers and a configuration.
pub fn start_with(mut config: NodeConfig, workers: usize, habits: Habits) -> Node {
    config.dispatch = Arc::new(habits.dispatch);
    Node::start(config, engines(workers, habits), Arc::new(Admin)).unwrap()
}

/// Engines of this many workers over one store.
pub fn engines(workers: usize, habits: Habits) -> Vec<Box<dyn Engine>> {
    let tables: Arc<Vec<_>> = Arc::new((0..workers).map(|_| Mutex::default()).collect());
    let engine = |me: usize| -> Box<dyn Engine> {
        Box::new(MapEngine {
            me,
            access: habits.access,
            tables: tables.clone(),
            room: habits.room,
            asks_one_in: habits.asks_one_in,
            rng: SmallRng::seed_from_u64(me as u64),
        })
    };
    (0..workers).map(engine).collect()
}

/// A connection to a node. Reads give up after a time that only a hung test reaches.
pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// Longer than any answer takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    pub fn connect(node: &Node) -> Client {
        Client::connect_to(node.local_addrs()[0])
    }

    pub fn connect_to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client {
            reader: BufReader::new(stream.try_clone().unwrap()),
            stream,
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads one line, its end included.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }

    /// Reads this many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A connection that the server closed with bytes unread is reset; what came before is what
        // counts.
        let _ = self.reader.read_to_end(&mut bytes);
        bytes
    }

    /// Sends a request and reads the one line that answers it.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> String {
        self.send(request);
        self.line()
    }

    /// Like [`Client::ask`]; an empty line if the connection is closed.
    pub fn try_ask(&mut self, request: &str) -> String {
        let mut line = String::new();
        if self.stream.write_all(request.as_bytes()).is_ok() {
            let _ = self.reader.read_line(&mut line);
        }
        line
    }

    /// Sends requests and expects exactly these bytes.
    #[track_caller]
    pub fn expect(&mut self, requests: impl AsRef<[u8]>, replies: impl AsRef<[u8]>) {
        self.send(requests);
        let replies = replies.as_ref();
        let got = self.bytes(replies.len());
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(replies)
        );
    }
}
