//! A seed becomes a server, clients with their operations, and faults.
//!
//! A scenario is a plain value, so that it can be made smaller and run again.

use glimmer_server::evict::{RULES, Rule};
use glimmer_server::{AccessMode, Mode, TableKind};
use glimmer_transport::packet::Faults;
use glimmer_transport::stream::StreamFaults;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

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
    /// Which items leave.
    pub evict: Rule,
    /// Memory in MiB; more if the server does not start with so little.
    pub memory_mib: usize,
    /// Largest item in bytes.
    pub item_bytes_max: usize,
    /// Requests of one connection before others have their turn.
    pub turn_requests: u32,
    /// Whether workers hand native requests over to one another.
    pub directs_native: bool,
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
    /// memcached's binary protocol over a stream.
    Binary,
    /// The native protocol in datagrams.
    Native,
}

/// A client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Which it speaks.
    pub protocol: Protocol,
    /// Its own random numbers, and its network's.
    pub seed: u64,
    /// Requests under way at most.
    pub pipeline: usize,
    /// What its stream does.
    pub stream: StreamFaults,
    /// What happens to its datagrams, in either direction.
    pub packets: Faults,
    /// It takes its replies bit by bit, with pauses of this many microseconds at most.
    pub read_pause_us: u64,
    /// What it asks, and how long it waits before it does so, in microseconds.
    pub operations: Vec<(u64, Operation)>,
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
    /// Another expiry time.
    Touch(u8, u32),
    /// Remove everything.
    Flush,
}

/// Keys from this number on are counters.
pub const COUNTERS: u8 = 100;
/// Memory of a server whose tables are to be full: as little as it starts with.
const TIGHT_MIB: usize = 1;
/// Keys from this number on, up to the counters, fill tables that are to be full.
const FILLERS: u8 = 20;
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
        let server = server(&mut rng);
        let clients = rng.random_range(2..=5);
        let each = match server.memory_mib {
            TIGHT_MIB => rng.random_range(40..=90),
            _ => rng.random_range(8..=50),
        };
        let tastes = Tastes::draw(&mut rng, server, clients * each);
        let clients = (0..clients).map(|_| client(&mut rng, server, &tastes, each));
        let clients = clients.collect();
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
        Scenario {
            seed,
            server,
            clients,
            stalls,
            clock_steps,
        }
    }

    /// Every key that is named.
    pub fn keys(&self) -> Vec<u8> {
        let operations = self.clients.iter().flat_map(|client| &client.operations);
        let mut keys: Vec<u8> = operations.flat_map(|(_, one)| one.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        (self.clients.iter().map(|client| client.operations.len())).sum()
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
            | Operation::Touch(key, _) => vec![*key],
            Operation::Flush => Vec::new(),
        }
    }
}

fn server(rng: &mut SmallRng) -> ServerPlan {
    let mode = *[Mode::Cache, Mode::Store].choose(rng).expect("not empty");
    let table = match mode {
        Mode::Cache if rng.random_bool(0.3) => TableKind::Memc3,
        _ => TableKind::Mica,
    };
    let accesses = [AccessMode::Erew, AccessMode::Crew, AccessMode::Crcw];
    let is_tight = rng.random_bool(0.3);
    ServerPlan {
        workers: rng.random_range(1..=4),
        mode,
        table,
        access: *accesses.choose(rng).expect("not empty"),
        evict: *RULES.choose(rng).expect("not empty"),
        memory_mib: if is_tight { TIGHT_MIB } else { 16 },
        item_bytes_max: if is_tight { 64 << 10 } else { 16 << 10 },
        turn_requests: if rng.random_bool(0.3) { 2 } else { 20 },
        directs_native: rng.random_bool(0.3),
    }
}

/// What the clients of a scenario have in common.
struct Tastes {
    keys: u8,
    counters: u8,
    value_bytes_max: usize,
    fills: bool,
    flushes: bool,
    expires: bool,
    /// Time between operations, at most, in microseconds.
    pause_us: u64,
    resets: bool,
    loses: bool,
}

impl Tastes {
    fn draw(rng: &mut SmallRng, server: ServerPlan, calls: usize) -> Tastes {
        let keys = (calls / CALLS_PER_KEY).clamp(2, 20) as u8;
        let counters = (keys / 3).max(1);
        let is_large = rng.random_bool(0.3);
        let expires = rng.random_bool(0.4);
        Tastes {
            keys: keys - counters,
            counters,
            value_bytes_max: if is_large {
                server.item_bytes_max / 2
            } else {
                100
            },
            fills: server.memory_mib == TIGHT_MIB,
            flushes: rng.random_bool(0.2),
            expires,
            pause_us: match (expires, rng.random_bool(0.5)) {
                (true, _) => 400_000,
                (false, true) => 2_000,
                (false, false) => 0,
            },
            resets: rng.random_bool(0.25),
            loses: rng.random_bool(0.6),
        }
    }

    fn bytes(&self, rng: &mut SmallRng) -> usize {
        match rng.random_bool(0.5) {
            true => rng.random_range(0..30),
            false => rng.random_range(0..self.value_bytes_max),
        }
    }

    fn expiry_s(&self, rng: &mut SmallRng) -> u32 {
        match self.expires && rng.random_bool(0.6) {
            true => rng.random_range(1..=3),
            false => 0,
        }
    }

    fn key(&self, rng: &mut SmallRng) -> u8 {
        rng.random_range(0..self.keys.max(1))
    }

    fn operation(&self, rng: &mut SmallRng) -> Operation {
        if rng.random_bool(0.3) {
            let key = COUNTERS + rng.random_range(0..self.counters);
            return match rng.random_range(0..10) {
                0..=1 => Operation::Begin(key),
                2..=6 => Operation::Increment(key, rng.random_range(1..=3)),
                7 if rng.random_bool(0.3) => Operation::Delete(key),
                _ => Operation::Get(vec![key]),
            };
        }
        if self.fills && rng.random_bool(0.35) {
            let key = rng.random_range(FILLERS..COUNTERS);
            return match rng.random_bool(0.8) {
                true => Operation::Set(key, rng.random_range(20_000..32_000), 0),
                false => Operation::Get(vec![key]),
            };
        }
        let key = self.key(rng);
        match rng.random_range(0..100) {
            0..35 => {
                let others = rng.random_range(0..3);
                let others = (0..others).map(|_| self.key(rng));
                let mut keys: Vec<u8> = std::iter::once(key).chain(others).collect();
                keys.sort_unstable();
                keys.dedup();
                Operation::Get(keys)
            }
            35..60 => Operation::Set(key, self.bytes(rng), self.expiry_s(rng)),
            60..67 => Operation::Add(key, self.bytes(rng), self.expiry_s(rng)),
            67..73 => Operation::Replace(key, self.bytes(rng), self.expiry_s(rng)),
            73..78 => Operation::Append(key, rng.random_range(1..20)),
            78..86 => Operation::Cas(key, self.bytes(rng)),
            86..93 => Operation::Delete(key),
            93..98 if self.expires => Operation::Touch(key, rng.random_range(1..=3)),
            98.. if self.flushes => Operation::Flush,
            _ => Operation::Set(key, self.bytes(rng), 0),
        }
    }
}

fn client(rng: &mut SmallRng, server: ServerPlan, tastes: &Tastes, each: usize) -> ClientPlan {
    let protocol = match rng.random_range(0..10) {
        0..5 => Protocol::Text,
        5..7 => Protocol::Binary,
        _ => Protocol::Native,
    };
    let reads_slowly = rng.random_bool(0.1);
    let buffers = [64 << 10, 4 << 10, 300];
    let stream = StreamFaults {
        short_read: *[0.0, 0.3].choose(rng).expect("not empty"),
        short_write: *[0.0, 0.3].choose(rng).expect("not empty"),
        reset: if tastes.resets { 0.01 } else { 0.0 },
        buffer_bytes: *buffers.choose(rng).expect("not empty"),
    };
    let chance = |rng: &mut SmallRng| {
        let draws = tastes.loses && rng.random_bool(0.7);
        if draws {
            rng.random_range(0.0..0.2)
        } else {
            0.0
        }
    };
    let packets = Faults {
        loss: chance(rng),
        duplication: chance(rng),
        reordering: chance(rng),
        reordering_us_max: 20_000,
        truncation: chance(rng) / 4.0,
        delay_us_min: 10,
        delay_us_max: 200,
    };
    let may_flush = protocol != Protocol::Native && server.workers > 0;
    let operations = (0..each).map(|_| {
        let pause_us = match rng.random_bool(0.5) {
            true => rng.random_range(0..=tastes.pause_us),
            false => 0,
        };
        let operation = match tastes.operation(rng) {
            Operation::Flush if !may_flush => Operation::Get(vec![0]),
            Operation::Append(key, _) if protocol == Protocol::Native => {
                Operation::Set(key, tastes.bytes(rng), 0)
            }
            Operation::Get(keys) if protocol != Protocol::Text => {
                Operation::Get(keys[..1].to_vec())
            }
            other => other,
        };
        (pause_us, operation)
    });
    ClientPlan {
        operations: operations.collect(),
        protocol,
        seed: rng.random(),
        pipeline: *[1, 4, 16].choose(rng).expect("not empty"),
        stream,
        packets,
        read_pause_us: if reads_slowly { 100_000 } else { 0 },
    }
}
