//! However many slow clients there are, a well-behaved client is served, and what slow clients have
//! the server hold stays within its bound.
//!
//! Slow senders send a part of a value; slow readers ask for more than sockets hold. After that
//! they do nothing more. Each test goes on until well-behaved clients, new ones and one that has
//! been there from the start, have been served beside all of them.

#[path = "all/support/mod.rs"]
mod support;

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use glimmer_base::limits::{
    BATCH_MAX, BUFFER_BYTES, LARGE_REPLY_BYTES, RECEIVE_BYTES_SCARCE, REPLY_BYTES_HIGH,
    STALLED_MS_MAX,
};
use glimmer_node::{Address, Node, NodeConfig, Tally};
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Client, Habits, PATIENCE, config, start_with};

/// What slow clients do.
#[derive(Clone, Copy, Debug)]
enum Slow {
    Senders,
    Readers,
    Both,
}

/// Buffers of each of two workers, in bytes, as `-m` plans them.
const AT_64_MIB: usize = 0;
const AT_1024_MIB: usize = 8 << 20;

/// Descriptors of the test program beside those of the slow clients, two for each.
const DESCRIPTORS_OWN: usize = 256;

/// As many of the wanted clients as the limit of open descriptors allows, raised as far as that is
/// permitted. Says so if they are fewer.
fn permitted(wanted: usize) -> usize {
    let descriptors = (2 * wanted + DESCRIPTORS_OWN) as u64;
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raise = |current, maximum| {
        let limit = Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        };
        setrlimit(Resource::Nofile, limit).map(|()| current)
    };
    let soft = limit.current.unwrap_or(u64::MAX);
    let allowed = match soft >= descriptors {
        true => soft,
        false => raise(descriptors, hard.max(descriptors))
            .or_else(|_| raise(hard, hard))
            .unwrap_or(soft),
    };
    let clients = (allowed as usize).saturating_sub(DESCRIPTORS_OWN) / 2;
    if clients < wanted {
        eprintln!("RUN WITH {clients} CLIENTS INSTEAD OF {wanted}: {allowed} descriptors allowed");
    }
    clients.min(wanted)
}

fn total(node: &Node) -> Tally {
    let mut total = Tally::default();
    let tallies = node.figures().tallies();
    tallies.into_iter().for_each(|tally| total += tally);
    total
}

/// Sends what the server takes at once.
fn say(stream: &mut TcpStream, mut words: &[u8]) {
    stream.set_nonblocking(true).unwrap();
    while !words.is_empty() {
        match stream.write(words) {
            Ok(bytes) => words = &words[bytes..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // It has been closed.
            Err(_) => return,
        }
    }
}

fn connect(node: &Node) -> TcpStream {
    let Address::Tcp(address) = node.addresses()[0] else {
        unreachable!("it listens on loopback");
    };
    let stream = TcpStream::connect(address).unwrap();
    // The kernel keeps little for it, so that what it does not take is the server's to keep.
    sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    stream
}

/// Runs `clients` slow clients with values of `value_bytes` against two workers.
fn abuse(slow: Slow, clients: usize, value_bytes: usize, buffer_bytes: usize) {
    let clients = permitted(clients);
    let what = format!("{slow:?}, {clients} clients, {value_bytes} B, {buffer_bytes} B of buffers");
    let mut config = config();
    config.connections_max = clients + 32;
    config.buffer_bytes = buffer_bytes;
    let limits = config.limits;
    let node = start_with(config, 2, Habits::EREW);
    let mut resident = Client::connect(&node);
    let value = vec![b'v'; value_bytes];
    resident.send(format!("set large 0 0 {value_bytes}\r\n"));
    resident.send(&value);
    assert_eq!(resident.ask("\r\n"), "STORED\r\n");

    let part = match value_bytes {
        ..20_000 => 2_100,
        _ => value_bytes / 2,
    };
    let mut send = format!("set never 0 0 {value_bytes}\r\n").into_bytes();
    send.extend_from_slice(&value[..part]);
    let asks = (4 * REPLY_BYTES_HIGH / value_bytes).clamp(64, 4096);
    let read = "get large\r\n".repeat(asks).into_bytes();
    let words = |number: usize| match slow {
        Slow::Senders => &send,
        Slow::Readers => &read,
        Slow::Both if number.is_multiple_of(2) => &send,
        Slow::Both => &read,
    };
    let mut villains: Vec<TcpStream> = Vec::new();
    for number in 0..clients {
        let mut stream = connect(&node);
        say(&mut stream, words(number));
        villains.push(stream);
        if number.is_multiple_of(clients.div_ceil(10)) {
            serve_one(&node, number, &what);
        }
    }
    for number in 0..10 {
        serve_one(&node, number, &what);
        resident.expect("mn\r\n", "MN\r\n");
    }
    // Replies of one batch that were guessed to be smaller may be held for a moment.
    let least = NodeConfig::buffer_bytes_min(&limits);
    let limit = 2 * (buffer_bytes.max(least) + BATCH_MAX * value_bytes);
    let bytes = total(&node).buffer_bytes as usize;
    assert!(
        bytes <= limit,
        "{what}: {bytes} bytes of buffers, {limit} allowed"
    );
}

/// Has a new client served.
fn serve_one(node: &Node, number: usize, what: &str) {
    let mut client = Client::connect(node);
    let key = format!("well-behaved-{number}");
    for (request, reply) in [
        (
            format!("set {key} 0 0 2\r\nhi\r\n"),
            "STORED\r\n".to_owned(),
        ),
        (
            format!("get {key}\r\n"),
            format!("VALUE {key} 0 2\r\nhi\r\nEND\r\n"),
        ),
    ] {
        client.send(request);
        let mut got = vec![0; reply.len()];
        let read = std::io::Read::read_exact(&mut client.stream, &mut got);
        assert!(
            read.is_ok(),
            "{what}: no answer within {PATIENCE:?}: {read:?}"
        );
        assert_eq!(String::from_utf8_lossy(&got), reply, "{what}");
    }
}

#[test]
fn slow_senders_stop_nobody() {
    for (clients, value_bytes) in [(100, 100_000), (450, 16_000), (1000, 3_000), (1000, 16_000)] {
        abuse(Slow::Senders, clients, value_bytes, AT_64_MIB);
    }
    abuse(Slow::Senders, 1000, 100_000, AT_1024_MIB);
}

#[test]
fn slow_readers_stop_nobody() {
    for (clients, value_bytes) in [(100, 1_000_000), (100, 100_000), (1000, 16_000)] {
        abuse(Slow::Readers, clients, value_bytes, AT_64_MIB);
    }
    abuse(Slow::Readers, 300, 100_000, AT_1024_MIB);
}

#[test]
fn slow_senders_and_readers_together_stop_nobody() {
    for (clients, value_bytes) in [(100, 100_000), (1000, 16_000)] {
        abuse(Slow::Both, clients, value_bytes, AT_64_MIB);
    }
    abuse(Slow::Both, 1000, 16_000, AT_1024_MIB);
}

#[test]
fn ten_thousand_slow_senders_stop_nobody() {
    abuse(Slow::Senders, 10_000, 16_000, AT_64_MIB);
}

/// Requests that were received and wait for their connection's next turn hold little memory, and
/// each is answered.
#[test]
fn requests_that_wait_for_their_turn_hold_little() {
    let clients = permitted(2_000);
    let mut config = config();
    config.connections_max = clients + 32;
    config.buffer_bytes = AT_64_MIB;
    let least = NodeConfig::buffer_bytes_min(&config.limits);
    let node = start_with(config, 2, Habits::EREW);
    let ask = "get missing\r\n";
    // They fill an ordinary buffer, and take several turns.
    let requests = BUFFER_BYTES / ask.len();
    let asks = ask.repeat(requests).into_bytes();
    let mut streams: Vec<TcpStream> = (0..clients)
        .map(|_| Client::connect(&node).stream)
        .collect();
    for stream in &mut streams {
        say(stream, &asks);
    }
    let mut held_bytes_max = 0;
    let mut replies = Vec::new();
    for mut stream in streams {
        stream.set_nonblocking(false).unwrap();
        replies.resize(requests * "END\r\n".len(), 0);
        let read = std::io::Read::read_exact(&mut stream, &mut replies);
        assert!(read.is_ok(), "{read:?}: {:?}", total(&node));
        assert_eq!(replies, "END\r\n".repeat(requests).into_bytes());
        held_bytes_max = held_bytes_max.max(total(&node).buffer_bytes as usize);
    }
    // Each worker's first connections found memory that was not scarce yet.
    let limit = 2 * least + clients * RECEIVE_BYTES_SCARCE;
    assert!(
        held_bytes_max <= limit,
        "{held_bytes_max} bytes of buffers, {limit} allowed, {clients} clients"
    );
}

/// The first large value that a client asks for waits until connections with small replies have
/// been served; its replies keep their order.
#[test]
fn the_first_large_reply_of_a_client_waits_for_small_ones() {
    let node = start_with(config(), 1, Habits::EREW);
    let mut writer = Client::connect(&node);
    let large = "v".repeat(2 * LARGE_REPLY_BYTES);
    writer.send(format!("set large 0 0 {}\r\n{large}\r\n", large.len()));
    assert_eq!(writer.line(), "STORED\r\n");
    writer.expect("set small 0 0 2\r\nhi\r\n", "STORED\r\n");
    let before = total(&node).batches;
    let small = "VALUE small 0 2\r\nhi\r\nEND\r\n";
    let shown = format!("VALUE large 0 {}\r\n{large}\r\nEND\r\n", large.len());
    let mut reader = Client::connect(&node);
    reader.expect(
        "get small\r\nget large\r\nget small\r\n",
        format!("{small}{shown}{small}"),
    );
    // One batch for the first reply, and one for the large value and what follows it. The worker
    // shows its figures after it has sent the replies.
    let begin = Instant::now();
    while total(&node).batches - before < 2 {
        assert!(begin.elapsed() < PATIENCE, "the large value did not wait");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A client that takes its time is not closed while nobody else needs what it holds.
#[test]
fn slow_clients_are_left_alone_while_memory_suffices() {
    let node = start_with(config(), 1, Habits::EREW);
    let mut slow = Client::connect(&node);
    slow.send("set k 0 0 10\r\n");
    for byte in b"0123456789\r\n" {
        thread::sleep(Duration::from_millis(60));
        slow.send([*byte]);
        serve_one(&node, 0, "beside a slow client");
    }
    assert_eq!(slow.line(), "STORED\r\n");
    assert_eq!(total(&node).stalled_kicks, 0);
}

/// The one that has been stalled for longest goes first.
#[test]
fn the_longest_stalled_are_closed() {
    let mut config = config();
    config.connections_max = 2000;
    let node = start_with(config, 1, Habits::EREW);
    let part = format!("set never 0 0 16000\r\n{}", "x".repeat(9_000));
    let mut first = Client::connect(&node);
    first.send(&part);
    // Others come once it has been stalled for longer than any of them will have been.
    thread::sleep(Duration::from_millis(STALLED_MS_MAX));
    let mut villains = Vec::new();
    for _ in 0..600 {
        let mut stream = connect(&node);
        say(&mut stream, part.as_bytes());
        villains.push(stream);
    }
    let begin = Instant::now();
    while total(&node).stalled_kicks == 0 {
        assert!(begin.elapsed() < PATIENCE, "nobody is closed");
        thread::sleep(Duration::from_millis(10));
    }
    let _ = first.stream.write_all(&[b'x'; 7_000]);
    assert_eq!(first.try_ask("\r\n"), "", "the first to stall is closed");
}
