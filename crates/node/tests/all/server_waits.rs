//! Connections that wait for the server: they are not idle, a server that stops answers them, and
//! no client keeps others waiting for ever.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::bench::{Bench, Cache, Kind, received};
use crate::support::config;
use glimmer_base::limits::{
    DRAIN_MS_MAX, GATHERED_IDLE_MS_MAX, LOGIN_DELAY_MS, ROOM_ITEMS_PER_TURN, SHORT_TICK_MS,
    UPLOAD_SLOW_MS_MAX, UPLOADS_PART,
};
use glimmer_engine::Uniques;
use glimmer_node::{Rest, Tally};
use glimmer_store::access::{Crcw, Erew};
use glimmer_transport::stream::{ByteStream, LocalStream};

/// A table that receives one large value at a time.
const SMALL_TABLE_BYTES: usize = 6 << 20;
/// Bytes of such a value.
const LARGE_BYTES: usize = SMALL_TABLE_BYTES / UPLOADS_PART * 3 / 4;
const IDLE_MS: u64 = 3_000;
/// What `CLIENT LIST` shows.
const CLIENTS: &[u8] = b"$15\r\nid=0\nid=1\nid=2\n\r\n";

/// This many workers with a partition each, which count by prefix.
fn patient<K: Kind>(workers: usize) -> Bench {
    workers_with::<K>(workers, None)
}

/// The same, and they close connections that are idle for [`IDLE_MS`].
fn impatient<K: Kind>(workers: usize) -> Bench {
    workers_with::<K>(workers, Some(Duration::from_millis(IDLE_MS)))
}

fn workers_with<K: Kind>(workers: usize, idle_timeout: Option<Duration>) -> Bench {
    let mut config = config();
    config.idle_timeout = idle_timeout;
    config.observers.sample_prefixes(b':');
    Bench::with_config::<K>((workers, workers), Uniques::Kept, config)
}

/// Turns of all workers, while the clock moves on by this many milliseconds.
fn pass(bench: &mut Bench, ms: u64) {
    for _ in 0..ms.div_ceil(SHORT_TICK_MS) {
        bench.clock.0.fetch_add(SHORT_TICK_MS, Ordering::Relaxed);
        bench.turns(10);
    }
}

fn total(bench: &Bench) -> Tally {
    let mut total = Tally::default();
    let tallies = bench.node.figures().tallies();
    tallies.into_iter().for_each(|tally| total += tally);
    total
}

/// Stores this many items with long keys.
fn fill(bench: &mut Bench, items: usize) {
    let mut client = bench.connect();
    for first in (0..items).step_by(100) {
        let sets = (first..items.min(first + 100)).map(|nth| {
            let key = format!("key{nth:0>200}");
            format!("set {key} 0 0 1 noreply\r\nx\r\n")
        });
        client.send(sets.collect::<String>().as_bytes());
        assert_eq!(bench.ask(&mut client, b"mn\r\n"), b"MN\r\n");
    }
}

/// A client that has asked for all keys, and takes none of them.
fn gatherer(bench: &mut Bench) -> LocalStream {
    let mut client = bench.connect_with_room(4 << 10);
    client.send(b"KEYS *\r\n");
    bench.turns(500);
    assert!(client.ready().readable, "its reply has begun");
    client
}

/// Reads a reply as it comes, until nothing more does.
fn take_all(bench: &mut Bench, client: &mut LocalStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let now = received(client);
        if now.is_empty() {
            return all;
        }
        all.extend(now);
        bench.turns(20);
    }
}

/// Tells the workers to stop, and has them take turns until they have, which has to be before they
/// give up on clients.
fn stop(bench: &mut Bench) {
    bench.node.stop();
    for _ in 1..DRAIN_MS_MAX {
        bench.clock.0.fetch_add(1, Ordering::Relaxed);
        let mut goes_on = false;
        for worker in &mut bench.node.workers {
            worker.rest();
            goes_on |= worker.turn();
        }
        if !goes_on {
            return;
        }
    }
    panic!("the workers wait for something");
}

/// Commands that wait for other workers, with what follows them.
#[test]
fn what_has_arrived_is_answered_when_the_server_stops() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "RENAME old:{} new{}\r\nGET new{}\r\n",
            &["+OK\r\n$1\r\nv\r\n"],
        ),
        ("COPY old:{} new{}\r\nGET new{}\r\n", &[":1\r\n$1\r\nv\r\n"]),
        ("RANDOMKEY\r\nECHO x\r\n", &["$6\r\nold:", "$1\r\nx\r\n"]),
        (
            "SCAN 0 COUNT 1000\r\nECHO x\r\n",
            &["$1\r\n0\r\n*16\r\n", "$1\r\nx\r\n"],
        ),
        ("KEYS *\r\nECHO x\r\n", &["*16\r\n$", "$1\r\nx\r\n"]),
        ("stats prefix\r\nmn\r\n", &["PREFIX ", "END\r\nMN\r\n"]),
    ];
    for (requests, replies) in cases {
        for turns in 0..8 {
            let mut bench = patient::<Cache<Erew>>(2);
            let mut clients: Vec<_> = (0..16).map(|_| bench.connect()).collect();
            for (nth, client) in clients.iter_mut().enumerate() {
                let stored = bench.ask(client, format!("SET old:{nth:02} v\r\n").as_bytes());
                assert_eq!(stored, b"+OK\r\n");
            }
            // The last ones are of the text protocol.
            if requests.starts_with("stats") {
                clients
                    .iter_mut()
                    .for_each(|client| *client = bench.connect());
            }
            for (nth, client) in clients.iter_mut().enumerate() {
                client.send(requests.replace("{}", &format!("{nth:02}")).as_bytes());
            }
            bench.turns(turns);
            stop(&mut bench);
            for client in &mut clients {
                let reply = String::from_utf8(received(client)).unwrap();
                let has_all = replies.iter().all(|part| reply.contains(part));
                assert!(has_all, "{requests:?} after {turns} turns: {reply:?}");
            }
        }
    }
}

#[test]
fn a_listing_of_all_items_ends_when_the_server_stops() {
    for turns in 1..8 {
        let mut bench = patient::<Cache<Erew>>(2);
        fill(&mut bench, 3_000);
        let mut client = bench.connect();
        client.send(b"lru_crawler metadump all\r\n");
        bench.turns(turns);
        stop(&mut bench);
        let reply = received(&mut client);
        assert!(client.ready().hung_up);
        assert!(!reply.ends_with(b"END\r\n"), "{} bytes", reply.len());
    }
}

#[test]
fn a_value_that_waits_for_its_place_is_not_idle() {
    let mut bench = impatient::<Cache<Crcw, SMALL_TABLE_BYTES>>(1);
    // The items that leave for one value are more than may leave in a turn.
    const OTHERS_BYTES: usize = 1_000;
    const { assert!(LARGE_BYTES / OTHERS_BYTES > 2 * ROOM_ITEMS_PER_TURN as usize) };
    let mut client = bench.connect();
    let other = "v".repeat(OTHERS_BYTES);
    for nth in 0..SMALL_TABLE_BYTES / OTHERS_BYTES {
        client.send(format!("set other{nth} 0 0 {OTHERS_BYTES} noreply\r\n{other}\r\n").as_bytes());
        bench.turns(2);
    }
    drop(client);
    let mut clients: Vec<_> = (0..3).map(|_| bench.connect()).collect();
    let set = |nth: usize| {
        let value = "v".repeat(LARGE_BYTES);
        format!("set key{nth} 0 0 {LARGE_BYTES}\r\n{value}\r\n").into_bytes()
    };
    // Each sends so little of its value that nothing of it is left in its socket. The first has the
    // only place, and is slow.
    const BEGIN_BYTES: usize = 2_000;
    let (mut sent, step) = (BEGIN_BYTES, 340);
    for (nth, client) in clients.iter_mut().enumerate() {
        // It holds a buffer before it waits for a place.
        for piece in [0..10, 10..sent] {
            client.send(&set(nth)[piece]);
            bench.turns(20);
        }
    }
    let (first, began_ms) = (set(0), bench.clock.0.load(Ordering::Relaxed));
    while sent < first.len() {
        let end = first.len().min(sent + step);
        clients[0].send(&first[sent..end]);
        sent = end;
        pass(&mut bench, SHORT_TICK_MS);
    }
    let waited_ms = bench.clock.0.load(Ordering::Relaxed) - began_ms;
    assert!(waited_ms > UPLOAD_SLOW_MS_MAX);
    assert_eq!(received(&mut clients[0]), b"STORED\r\n");
    // The second has the place now, and as much time as if it had just come.
    for (nth, client) in clients.iter_mut().enumerate().skip(1) {
        pass(&mut bench, IDLE_MS - 1_000);
        client.send(&set(nth)[BEGIN_BYTES..]);
        pass(&mut bench, 500);
        assert_eq!(received(client), b"STORED\r\n", "client {nth}");
    }
    let total = total(&bench);
    assert_eq!(
        (total.idle_kicks, total.stalled_kicks),
        (1, 0),
        "the first one"
    );
}

#[test]
fn a_connection_that_is_with_another_worker_is_not_idle() {
    let mut bench = impatient::<Cache<Erew>>(2);
    let value = "v".repeat(LARGE_BYTES);
    let mut clients: Vec<_> = (0..8).map(|_| bench.connect()).collect();
    for (nth, client) in clients.iter_mut().enumerate() {
        client.send(format!("set key{nth} 0 0 {LARGE_BYTES}\r\n{value}\r\n").as_bytes());
    }
    // The second worker does not come to take them.
    for _ in 0..5 {
        bench.clock.0.fetch_add(1_000, Ordering::Relaxed);
        for _ in 0..20 {
            bench.turn(0);
        }
    }
    let visits = bench.node.figures().tallies()[0].visits;
    assert!(visits > 0, "no connection has left");
    bench.turns(500);
    for client in &mut clients {
        assert_eq!(received(client), b"STORED\r\n");
    }
    assert_eq!(total(&bench).idle_kicks, 0);
}

#[test]
fn a_command_that_waits_for_its_turn_is_not_idle() {
    for workers in [1, 2] {
        let mut bench = impatient::<Cache<Erew>>(workers);
        fill(&mut bench, 2_000);
        let mut first = gatherer(&mut bench);
        let mut second = bench.connect();
        second.send(b"KEYS zz*\r\n");
        pass(&mut bench, IDLE_MS + 1_000);
        assert!(!second.ready().readable && !second.ready().hung_up);
        let reply = take_all(&mut bench, &mut first);
        assert!(reply.starts_with(b"*2000\r\n") && reply.len() > 2_000 * 200);
        pass(&mut bench, 500);
        assert_eq!(received(&mut second), b"*0\r\n");
        pass(&mut bench, IDLE_MS - 1_000);
        assert_eq!(bench.ask(&mut second, b"ECHO x\r\n"), b"$1\r\nx\r\n");
    }
}

#[test]
fn an_answer_that_is_withheld_is_sent_to_an_impatient_server_s_client() {
    let mut config = config();
    config.locked = true;
    config.idle_timeout = Some(Duration::from_millis(LOGIN_DELAY_MS));
    let mut bench = Bench::with_config::<Cache<Crcw>>((1, 1), Uniques::Kept, config);
    let mut client = bench.connect();
    assert_eq!(bench.ask(&mut client, b"set x 0 0 5\r\nu bad\r\n"), b"");
    bench.clock.0.fetch_add(LOGIN_DELAY_MS, Ordering::Relaxed);
    bench.turns(2);
    let answer = received(&mut client);
    assert!(
        answer.starts_with(b"CLIENT_ERROR"),
        "{}",
        answer.escape_ascii()
    );
}

#[test]
fn a_client_that_takes_no_keys_loses_its_turn_to_others() {
    for workers in [1, 2] {
        let mut bench = patient::<Cache<Erew>>(workers);
        fill(&mut bench, 2_000);
        let mut idle = gatherer(&mut bench);
        pass(&mut bench, 3 * GATHERED_IDLE_MS_MAX);
        assert!(!idle.ready().hung_up, "nobody else wants to gather");
        let [mut keys, mut prefixes] = [(); 2].map(|()| bench.connect());
        keys.send(b"KEYS zz*\r\n");
        prefixes.send(b"stats prefix\r\n");
        pass(&mut bench, 2_000);
        assert_eq!(received(&mut keys), b"*0\r\n");
        assert!(received(&mut prefixes).ends_with(b"END\r\n"));
        assert!(take_all(&mut bench, &mut idle).len() < 2_000 * 200);
        assert!(idle.ready().hung_up);
        assert_eq!(total(&bench).stalled_kicks, 1);
    }
}

#[test]
fn a_client_that_takes_its_keys_keeps_its_turn() {
    let mut bench = patient::<Cache<Erew>>(2);
    fill(&mut bench, 1_000);
    let mut first = gatherer(&mut bench);
    let mut second = bench.connect();
    second.send(b"KEYS zz*\r\n");
    let mut bytes = 0;
    while bytes < 1_000 * 200 {
        assert!(received(&mut second).is_empty());
        pass(&mut bench, GATHERED_IDLE_MS_MAX - 2_000);
        let now = received(&mut first).len();
        assert!(now > 0);
        bytes += now;
        bench.turns(20);
    }
    take_all(&mut bench, &mut first);
    pass(&mut bench, 500);
    assert_eq!(received(&mut second), b"*0\r\n");
}

/// Its size is bounded, and no client's pace matters to it.
#[test]
fn clients_are_listed_while_another_takes_no_keys() {
    let mut bench = patient::<Cache<Erew>>(2);
    fill(&mut bench, 2_000);
    let _idle = gatherer(&mut bench);
    let mut other = bench.connect();
    assert_eq!(bench.ask(&mut other, b"CLIENT LIST\r\n"), CLIENTS);
}

/// A client that takes nothing of an earlier reply has not begun to gather the list.
#[test]
fn clients_are_listed_while_another_takes_no_value() {
    const VALUE_BYTES: usize = 16_000;
    for workers in [1, 2] {
        let mut bench = patient::<Cache<Erew>>(workers);
        let mut client = bench.connect();
        let set = format!("set v 0 0 {VALUE_BYTES}\r\n{}\r\n", "v".repeat(VALUE_BYTES));
        assert_eq!(bench.ask(&mut client, set.as_bytes()), b"STORED\r\n");
        let mut idle = bench.connect_with_room(4 << 10);
        idle.send(b"GET v\r\nCLIENT LIST\r\n");
        bench.turns(100);
        let mut other = bench.connect();
        assert_eq!(bench.ask(&mut other, b"CLIENT LIST\r\n"), CLIENTS);
        let taken = take_all(&mut bench, &mut idle);
        assert!(taken.len() > VALUE_BYTES && taken.ends_with(CLIENTS));
    }
}

/// Into its connection's buffer, and to its place in the table. A client that has stopped in the
/// middle of a request is not waited for.
#[test]
fn a_server_that_stops_receives_the_rest_of_a_request() {
    for value_bytes in [1_000, LARGE_BYTES] {
        let mut bench = patient::<Cache<Crcw>>(1);
        let [mut sending, mut stalled] = [(); 2].map(|()| bench.connect());
        let value = "v".repeat(value_bytes);
        let set = format!("set key 0 0 {value_bytes}\r\n{value}\r\n");
        let pieces: Vec<_> = set.as_bytes().chunks(set.len() / 10 + 1).collect();
        for stream in [&mut sending, &mut stalled] {
            stream.send(pieces[0]);
        }
        bench.turns(10);
        bench.node.stop();
        for piece in &pieces[1..] {
            assert_eq!(received(&mut sending), b"");
            pass(&mut bench, 100);
            sending.send(piece);
            bench.turns(10);
        }
        assert_eq!(received(&mut sending), b"STORED\r\n");
        assert!(sending.ready().hung_up && stalled.ready().hung_up);
    }
}

/// The client has been told, and sends on. A connection that is closed meanwhile would be reset,
/// and replies with it.
#[test]
fn a_server_that_stops_receives_the_rest_of_a_value_that_it_has_refused() {
    let value = "v".repeat(2 << 20);
    let bytes = value.len();
    let text = format!("set key 0 0 {bytes}\r\n{value}\r\n");
    let resp = format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${bytes}\r\n{value}\r\n");
    let mut binary = vec![0x80, 1, 0, 3, 8, 0, 0, 0];
    binary.extend((bytes as u32 + 11).to_be_bytes());
    binary.extend([0; 20]);
    binary.extend(b"key");
    binary.extend(value.as_bytes());
    for set in [text.into_bytes(), resp.into_bytes(), binary] {
        let mut bench = patient::<Cache<Crcw>>(1);
        let mut client = bench.connect();
        let pieces: Vec<_> = set.chunks(set.len() / 5 + 1).collect();
        client.send(pieces[0]);
        bench.turns(100);
        bench.node.stop();
        for piece in &pieces[1..] {
            pass(&mut bench, 100);
            assert!(!client.ready().hung_up);
            client.send(piece);
            bench.turns(100);
        }
        assert!(client.ready().hung_up);
    }
}

/// A worker that stops sleeps only until the next look at such a client.
#[test]
fn a_server_that_stops_waits_for_no_client_that_has_stopped() {
    let mut bench = patient::<Cache<Crcw>>(1);
    let mut stalled = bench.connect();
    stalled.send(b"set key 0 0 10\r\nx");
    bench.turns(10);
    bench.node.stop();
    let began_ms = bench.clock.0.load(Ordering::Relaxed);
    loop {
        if let Rest::Asleep(time) = bench.node.workers[0].rest() {
            let ms = time.expect("it looks again").as_millis() as u64;
            bench.clock.0.fetch_add(ms, Ordering::Relaxed);
        }
        if !bench.node.workers[0].turn() {
            break;
        }
    }
    let ms = bench.clock.0.load(Ordering::Relaxed) - began_ms;
    assert!((100..500).contains(&ms), "{ms}");
    assert!(stalled.ready().hung_up);
}
