//! Transactions that are too long for a receive buffer: their commands lie in the table until they
//! are executed.

use std::sync::atomic::Ordering;

use crate::bench::{Bench, Cache, Kind, Store, TABLE_BYTES, command, received};
use glimmer_base::limits::{
    MEMORY_WAIT_MS_MAX, QUEUES_PART, SHORT_TICK_MS, UPLOAD_IDLE_MS_MAX, UPLOADS_PART,
};
use glimmer_engine::Uniques;
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_transport::Received;
use glimmer_transport::stream::{ByteStream, LocalStream};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Bytes of commands that tables keep, at most.
const KEPT_MAX: usize = TABLE_BYTES / UPLOADS_PART / QUEUES_PART as usize;
/// A table of which values under way take less than two of the largest items.
const SMALL_TABLE_BYTES: usize = 6 << 20;

fn random_command(rng: &mut SmallRng) -> Vec<u8> {
    let key = |rng: &mut SmallRng| format!("key{}", rng.random_range(0..12)).into_bytes();
    let value = |rng: &mut SmallRng| {
        let bytes = match rng.random_range(0..20) {
            0 => rng.random_range(0..200_000),
            1..5 => rng.random_range(0..20_000),
            _ => rng.random_range(0..100),
        };
        vec![rng.random_range(b'a'..=b'z'); bytes]
    };
    let (first, second) = (key(rng), key(rng));
    match rng.random_range(0..10) {
        0..4 => command(&[b"SET", &first, &value(rng)]),
        4 => command(&[b"APPEND", &first, value(rng).get(..50).unwrap_or(b"x")]),
        5 => command(&[b"MSET", &first, &value(rng), &second, &value(rng)]),
        6 => command(&[b"MGET", &first, &second]),
        7 => command(&[b"DEL", &first, &second]),
        8 => {
            let blank = " ".repeat([1, 40_000][usize::from(rng.random_bool(0.1))]);
            [b"GET", blank.as_bytes(), &first, b"\r\n"].concat()
        }
        _ => command(&[b"STRLEN", &first]),
    }
}

/// Sends bytes in random pieces, and returns everything that is answered.
fn say(bench: &mut Bench, client: &mut LocalStream, bytes: &[u8], rng: &mut SmallRng) -> Vec<u8> {
    let (mut reply, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let most = [10, 1_000, 50_000, 1 << 20][rng.random_range(0..4)];
        let (now, later) = rest.split_at(rest.len().min(rng.random_range(1..=most)));
        client.send(now);
        bench.turns(3);
        reply.extend(received(client));
        rest = later;
    }
    bench.turns(500);
    reply.extend(received(client));
    reply
}

/// Bytes of what is being received or kept, by all tables.
fn kept(bench: &Bench) -> u64 {
    let tables = bench.tables.iter();
    tables.map(|table| table.table().uploads.bytes).sum()
}

/// The replies to a transaction are those to its commands without one, and requests that follow it
/// are answered after it.
fn commands_are_executed_in_order<K: Kind>(workers: usize) {
    let seed = glimmer_seeds::seed();
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut plain, mut whole) = (
        Bench::with_partitions::<K>(workers, workers, Uniques::Kept),
        Bench::with_partitions::<K>(workers, workers, Uniques::Kept),
    );
    let (mut one, mut other) = (plain.connect(), whole.connect());
    for _ in 0..10 {
        let mut commands = Vec::new();
        let bytes_max = [1_000, 30_000, 300_000][rng.random_range(0..3)];
        while commands.iter().map(Vec::len).sum::<usize>() < bytes_max {
            commands.push(random_command(&mut rng));
        }
        let count = commands.len();
        let commands = commands.concat();
        let expected = [
            b"+OK\r\n",
            "+QUEUED\r\n".repeat(count).as_bytes(),
            format!("*{count}\r\n").as_bytes(),
            &say(&mut plain, &mut one, &commands, &mut rng),
            b"$2\r\nhi\r\n",
        ]
        .concat();
        let rest = &b"*1\r\n$4\r\nEXEC\r\nECHO hi\r\n"[..];
        let said = [b"MULTI\r\n", &commands[..], rest].concat();
        let reply = say(&mut whole, &mut other, &said, &mut rng);
        assert!(reply == expected, "{count} commands");
        assert_eq!(kept(&whole), 0);
    }
}

#[test]
fn commands_are_executed_in_order_by_one_worker() {
    commands_are_executed_in_order::<Cache<Crcw>>(1);
    commands_are_executed_in_order::<Store<Erew>>(1);
}

#[test]
fn commands_are_executed_in_order_by_several_workers() {
    commands_are_executed_in_order::<Cache<Crcw>>(3);
    commands_are_executed_in_order::<Cache<Crew>>(3);
    commands_are_executed_in_order::<Store<Erew>>(3);
}

/// A transaction that stores values of these bytes, without its `EXEC`.
fn transaction(values: usize, bytes: usize) -> Vec<u8> {
    let mut all = b"MULTI\r\n".to_vec();
    for nth in 0..values {
        let key = format!("key{nth}");
        all.extend(command(&[b"SET", key.as_bytes(), &vec![b'v'; bytes]]));
    }
    all
}

/// Turns of all workers, while the clock moves on by this many milliseconds.
fn pass(bench: &mut Bench, ms: u64) {
    for _ in 0..ms.div_ceil(SHORT_TICK_MS) {
        bench.clock.0.fetch_add(SHORT_TICK_MS, Ordering::Relaxed);
        bench.turns(20);
    }
}

/// Transactions that have no room together wait for one another, but not for long: those are given
/// up for which there is no room, and the others are executed.
#[test]
fn transactions_without_room_give_way_to_others() {
    let mut bench = Bench::new::<Cache<Crcw>>(1, Uniques::Kept);
    let mut clients: Vec<_> = (0..8).map(|_| bench.connect()).collect();
    let (values, bytes) = (7, KEPT_MAX / 4 / 7);
    let all = transaction(values, bytes);
    let mut replies = vec![Vec::new(); clients.len()];
    let pieces = all.chunks(all.len() / 20);
    for piece in pieces {
        for client in &mut clients {
            client.send(piece);
        }
        bench.turns(3);
    }
    pass(&mut bench, 10 * MEMORY_WAIT_MS_MAX);
    assert!(kept(&bench) as usize <= KEPT_MAX);
    for client in &mut clients {
        client.send(b"EXEC\r\n");
    }
    pass(&mut bench, MEMORY_WAIT_MS_MAX);
    let mut executed = 0;
    for (client, reply) in clients.iter_mut().zip(&mut replies) {
        reply.extend(received(client));
        let reply = String::from_utf8(std::mem::take(reply)).unwrap();
        let queued = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(values));
        let done = format!("{queued}*{values}\r\n{}", "+OK\r\n".repeat(values));
        executed += usize::from(reply == done);
        let is_given_up = reply.matches("-OOM").count() == 1
            && reply.lines().last().unwrap().starts_with("-EXECABORT")
            && reply.lines().count() == values + 2;
        assert!(reply == done || is_given_up, "{reply}");
    }
    assert!((3..=4).contains(&executed), "{executed} were executed");
    assert_eq!(kept(&bench), 0);
}

/// There is no place for commands that were answered, because of a large one that follows them. The
/// large one is refused, and every later reply is that to its own request.
fn a_refused_transaction_has_one_reply_for_each_command<K: Kind>(workers: usize) {
    let mut bench = Bench::new::<K>(workers, Uniques::Kept);
    let (mut slow, mut client) = (bench.connect(), bench.connect());
    slow.send(format!("set slow 0 0 {}\r\n", KEPT_MAX - 1_000).as_bytes());
    slow.send(&vec![b'x'; 60_000]);
    bench.turns(10);
    let under_way = kept(&bench);
    assert!(under_way > 0);
    let value = vec![b'v'; 300_000];
    for input in [&b"GET a\r\n"[..], &command(&[b"GET", b"a"])] {
        let large = command(&[b"SET", b"b", &value]);
        let end = b"EXEC\r\nECHO end\r\n";
        client.send(&[b"MULTI\r\n", input, &large, input, end].concat());
        pass(&mut bench, 2 * MEMORY_WAIT_MS_MAX);
        let reply = String::from_utf8(received(&mut client)).unwrap();
        let reply: Vec<_> = reply
            .lines()
            .map(|line| line.get(..4).unwrap_or(line))
            .collect();
        let expected = ["+OK", "+QUE", "-OOM", "+QUE", "-EXE", "$3", "end"];
        assert_eq!(reply, expected);
        assert_eq!(kept(&bench), under_way);
    }
}

#[test]
fn a_refused_transaction_has_one_reply_for_each_command_by_one_worker() {
    a_refused_transaction_has_one_reply_for_each_command::<Cache<Crcw>>(1);
    a_refused_transaction_has_one_reply_for_each_command::<Store<Erew>>(1);
}

#[test]
fn a_refused_transaction_has_one_reply_for_each_command_by_several_workers() {
    a_refused_transaction_has_one_reply_for_each_command::<Cache<Crcw>>(3);
    a_refused_transaction_has_one_reply_for_each_command::<Store<Crcw>>(3);
}

/// What a transaction keeps may leave no place for a value that it stores, which then does not wait
/// for ever.
fn no_value_waits_for_its_own_transaction<K: Kind>(workers: usize) {
    const PARTITIONS: usize = 4;
    let mut bench = Bench::with_partitions::<K>(PARTITIONS, workers, Uniques::Kept);
    let mut client = bench.connect();
    // Of values under way a table takes more than one of these, but not two.
    let value = vec![b'v'; SMALL_TABLE_BYTES / UPLOADS_PART * 3 / 4];
    let mut stored = 0;
    // What is kept has its places now in one partition and now in another.
    for nth in 0..10 {
        let key = format!("key{}", nth % 2);
        client.send(&command(&[b"MULTI"]));
        client.send(&command(&[b"SET", key.as_bytes(), &value]));
        client.send(&command(&[b"EXEC"]));
        bench.turns(500);
        pass(&mut bench, 2 * MEMORY_WAIT_MS_MAX + SHORT_TICK_MS);
        let reply = String::from_utf8(received(&mut client)).unwrap();
        let is_stored = reply == "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n";
        assert!(is_stored || reply.contains("\r\n-EXECABORT"), "{reply}");
        stored += u32::from(is_stored);
        assert_eq!(kept(&bench), 0);
    }
    assert!(stored > 5, "only {stored} were stored");
}

#[test]
fn no_value_waits_for_its_own_transaction_at_one_worker() {
    no_value_waits_for_its_own_transaction::<Cache<Crcw, SMALL_TABLE_BYTES>>(1);
    no_value_waits_for_its_own_transaction::<Store<Erew, SMALL_TABLE_BYTES>>(1);
}

#[test]
fn no_value_waits_for_its_own_transaction_at_several_workers() {
    no_value_waits_for_its_own_transaction::<Cache<Crcw, SMALL_TABLE_BYTES>>(2);
    no_value_waits_for_its_own_transaction::<Cache<Crew, SMALL_TABLE_BYTES>>(2);
    no_value_waits_for_its_own_transaction::<Store<Erew, SMALL_TABLE_BYTES>>(2);
}

/// A client that stops in the midst of a transaction keeps its places for as long as nobody else
/// needs them.
#[test]
fn a_client_that_stops_loses_its_places_to_others() {
    let mut bench = Bench::new::<Cache<Crcw>>(1, Uniques::Kept);
    let (mut idle, mut other) = (bench.connect(), bench.connect());
    idle.send(&transaction(7, KEPT_MAX / 8));
    pass(&mut bench, 3 * UPLOAD_IDLE_MS_MAX);
    assert_eq!(
        received(&mut idle).len(),
        "+OK\r\n".len() + 7 * "+QUEUED\r\n".len()
    );
    assert!(kept(&bench) as usize > KEPT_MAX / 2);
    let all = [&transaction(3, KEPT_MAX / 8)[..], b"EXEC\r\n"].concat();
    other.send(&all);
    pass(&mut bench, MEMORY_WAIT_MS_MAX / 2);
    let reply = received(&mut other);
    assert!(
        reply.ends_with(b"*3\r\n+OK\r\n+OK\r\n+OK\r\n"),
        "{}",
        reply.escape_ascii()
    );
    assert_eq!(idle.receive(&mut Vec::with_capacity(10)), Received::Ended);
    assert_eq!(kept(&bench), 0);
}

/// What is kept of a transaction is there for others once it is given up, for whatever reason.
#[test]
fn places_are_given_back() {
    for end in ["DISCARD\r\n", "NOSUCH\r\n", "QUIT\r\n", "*1\r\n$-5\r\n", ""] {
        let mut bench = Bench::new::<Cache<Crcw>>(1, Uniques::Kept);
        let mut client = bench.connect();
        client.send(&transaction(3, KEPT_MAX / 8));
        bench.turns(100);
        assert!(kept(&bench) > 0);
        client.send(end.as_bytes());
        if end.is_empty() {
            drop(client);
        }
        bench.turns(100);
        assert_eq!(kept(&bench), 0, "{end:?}");
    }
}
