//! Room for large values in tables that are full of tiny items: few of these leave in one turn.

use crate::bench::{Bench, Kind, command, received};
use glimmer_base::KeyHasher;
use glimmer_base::limits::{ROOM_ITEMS_PER_TURN, ROOM_RETAKEN_BYTES_MAX};
use glimmer_engine::{Engine, Spread, Uniques, build};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::FIFO;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_transport::stream::{ByteStream, LocalStream};

/// Bytes of a table.
const TABLE_BYTES: usize = 1 << 20;
/// Bytes of a tiny item.
const TINY: usize = 24;
/// Bytes of a large value. Three of them may arrive at a time.
const LARGE: usize = 70_000;
/// Turns in which room for one is made.
const TURNS: u64 = (LARGE / TINY) as u64 / ROOM_ITEMS_PER_TURN;

/// Cache mode with buckets for tiny items.
struct Tiny<A>(std::marker::PhantomData<A>);

impl<A: Access> Kind for Tiny<A> {
    fn engines(spread: &Spread, uniques: Uniques, hasher: KeyHasher) -> Vec<Box<dyn Engine>> {
        let table = PartitionConfig {
            log_bytes: TABLE_BYTES,
            main_buckets: TABLE_BYTES / TINY / 10,
            spare_buckets: TABLE_BYTES / TINY / 20,
            item_bytes_max: 128 << 10,
            pages: PagePolicy::Small,
            hasher,
            ..PartitionConfig::default()
        };
        build(spread, uniques, |_| Owner::<A>::new(&table, FIFO)).unwrap()
    }
}

/// A node whose tables are full of tiny items, and a client with a small one.
fn full<A: Access>(partitions: usize, workers: usize) -> (Bench, LocalStream) {
    let mut bench = Bench::with_partitions::<Tiny<A>>(partitions, workers, Uniques::Kept);
    let mut client = bench.connect();
    for first in (0..partitions * TABLE_BYTES / TINY * 4 / 3).step_by(1_000) {
        let set = |n| format!("set {n:07} 0 0 8 noreply\r\n12345678\r\n");
        let sets: String = (first..first + 1_000).map(set).collect();
        client.send(sets.as_bytes());
        bench.turns(10);
    }
    assert_eq!(received(&mut client), b"");
    let reply = bench.ask(&mut client, b"set small 0 0 1\r\nx\r\n");
    assert_eq!(reply, b"STORED\r\n");
    assert!(evictions(&bench) > 0);
    (bench, client)
}

fn evictions(bench: &Bench) -> u64 {
    let tables = bench.tables.iter();
    tables.map(|table| table.table().store.evictions).sum()
}

fn uploads(bench: &Bench) -> u64 {
    let tables = bench.tables.iter();
    tables.map(|table| table.table().uploads.count).sum()
}

fn set(key: &str, fill: u8) -> Vec<u8> {
    let head = format!("set {key} 0 0 {LARGE}\r\n");
    [head.as_bytes(), &[fill; LARGE], b"\r\n"].concat()
}

fn shown(key: &str, fill: u8) -> Vec<u8> {
    let head = format!("VALUE {key} 0 {LARGE}\r\n");
    [head.as_bytes(), &[fill; LARGE], b"\r\nEND\r\n"].concat()
}

/// A turn of each worker, in which few items leave. One that is alone answers the small request.
fn turn(bench: &mut Bench, small: &mut LocalStream) {
    turn_of_sharers(bench, small, 0);
}

/// The same, where each worker makes room again for up to `retaken` items that others have stored.
fn turn_of_sharers(bench: &mut Bench, small: &mut LocalStream, retaken: u64) {
    let most = ROOM_ITEMS_PER_TURN + retaken;
    let workers = bench.node.workers.len();
    for worker in 0..workers {
        let before = evictions(bench);
        match workers {
            1 => bench.turn_beside(small),
            _ => bench.turn(worker),
        }
        let left = evictions(bench) - before;
        assert!(left <= most, "{left} items");
    }
}

/// Several clients store large values at once, one of them without a reply.
fn few_items_leave_in_one_turn<A: Access>(partitions: usize, workers: usize) {
    let (mut bench, mut small) = full::<A>(partitions, workers);
    let mut clients: Vec<_> = (0..3).map(|_| bench.connect()).collect();
    let keys = ["a", "b", "c"];
    for (n, client) in clients.iter_mut().enumerate() {
        let quiet = if n == 1 { " noreply" } else { "" };
        let request = format!("set {} 0 0 {LARGE}{quiet}\r\n", keys[n]);
        client.send(request.as_bytes());
        client.send(&[&[n as u8; LARGE], &b"\r\nget small\r\n"[..]].concat());
    }
    let mut replies = vec![Vec::new(); clients.len()];
    let retaken = match workers > partitions {
        true => ROOM_RETAKEN_BYTES_MAX / TINY,
        false => 0,
    };
    let mut turns = 0;
    while replies.iter().any(|reply| !reply.ends_with(b"END\r\n")) {
        turn_of_sharers(&mut bench, &mut small, retaken as u64);
        for (reply, client) in replies.iter_mut().zip(&mut clients) {
            reply.extend(received(client));
        }
        turns += 1;
        assert!(turns < 100 * TURNS, "{turns} turns");
    }
    assert!(turns >= TURNS, "{turns} turns");
    let found = "VALUE small 0 1\r\nx\r\nEND\r\n";
    for (n, reply) in replies.iter().enumerate() {
        let stored = if n == 1 { "" } else { "STORED\r\n" };
        assert_eq!(String::from_utf8_lossy(reply), format!("{stored}{found}"));
        let reply = bench.ask(&mut clients[n], format!("get {}\r\n", keys[n]).as_bytes());
        assert!(reply == shown(keys[n], n as u8), "{n}");
    }
}

#[test]
fn few_items_leave_in_one_turn_of_a_table_of_its_own() {
    few_items_leave_in_one_turn::<Erew>(1, 1);
    few_items_leave_in_one_turn::<Erew>(2, 2);
}

#[test]
fn few_items_leave_in_one_turn_of_a_shared_table() {
    few_items_leave_in_one_turn::<Crcw>(1, 2);
    few_items_leave_in_one_turn::<Crcw>(2, 2);
}

/// Clients whose sockets are empty get their places all the same: one that comes while there is
/// room to be made, and those that wait until others have stored their values.
#[test]
fn clients_that_have_announced_a_value_and_send_no_more_get_their_places() {
    const BEGUN: usize = 1_000;
    let (mut bench, mut small) = full::<Erew>(1, 1);
    let values: Vec<_> = (0..5).map(|n| set(&format!("{n}"), n)).collect();
    let mut clients: Vec<_> = values.iter().map(|_| bench.connect()).collect();
    for (client, value) in clients.iter_mut().zip(&values) {
        client.send(&value[..BEGUN]);
        for _ in 0..10 * TURNS {
            turn(&mut bench, &mut small);
        }
    }
    assert_eq!(uploads(&bench), 3, "and two wait");
    for n in 0..3 {
        clients[n].send(&values[n][BEGUN..]);
    }
    for _ in 0..100 * TURNS {
        turn(&mut bench, &mut small);
    }
    assert_eq!(uploads(&bench), 2, "those that waited");
    for n in 3..5 {
        clients[n].send(&values[n][BEGUN..]);
    }
    bench.turns(100);
    for client in &mut clients {
        assert_eq!(received(client), b"STORED\r\n");
    }
}

#[test]
fn a_client_that_leaves_while_room_is_made_leaves_nothing_behind() {
    let (mut bench, mut small) = full::<Erew>(1, 1);
    let (mut leaver, mut next) = (bench.connect(), bench.connect());
    leaver.send(&set("a", 1));
    next.send(&set("b", 2));
    for _ in 0..TURNS / 2 {
        turn(&mut bench, &mut small);
    }
    assert_eq!((uploads(&bench), received(&mut leaver)), (0, Vec::new()));
    drop(leaver);
    let mut turns = 0;
    while received(&mut next).is_empty() {
        turn(&mut bench, &mut small);
        turns += 1;
        assert!(turns < 10 * TURNS, "{turns} turns");
    }
    assert!(bench.ask(&mut next, b"get b\r\n") == shown("b", 2));
    drop(next);
    bench.turns(100);
    assert_eq!(
        (uploads(&bench), bench.node.workers[0].held_bytes()),
        (0, 0)
    );
}

/// A transaction that is kept in the table takes the place of many items, too.
#[test]
fn few_items_leave_in_one_turn_for_a_transaction() {
    let (mut bench, mut small) = full::<Erew>(1, 1);
    let mut client = bench.connect();
    let value = vec![7; 10_000];
    let mut request = command(&[b"MULTI"]);
    for _ in 0..4 {
        request.extend(command(&[b"SET", b"key", &value]));
    }
    request.extend(command(&[b"EXEC"]));
    client.send(&request);
    let (mut reply, mut turns) = (Vec::new(), 0);
    let expected = [
        "+OK\r\n",
        &"+QUEUED\r\n".repeat(4),
        "*4\r\n",
        &"+OK\r\n".repeat(4),
    ]
    .concat();
    while reply.len() < expected.len() {
        turn(&mut bench, &mut small);
        reply.extend(received(&mut client));
        turns += 1;
        assert!(turns < 100 * TURNS, "{turns} turns");
    }
    assert_eq!(String::from_utf8_lossy(&reply), expected);
    let least = 4 * value.len() / TINY / ROOM_ITEMS_PER_TURN as usize;
    assert!(turns > least as u64, "{turns} turns");
}
