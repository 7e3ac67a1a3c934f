//! A client from a seed.

use super::tastes::Tastes;
use super::{ClientPlan, Flood, Operation, Protocol, ServerPlan, TIGHT_MIB};
use glimmer_transport::packet::Faults;
use glimmer_transport::stream::StreamFaults;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::{IndexedMutRandom, IndexedRandom};

/// Operations of each client while nothing fails, at most.
const CALM_OPERATIONS_MAX: usize = 6;
/// Reads of a client of hot keys. One read of eight brings its key into a slot.
const HOT_READS: usize = 60;
/// What the longest pause between two of them is at least, in microseconds. Reads without a pause
/// would share datagrams, and the accelerator answers only those that are alone.
const HOT_PAUSE_US_MIN: u64 = 100;
/// How far a client that waits for an expiry time misses it, in microseconds.
const MISSES_BY_US: u64 = 3_000;

/// Draws a client that asks for this many operations.
pub fn draw(
    rng: &mut SmallRng,
    server: ServerPlan,
    tastes: &Tastes,
    operations: usize,
) -> ClientPlan {
    // Where clients have to log in, all of them speak the text protocol.
    let kinds = if server.is_locked { 7 } else { 20 };
    let protocol = match rng.random_range(0..kinds) {
        0..4 => Protocol::Text,
        4..7 => Protocol::Meta,
        7..10 => Protocol::Binary,
        10..13 => Protocol::Resp,
        13 => Protocol::TextDatagrams,
        14 => Protocol::BinaryDatagrams,
        _ => Protocol::Native,
    };
    let reads_slowly = rng.random_bool(0.1);
    let stream = StreamFaults {
        reset: if tastes.resets { 0.01 } else { 0.0 },
        ..stream(rng)
    };
    let mut ask = |count: usize| {
        let asks = (0..count).map(|_| (pause_us(rng, tastes), operation(rng, protocol, tastes)));
        asks.collect::<Vec<_>>()
    };
    let operations = ask(operations);
    let calm = ask(CALM_OPERATIONS_MAX);
    ClientPlan {
        operations,
        calm,
        protocol,
        seed: rng.random(),
        pipeline: *[1, 4, 16].choose(rng).expect("not empty"),
        // Where there is no memory, an error of the text protocol does not say whose it is.
        is_quiet: rng.random_bool(0.5) && server.memory_mib > TIGHT_MIB,
        stream,
        packets: packets(rng, protocol, tastes),
        read_pause_us: if reads_slowly { 100_000 } else { 0 },
        logs_in: false,
        is_encrypted: false,
    }
}

/// Draws a client that reads few keys often, so that they come into the accelerator's slots.
pub fn hot_reader(rng: &mut SmallRng, tastes: &Tastes) -> ClientPlan {
    let protocols = [Protocol::TextDatagrams, Protocol::BinaryDatagrams];
    let protocol = *protocols.choose(rng).expect("not empty");
    let pause_us = (tastes.pause_us / 4).max(HOT_PAUSE_US_MIN);
    let mut read = |count| {
        let reads = (0..count).map(|_| {
            let read = Operation::Get(vec![tastes.hot_key(rng)]);
            (rng.random_range(1..=pause_us), read)
        });
        reads.collect::<Vec<_>>()
    };
    ClientPlan {
        operations: read(HOT_READS),
        calm: read(CALM_OPERATIONS_MAX),
        protocol,
        seed: rng.random(),
        pipeline: *[1, 1, 4].choose(rng).expect("not empty"),
        is_quiet: false,
        stream: StreamFaults::default(),
        packets: packets(rng, protocol, tastes),
        read_pause_us: 0,
        logs_in: false,
        is_encrypted: false,
    }
}

/// Has one of the clients flush everything, if the one that is drawn can.
pub fn add_flush(rng: &mut SmallRng, clients: &mut [ClientPlan]) {
    let client = clients.choose_mut(rng).expect("not empty");
    use Protocol::{BinaryDatagrams, Native, TextDatagrams, Watch};
    if !matches!(
        client.protocol,
        Native | TextDatagrams | BinaryDatagrams | Watch
    ) {
        let at = rng.random_range(0..=client.operations.len());
        client.operations.insert(at, (0, Operation::Flush(0)));
    }
}

/// Draws a client that watches mutations.
pub fn watcher(rng: &mut SmallRng) -> ClientPlan {
    ClientPlan {
        protocol: Protocol::Watch,
        seed: rng.random(),
        pipeline: 0,
        is_quiet: false,
        stream: stream(rng),
        packets: Faults::default(),
        read_pause_us: *[0, 0, 20_000].choose(rng).expect("not empty"),
        operations: Vec::new(),
        calm: Vec::new(),
        logs_in: false,
        is_encrypted: false,
    }
}

/// Draws a client that never stops.
pub fn flooder(rng: &mut SmallRng, server: ServerPlan) -> ClientPlan {
    let floods = Flood::OF_ALL.iter();
    let before_login = Flood::BEFORE_LOGIN.iter().filter(|_| server.is_locked);
    let floods: Vec<&Flood> = floods.chain(before_login).collect();
    ClientPlan {
        protocol: Protocol::Flood(**floods.choose(rng).expect("not empty")),
        read_pause_us: 0,
        ..watcher(rng)
    }
}

fn stream(rng: &mut SmallRng) -> StreamFaults {
    let buffers = [64 << 10, 4 << 10, 300];
    StreamFaults {
        short_read: *[0.0, 0.3].choose(rng).expect("not empty"),
        short_write: *[0.0, 0.3].choose(rng).expect("not empty"),
        reset: 0.0,
        buffer_bytes: *buffers.choose(rng).expect("not empty"),
    }
}

fn packets(rng: &mut SmallRng, protocol: Protocol, tastes: &Tastes) -> Faults {
    let mut chance = || {
        let draws = tastes.loses && rng.random_bool(0.7);
        if draws {
            rng.random_range(0.0..0.2)
        } else {
            0.0
        }
    };
    Faults {
        loss: chance(),
        duplication: chance(),
        reordering: chance(),
        reordering_us_max: 20_000,
        // UDP's checksum finds what is truncated; the native protocol is to find it by itself.
        truncation: match protocol {
            Protocol::Native => chance(),
            _ => 0.0,
        },
        delay_us_min: 10,
        delay_us_max: 200,
    }
}

/// How long a client waits before it asks.
fn pause_us(rng: &mut SmallRng, tastes: &Tastes) -> u64 {
    if tastes.expires && rng.random_bool(0.1) {
        let second = rng.random_range(1..=2) * 1_000_000;
        return second - MISSES_BY_US + rng.random_range(0..2 * MISSES_BY_US);
    }
    match rng.random_bool(0.5) {
        true => rng.random_range(0..=tastes.pause_us),
        false => 0,
    }
}

/// An operation that the protocol has.
fn operation(rng: &mut SmallRng, protocol: Protocol, tastes: &Tastes) -> Operation {
    use Protocol::{BinaryDatagrams, Native, Resp, Text, TextDatagrams};
    match (tastes.operation(rng), protocol) {
        (Operation::Flush(_), Native | TextDatagrams | BinaryDatagrams) => Operation::Get(vec![0]),
        (Operation::Flush(_), Resp) => Operation::Flush(0),
        (Operation::Append(key, _), Native | Resp) => Operation::Set(key, tastes.bytes(rng), 0),
        (Operation::GetAndTouch(key, _), Native | Resp) => Operation::Get(vec![key]),
        (Operation::Count(key, delta), Text | TextDatagrams | Native) => {
            Operation::Increment(key, delta)
        }
        (Operation::Increment(key, delta), Resp) => Operation::Count(key, delta),
        (Operation::Cas(key, _), Resp) => Operation::Set(key, tastes.bytes(rng), 0),
        (Operation::Get(keys), Text | TextDatagrams | Resp) => Operation::Get(keys),
        (Operation::Get(keys), _) => Operation::Get(keys[..1].to_vec()),
        (other, _) => other,
    }
}
