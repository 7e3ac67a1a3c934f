//! A seed becomes a server, clients with their operations, and faults.
//!
//! A scenario is a plain value, so that it can be made smaller and run again.

mod clients;
mod ends;
mod server;
mod tastes;

use glimmer_dispatch::Policy;
use glimmer_server::evict::Rule;
use glimmer_server::{AccessMode, Mode, TableKind};
use glimmer_transport::packet::Faults;
use glimmer_transport::stream::StreamFaults;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tastes::Tastes;

/// What is run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Who acts next, and what the network does, follows from it.
    pub seed: u64,
    /// The server.
    pub server: ServerPlan,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// Workers that do nothing for a while.
    pub stalls: Vec<Stall>,
    /// Pauses of the whole machine: when, and for how long, in microseconds.
    pub clock_steps: Vec<(u64, u64)>,
    /// Dispatch policies and access modes that are put in force: when, in microseconds, and which.
    pub switches: Vec<(u64, (&'static dyn Policy, AccessMode))>,
    /// Ends of the server's process, in order. Each is followed by a process that goes on with the
    /// memory file.
    pub ends: Vec<End>,
}

/// An end of the server's process.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// How it ends.
    pub how: Ending,
    /// The number of calls that have begun before it.
    pub calls: usize,
    /// The number of steps between the last of these calls and the end.
    pub steps: u64,
    /// A process that is killed goes on until it has come to this many more points at which the
    /// order of its stores to the file matters. It ends there, in the midst of a worker's turn.
    pub points: usize,
    /// Until the next process serves, in microseconds.
    pub down_us: u64,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Where it is.
    Killed,
    /// It is told to, and completes what it was asked.
    Stopped,
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct ServerPlan {
    /// Workers.
    pub workers: usize,
    /// Whether items leave when the memory is full.
    pub mode: Mode,
    /// What a partition is made of.
    pub table: TableKind,
    /// Who may touch a partition.
    pub access: AccessMode,
    /// Which worker executes a request.
    pub dispatch: &'static dyn Policy,
    /// Which items leave.
    pub evict: Rule,
    /// Memory in MiB; more if the server does not start with so little.
    pub memory_mib: usize,
    /// Largest item in bytes.
    pub item_bytes_max: usize,
    /// Requests of one connection before others have their turn.
    pub turn_requests: u32,
    /// Bytes of a slice of a large value.
    pub slice_bytes: usize,
    /// Bytes of unsent lines of one watcher.
    pub watch_bytes: usize,
    /// Whether connections are closed that have been idle for an hour. None is.
    pub watches_idlers: bool,
    /// Whether clients have to log in.
    pub is_locked: bool,
    /// Whether workers hand native requests over to one another.
    pub directs_native: bool,
    /// Whether items and index lie in a memory file.
    pub in_memory_file: bool,
    /// Whether memcached's datagrams are answered from the slots of the hot-key accelerator.
    pub is_accelerated: bool,
}

/// A worker that does nothing for a while.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Which worker.
    pub worker: usize,
    /// When it begins, in microseconds.
    pub at_us: u64,
    /// For how long.
    pub for_us: u64,
}

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's text protocol over a stream.
    Text,
    /// Its meta commands over a stream.
    Meta,
    /// memcached's binary protocol over a stream.
    Binary,
    /// RESP, the protocol of Redis, over a stream.
    Resp,
    /// memcached's text protocol in datagrams.
    TextDatagrams,
    /// memcached's binary protocol in datagrams.
    BinaryDatagrams,
    /// The native protocol in datagrams.
    Native,
    /// Text, and asks for nothing but to be shown mutations.
    Watch,
    /// Text, and never stops.
    Flood(Flood),
}

/// What a client does that never stops: the state in which its connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// It asks, and may not take the replies.
    Asking,
    /// It watches, and may not take what it is shown.
    Watching,
    /// It is to be closed once it has taken its replies, and takes none.
    Closing,
    /// It sends a value that is refused.
    Swallowing,
    /// It lists all items.
    Listing,
    /// It has yet to log in.
    Locked,
    /// It tries passwords.
    Withheld,
}

impl Flood {
    /// Those that are possible whether clients have to log in or not.
    pub const OF_ALL: [Flood; 5] = [
        Flood::Asking,
        Flood::Watching,
        Flood::Closing,
        Flood::Swallowing,
        Flood::Listing,
    ];
    /// Those before a login.
    pub const BEFORE_LOGIN: [Flood; 2] = [Flood::Locked, Flood::Withheld];
}

/// A client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Which it speaks.
    pub protocol: Protocol,
    /// Its own random numbers, and its network's.
    pub seed: u64,
    /// Requests under way at most; of clients with memcached's datagrams, datagrams.
    pub pipeline: usize,
    /// It asks not to be answered where the answer is the usual one.
    pub is_quiet: bool,
    /// What its stream does.
    pub stream: StreamFaults,
    /// What happens to its datagrams, in either direction.
    pub packets: Faults,
    /// It takes its replies bit by bit, with pauses of this many microseconds at most.
    pub read_pause_us: u64,
    /// What it asks, and how long it waits before it does so, in microseconds.
    pub operations: Vec<(u64, Operation)>,
    /// The same for the time in which nothing fails.
    pub calm: Vec<(u64, Operation)>,
    /// It has to log in first.
    pub logs_in: bool,
    /// Its connection is encrypted.
    pub is_encrypted: bool,
}

/// What a client asks. Keys are numbers.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Read several keys with one request.
    Get(Vec<u8>),
    /// Store a value of about this many bytes, with an expiry time in seconds or 0.
    Set(u8, usize, u32),
    /// Store it unless there is an item.
    Add(u8, usize, u32),
    /// Store it if there is an item.
    Replace(u8, usize, u32),
    /// Append this many bytes.
    Append(u8, usize),
    /// Store it if no client has since this client last read it.
    Cas(u8, usize),
    /// Remove.
    Delete(u8),
    /// Begin to count at zero.
    Begin(u8),
    /// Count.
    Increment(u8, u64),
    /// Count, from the beginning if there is no number.
    Count(u8, u64),
    /// Another expiry time.
    Touch(u8, u32),
    /// Read, and another expiry time.
    GetAndTouch(u8, u32),
    /// Remove everything, after this many seconds.
    Flush(u32),
}

/// Keys from this number on are counters.
pub const COUNTERS: u8 = 100;
/// Memory of a server whose tables are to be full: as little as it starts with.
const TIGHT_MIB: usize = 1;
/// Keys from this number on, up to the counters, fill tables that are to be full.
const FILLERS: u8 = 20;
/// How often a client with a connection encrypts it.
const ENCRYPTS: f64 = 0.2;
/// How often a client watches mutations.
const WATCHES: f64 = 0.15;
/// How often the dispatch policy changes while clients are served.
const SWITCHES: f64 = 0.5;
/// How many times it changes then, at most.
const SWITCHES_MAX: usize = 100;
/// How often a server has an accelerator.
const ACCELERATES: f64 = 0.3;
/// Clients that read hot keys then.
const HOT_READERS: usize = 2;
/// How often clients have to log in.
const LOCKS: f64 = 0.06;
/// How often there are clients that never stop.
const FLOODS: f64 = 0.15;
/// How many they are then, at most.
const FLOODERS_MAX: usize = 2;
/// What seeds draw from in addition, so that the rest of a scenario does not depend on it.
const FLOOD_SEED: u64 = 0xf100d;
/// The same for memory files and the ends of processes.
const ENDS_SEED: u64 = 0xdead;
/// Operations that name one key, on average: histories stay short enough to be checked.
const CALLS_PER_KEY: usize = 18;

/// What a key is called.
pub fn key_name(key: u8) -> String {
    match key {
        0..COUNTERS => format!("k{key}"),
        _ => format!("n{}", key - COUNTERS),
    }
}

impl Scenario {
    /// What follows from a seed.
    pub fn from_seed(seed: u64) -> Scenario {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut flood_rng = SmallRng::seed_from_u64(seed ^ FLOOD_SEED);
        let mut server = server::draw(&mut rng);
        server::draw_limits(&mut flood_rng, &mut server);
        let clients = rng.random_range(2..=5);
        let each = match server.memory_mib {
            TIGHT_MIB => rng.random_range(40..=90),
            _ => rng.random_range(8..=50),
        };
        let tastes = Tastes::draw(&mut rng, server, clients * each);
        let clients = (0..clients).map(|_| clients::draw(&mut rng, server, &tastes, each));
        let mut clients: Vec<ClientPlan> = clients.collect();
        if rng.random_bool(WATCHES) {
            clients.push(clients::watcher(&mut rng));
        }
        let stalls = match rng.random_bool(0.3) {
            true => (0..rng.random_range(1..=3))
                .map(|_| Stall {
                    worker: rng.random_range(0..server.workers),
                    at_us: rng.random_range(0..200_000),
                    for_us: rng.random_range(100..800_000),
                })
                .collect(),
            false => Vec::new(),
        };
        let clock_steps = match rng.random_bool(0.15) {
            true => vec![(
                rng.random_range(0..100_000),
                rng.random_range(1_000..3_000_000),
            )],
            false => Vec::new(),
        };
        let switches = match rng.random_bool(SWITCHES) {
            true => (0..rng.random_range(1..=SWITCHES_MAX))
                .map(|_| {
                    let at_us = rng.random_range(0..200_000);
                    let access = server::access(&mut rng);
                    let policy = server::dispatch(&mut rng, access, server.workers);
                    (at_us, (policy, access))
                })
                .collect(),
            false => Vec::new(),
        };
        if rng.random_bool(ACCELERATES) && !server.is_locked {
            server.is_accelerated = true;
            clients::add_flush(&mut rng, &mut clients);
            let readers = (0..HOT_READERS).map(|_| clients::hot_reader(&mut rng, &tastes));
            clients.extend(readers);
        }
        if flood_rng.random_bool(FLOODS) {
            let flooders = 0..flood_rng.random_range(1..=FLOODERS_MAX);
            clients.extend(flooders.map(|_| clients::flooder(&mut flood_rng, server)));
        }
        // Of its own, so that what older seeds draw stays as it is.
        let mut encryption_rng = SmallRng::seed_from_u64(seed.rotate_left(17));
        for client in &mut clients {
            client.logs_in = server.is_locked;
            client.is_encrypted = encryption_rng.random_bool(ENCRYPTS);
        }
        let mut scenario = Scenario {
            seed,
            server,
            clients,
            stalls,
            clock_steps,
            switches,
            ends: Vec::new(),
        };
        ends::draw(
            &mut SmallRng::seed_from_u64(seed ^ ENDS_SEED),
            &mut scenario,
        );
        scenario
    }

    /// Every key that is named.
    pub fn keys(&self) -> Vec<u8> {
        let clients = self.clients.iter();
        let operations = clients.flat_map(|client| client.operations.iter().chain(&client.calm));
        let mut keys: Vec<u8> = operations.flat_map(|(_, one)| one.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        let of = |client: &ClientPlan| client.operations.len() + client.calm.len();
        self.clients.iter().map(of).sum()
    }
}

impl Operation {
    /// The keys that it names.
    pub fn keys(&self) -> Vec<u8> {
        match self {
            Operation::Get(keys) => keys.clone(),
            Operation::Set(key, ..)
            | Operation::Add(key, ..)
            | Operation::Replace(key, ..)
            | Operation::Append(key, _)
            | Operation::Cas(key, _)
            | Operation::Delete(key)
            | Operation::Begin(key)
            | Operation::Increment(key, _)
            | Operation::Count(key, _)
            | Operation::Touch(key, _)
            | Operation::GetAndTouch(key, _) => vec![*key],
            Operation::Flush(_) => Vec::new(),
        }
    }
}
