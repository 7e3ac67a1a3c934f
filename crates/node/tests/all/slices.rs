//! Large values beside small requests: a worker handles one slice at a time, turn by turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bench::{Bench, Cache, Kind, Store, TABLE_BYTES, received};
use crate::support::config;
use glimmer_base::limits::{BATCH_MAX, BUFFER_BYTES, SHORT_TICK_MS, SLICE_BYTES, SMALL_REQUEST_MS};
use glimmer_dispatch::{Settings, SizeAware};
use glimmer_engine::Uniques;
use glimmer_node::Tally;
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_transport::Sent;
use glimmer_transport::stream::{ByteStream, LocalStream};

/// Bytes of a large value, which takes sixteen slices and a bit.
const LARGE: usize = 16 * SLICE_BYTES + 100;
/// Bytes of a reply around its value, at most.
const AROUND: usize = 100;
/// Clients that take their replies later.
const SLOW_CLIENTS: usize = 40;

/// A value of which no two slices are alike.
fn value(first: u8) -> Vec<u8> {
    (0..LARGE)
        .map(|at| first.wrapping_add((at / 1_000) as u8))
        .collect()
}

fn set(command: &str, value: &[u8]) -> Vec<u8> {
    [command.as_bytes(), b"\r\n", value, b"\r\n"].concat()
}

fn shown(value: &[u8]) -> Vec<u8> {
    let head = format!("VALUE large 0 {LARGE}\r\n");
    [head.as_bytes(), value, b"\r\nEND\r\n"].concat()
}

fn small_requests_wait_for_one_slice<K: Kind>() {
    let (mut bench, mut small) = Bench::with_small_requests::<K>(1, Uniques::Kept);
    let mut large = bench.connect();
    // Received: no turn takes more than a slice.
    large.send(&set(&format!("set large 0 0 {LARGE}"), &value(1)));
    let read = |bench: &Bench| bench.node.figures().tallies()[0].bytes_read as usize;
    let mut turns = 0;
    while received(&mut large).is_empty() {
        let before = read(&bench);
        bench.turn_beside(&mut small);
        // The announcement comes with an ordinary buffer.
        let bytes = read(&bench) - before;
        assert!(bytes <= SLICE_BYTES + BUFFER_BYTES + AROUND, "{bytes}");
        turns += 1;
    }
    assert!(turns >= LARGE / SLICE_BYTES, "received in {turns} turns");
    // Sent: a slice a turn.
    large.send(b"get large\r\n");
    let (mut reply, mut turns) = (Vec::new(), 0);
    while reply.len() < LARGE {
        bench.turn_beside(&mut small);
        let more = received(&mut large);
        let (bytes, after) = (more.len(), reply.len());
        assert!(bytes <= SLICE_BYTES, "{bytes} bytes after {after}");
        reply.extend(more);
        turns += 1;
    }
    let least = LARGE / SLICE_BYTES;
    assert!(
        (least..=least + 3).contains(&turns),
        "sent in {turns} turns"
    );
    bench.turn_beside(&mut small);
    reply.extend(received(&mut large));
    assert!(reply == shown(&value(1)));
}

#[test]
fn small_requests_wait_for_one_slice_of_a_table_of_its_own() {
    small_requests_wait_for_one_slice::<Cache<Erew>>();
    small_requests_wait_for_one_slice::<Store<Erew>>();
}

#[test]
fn small_requests_wait_for_one_slice_of_a_shared_table() {
    small_requests_wait_for_one_slice::<Cache<Crcw>>();
    small_requests_wait_for_one_slice::<Store<Crcw>>();
}

#[test]
fn without_small_requests_a_value_is_sent_whole() {
    let (mut bench, _) = Bench::with_small_requests::<Cache<Erew>>(1, Uniques::Kept);
    let mut large = bench.connect();
    let reply = bench.ask(
        &mut large,
        &set(&format!("set large 0 0 {LARGE}"), &value(1)),
    );
    assert_eq!(reply, b"STORED\r\n");
    bench.clock.0.fetch_add(SMALL_REQUEST_MS, Ordering::Relaxed);
    large.send(b"get large\r\n");
    bench.turns(2);
    assert!(received(&mut large) == shown(&value(1)));
}

/// Another worker replaces a value while its slices leave: the reply shows the old one.
fn a_reply_has_one_value<K: Kind>(uniques: Uniques, set: &str) {
    let (mut bench, mut small) = Bench::with_small_requests::<K>(2, uniques);
    let [mut writer, mut reader] = [bench.connect(), bench.connect()];
    let request = |first| [set.as_bytes(), b"\r\n", &value(first), b"\r\n"].concat();
    let mut old = 1;
    bench.ask(&mut writer, &request(old));
    for slices in [1, 2, 8, 15, 16] {
        reader.send(b"get large\r\n");
        for _ in 0..slices {
            bench.turn_beside(&mut small);
        }
        let mut reply = received(&mut reader);
        let new = slices as u8 + 1;
        let before = bench.node.figures().tallies()[1].requests;
        writer.send(&request(new));
        while received(&mut writer).is_empty() {
            bench.turn(1);
        }
        assert_eq!(bench.node.figures().tallies()[1].requests, before + 1);
        bench.turns(200);
        reply.extend(received(&mut reader));
        assert!(reply == shown(&value(old)), "{slices} slices");
        old = new;
    }
}

#[test]
fn a_value_that_changes_meanwhile_does_not_mix_with_the_next() {
    let set = format!("set large 0 0 {LARGE}");
    a_reply_has_one_value::<Cache<Crcw>>(Uniques::Kept, &set);
    a_reply_has_one_value::<Store<Crcw>>(Uniques::Kept, &set);
}

#[test]
fn nor_if_the_client_gives_both_the_same_unique() {
    let set = format!("ms large {LARGE} E5");
    a_reply_has_one_value::<Cache<Crcw>>(Uniques::Kept, &set);
    a_reply_has_one_value::<Store<Crcw>>(Uniques::Kept, &set);
}

fn store(bench: &mut Bench, client: &mut LocalStream, first: u8) {
    let request = set(&format!("set large 0 0 {LARGE}"), &value(first));
    let reply = bench.ask(client, &request);
    assert_eq!(String::from_utf8_lossy(&reply), "STORED\r\n");
}

/// A request, and its reply.
type Exchange<'a> = (&'a [u8], &'a [u8]);

/// Asks for the value, lets a few slices pass, and has small requests executed in the next turns.
/// Returns the reply to the first.
fn reply_beside(bench: &mut Bench, small: &mut LocalStream, changes: &[Exchange<'_>]) -> Vec<u8> {
    let mut writers = Vec::new();
    for (request, reply) in changes {
        let mut writer = bench.connect();
        let (most, last) = request.split_at(request.len() - 1);
        writer.send(most);
        writers.push((writer, last, reply));
    }
    bench.turns(100);
    let mut large = bench.connect();
    large.send(b"get large\r\n");
    for _ in 0..3 {
        bench.turn_beside(small);
    }
    for (writer, last, _) in &mut writers {
        writer.send(last);
    }
    bench.turns(200);
    for (writer, _, reply) in &mut writers {
        assert_eq!(received(writer), **reply);
    }
    received(&mut large)
}

/// Whatever happens to an item whose value is lent, the reply shows the value.
fn a_value_that_is_lent_stays<A: Access>() {
    // Stores other large values before the read. Returns whether the item has left by then.
    let see = |what: &str, others: usize, changes: &[Exchange<'_>]| {
        let (mut bench, mut small) = Bench::with_small_requests::<Cache<A>>(1, Uniques::Kept);
        store(&mut bench, &mut small, 1);
        for number in 0..others {
            let other = set(&format!("set n{number} 0 0 {LARGE}"), &value(3));
            assert_eq!(bench.ask(&mut small, &other), b"STORED\r\n");
        }
        let stored = bench.ask(&mut small, b"set small 0 0 1\r\nx\r\n");
        assert_eq!(stored, b"STORED\r\n");
        let reply = reply_beside(&mut bench, &mut small, changes);
        let has_left = reply == b"END\r\n" && others > 0;
        assert!(has_left || reply == shown(&value(1)), "{what}, {others}");
        has_left
    };
    let small = |number| set(&format!("set s{number} 0 0 7000"), &[5; 7_000]);
    let sets: Vec<Vec<u8>> = (0..200).map(small).collect();
    let sets = sets.iter().map(|set| (&set[..], &b"STORED\r\n"[..]));
    let sets: Vec<Exchange<'_>> = sets.collect();
    let (tiny, more) = (b"set large 0 0 1\r\nx\r\n", b"append large 0 0 1\r\nx\r\n");
    see("deleted", 0, &[(b"delete large\r\n", b"DELETED\r\n")]);
    see("replaced", 0, &[(tiny, b"STORED\r\n")]);
    see("appended to", 0, &[(more, b"STORED\r\n")]);
    let flush: Exchange<'_> = (b"flush_all\r\n", b"OK\r\n");
    see("flushed", 0, &[&[flush], &sets[..]].concat());
    // In some of these the value is the next to be evicted, and its place the next to be used.
    let fill = TABLE_BYTES / LARGE;
    let evicted = (fill - 4..fill + 2).filter(|others| see("evicted", *others, &sets));
    assert!((1..6).contains(&evicted.count()));
}

#[test]
fn a_value_that_is_lent_stays_in_a_table_of_its_own() {
    a_value_that_is_lent_stays::<Erew>();
}

#[test]
fn a_value_that_is_lent_stays_in_a_shared_table() {
    a_value_that_is_lent_stays::<Crcw>();
}

/// Values that slow clients are lent stay in the table and cost their connections nothing. When
/// others are to be stored in their place, all share one copy. `pipelined` requests of each are for
/// the same value, which is another worker's for some of the clients.
fn slow_clients_hold_no_memory<A: Access>(workers: usize, pipelined: usize) {
    let mut bench = Bench::with_partitions::<Cache<A>>(workers, workers, Uniques::Kept);
    let mut other_client = bench.connect();
    store(&mut bench, &mut other_client, 1);
    let mut slow: Vec<_> = (0..SLOW_CLIENTS)
        .map(|_| bench.connect_with_room(100_000))
        .collect();
    for client in &mut slow {
        client.send(&b"get large\r\n".repeat(pipelined));
        bench.turns(10 * pipelined);
    }
    let held = |bench: &Bench| -> usize {
        let workers = bench.node.workers.iter();
        workers.map(|worker| worker.held_bytes()).sum()
    };
    // Requests that are not answered yet may wait in buffers.
    let few = match pipelined {
        1 => SLOW_CLIENTS * 1_000,
        _ => SLOW_CLIENTS * 2 * BUFFER_BYTES,
    };
    assert!(held(&bench) < few, "{} of {few}", held(&bench));
    let used = |bench: &Bench| -> u64 {
        let tallies = bench.node.figures().tallies();
        let used = |tally: Tally| tally.buffer_bytes - tally.buffer_bytes_free;
        tallies.into_iter().map(used).sum()
    };
    let before = used(&bench);
    // Fills the table more than once.
    for other in 0..2 * workers * TABLE_BYTES / LARGE {
        let request = set(&format!("set other{other} 0 0 {LARGE}"), &value(2));
        assert_eq!(bench.ask(&mut other_client, &request), b"STORED\r\n");
    }
    bench.clock.0.fetch_add(SHORT_TICK_MS, Ordering::Relaxed);
    bench.turns(2);
    assert!(held(&bench) < few, "{} of {few}", held(&bench));
    let copies = used(&bench) - before;
    assert_eq!(copies / (LARGE as u64 * 9 / 10), 1, "{copies} bytes");
    let expected = shown(&value(1));
    for client in &mut slow {
        let mut reply = Vec::new();
        while reply.len() < expected.len() {
            let more = received(client);
            assert!(!more.is_empty());
            reply.extend(more);
            bench.turns(10);
        }
        assert!(reply[..expected.len()] == expected);
    }
    drop(slow);
    bench.turns(100);
    assert_eq!(held(&bench), 0);
}

#[test]
fn slow_clients_hold_no_memory_for_what_the_table_has() {
    slow_clients_hold_no_memory::<Crcw>(1, 1);
}

#[test]
fn slow_clients_hold_no_memory_for_what_another_worker_has() {
    slow_clients_hold_no_memory::<Erew>(2, 1);
    slow_clients_hold_no_memory::<Erew>(3, 4);
}

#[test]
fn a_client_that_leaves_meanwhile_leaves_no_memory_behind() {
    let (mut bench, mut small) = Bench::with_small_requests::<Cache<Erew>>(1, Uniques::Kept);
    let mut large = bench.connect();
    bench.ask(
        &mut large,
        &set(&format!("set large 0 0 {LARGE}"), &value(1)),
    );
    let held = |bench: &Bench| bench.node.workers[0].held_bytes();
    assert_eq!(held(&bench), 0);
    large.send(b"get large\r\n");
    for _ in 0..5 {
        bench.turn_beside(&mut small);
    }
    assert!(held(&bench) > 0, "what is around the value counts");
    drop(large);
    bench.turns(100);
    assert_eq!(held(&bench), 0);
}

/// A worker that has small requests receives what a slow client sends of a large value itself, as
/// little as it is. Of a fast client another worker receives the rest.
#[test]
fn a_slow_client_does_not_occupy_two_workers() {
    let mut config = config();
    config.dispatch = Arc::new(SizeAware {
        settings: Settings::DEFAULT,
        threshold: Some(SLICE_BYTES as u32),
    });
    let mut bench = Bench::with_config::<Cache<Crcw>>((1, 2), Uniques::Kept, config);
    let mut client = bench.connect();
    let visits = |bench: &Bench| bench.node.figures().tallies()[0].visits;
    let request = set(&format!("set large 0 0 {LARGE}"), &value(1));
    let (slow, fast) = request.split_at(100 * BUFFER_BYTES / 10);
    for piece in slow.chunks(BUFFER_BYTES / 10) {
        assert_eq!(bench.ask(&mut client, piece), b"");
    }
    assert_eq!(visits(&bench), 0);
    assert_eq!(bench.ask(&mut client, fast), b"STORED\r\n");
    assert_eq!(visits(&bench), 1);
    assert!(bench.ask(&mut client, b"get large\r\n") == shown(&value(1)));
}

/// Small and large requests in one pipeline: the replies are in order.
#[test]
fn replies_keep_their_order() {
    let (mut bench, _small) = Bench::with_small_requests::<Cache<Crcw>>(1, Uniques::Kept);
    let mut large = bench.connect();
    let mut asked = set(&format!("set large 0 0 {LARGE}"), &value(1));
    asked.extend_from_slice(b"get small\r\nget large small large\r\nget small\r\n");
    let reply = bench.ask(&mut large, &asked);
    let whole = shown(&value(1));
    let large_part = &whole[..whole.len() - 5];
    let small_part = &b"VALUE small 0 1\r\nx\r\n"[..];
    let expected = [
        &b"STORED\r\n"[..],
        small_part,
        b"END\r\n",
        large_part,
        small_part,
        large_part,
        b"END\r\n",
        small_part,
        b"END\r\n",
    ]
    .concat();
    assert!(reply == expected);
}

/// A request for another worker follows a large read in the same batch. It is taken back, so that
/// the large read must not wait for its reply.
#[test]
fn a_large_read_does_not_wait_for_a_request_behind_it() {
    let mut bench = Bench::with_partitions::<Cache<Erew>>(2, 2, Uniques::Kept);
    // Each worker is home to one of them, and either of them to the large value.
    let mut clients = [bench.connect(), bench.connect()];
    let large = set(&format!("set large 0 0 {LARGE}"), &value(1));
    assert_eq!(bench.ask(&mut clients[0], &large), b"STORED\r\n");
    let names: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    for client in &mut clients {
        for name in &names {
            let request = format!("set {name} 0 0 1\r\nx\r\n");
            assert_eq!(bench.ask(client, request.as_bytes()), b"STORED\r\n");
        }
    }
    let mut expected = shown(&value(1));
    expected.truncate(expected.len() - b"END\r\n".len());
    for name in &names {
        expected.extend_from_slice(format!("VALUE {name} 0 1\r\nx\r\n").as_bytes());
    }
    expected.extend_from_slice(b"END\r\n");
    for client in &mut clients {
        let crossed = |bench: &Bench| -> u64 {
            let tallies = bench.node.figures().tallies();
            tallies.iter().map(|tally| tally.requests_crossed).sum()
        };
        let before = crossed(&bench);
        let request = format!("get large {}\r\n", names.join(" "));
        let reply = bench.ask(client, request.as_bytes());
        assert!(reply == expected, "{} bytes", reply.len());
        assert!(crossed(&bench) > before, "some belong to the other worker");
    }
}

/// A batch lends a value to a reply, and a later batch of the same burst has a request for another
/// worker. The reply to that one comes after the whole value.
#[test]
fn a_value_that_is_lent_comes_before_the_reply_to_a_request_that_crosses() {
    let mut bench = Bench::with_partitions::<Cache<Erew>>(2, 2, Uniques::Kept);
    let mut clients = [bench.connect(), bench.connect()];
    let large = set(&format!("set large 0 0 {LARGE}"), &value(1));
    assert_eq!(bench.ask(&mut clients[0], &large), b"STORED\r\n");
    let names: Vec<String> = (0..16).map(|number| format!("k{number}")).collect();
    for name in &names {
        let request = format!("set {name} 0 0 1\r\nx\r\n");
        assert_eq!(
            bench.ask(&mut clients[0], request.as_bytes()),
            b"STORED\r\n"
        );
    }
    let mut tried = 0;
    for client in &mut clients {
        // Which keys are here is seen by which requests cross.
        let mut crosses = |name: &str| {
            let crossed = |bench: &Bench| -> u64 {
                let tallies = bench.node.figures().tallies();
                tallies.iter().map(|tally| tally.requests_crossed).sum()
            };
            let before = crossed(&bench);
            bench.ask(client, format!("get {name}\r\n").as_bytes());
            crossed(&bench) > before
        };
        if crosses("large") {
            continue;
        }
        let here = names.iter().find(|name| !crosses(name)).unwrap();
        let there = names.iter().find(|name| crosses(name)).unwrap();
        let shown_small = |name: &str| format!("VALUE {name} 0 1\r\nx\r\nEND\r\n");
        let (mut asked, mut expected) = ("get large\r\n".to_owned(), shown(&value(1)));
        for _ in 0..BATCH_MAX {
            asked += &format!("get {here}\r\n");
            expected.extend(shown_small(here).bytes());
        }
        asked += &format!("get {there}\r\n");
        expected.extend(shown_small(there).bytes());
        let reply = bench.ask(client, asked.as_bytes());
        assert!(reply == expected, "{} bytes", reply.len());
        tried += 1;
    }
    assert_eq!(tried, 1, "the large value is one worker's");
}

/// Some clients send all of a line before they read. Its first keys cannot be answered meanwhile,
/// but the others are received.
#[test]
fn keys_are_received_while_replies_are_not_taken() {
    const KEYS: usize = 100_000;
    let (mut bench, _small) = Bench::with_small_requests::<Cache<Crcw>>(1, Uniques::Kept);
    let line = [&b"get"[..], &b" small".repeat(KEYS), b"\r\n"].concat();
    let mut client = bench.connect_with_room(10_000);
    let mut sent = 0;
    while sent < line.len() {
        sent += match client.send(&line[sent..]) {
            Sent::All => line.len() - sent,
            Sent::Part(bytes) => bytes,
            Sent::Failed => panic!("it was closed"),
        };
        let before = bench.node.figures().tallies()[0].bytes_read;
        bench.turns(3);
        let received = bench.node.figures().tallies()[0].bytes_read - before;
        assert!(received > 0, "{sent} bytes are sent");
    }
    let reply = [
        b"VALUE small 0 1\r\nx\r\n".repeat(KEYS),
        b"END\r\n".to_vec(),
    ]
    .concat();
    let mut taken = Vec::new();
    while taken.len() < reply.len() {
        let more = received(&mut client);
        assert!(!more.is_empty());
        taken.extend(more);
        bench.turns(3);
    }
    assert!(taken == reply);
    assert_eq!(bench.node.workers[0].held_bytes(), 0);
}
