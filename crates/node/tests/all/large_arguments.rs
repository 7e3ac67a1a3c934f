//! Commands of RESP with large arguments, which are received into a buffer: what follows a large
//! argument finds room, or the command is refused. The connection goes on.

use std::sync::atomic::Ordering;

use crate::bench::{Bench, Cache, command, received};
use crate::support::config;
use glimmer_base::limits::{BUFFER_BYTES, MEMORY_WAIT_MS_MAX, REPLY_BYTES_HIGH, SHORT_TICK_MS};
use glimmer_engine::Uniques;
use glimmer_store::access::Crcw;
use glimmer_transport::stream::{ByteStream, LocalStream};

/// Bytes that the connections of a worker may hold: the largest item, and a long reply.
const HELD_BYTES_MAX: usize = (2 << 20) + REPLY_BYTES_HIGH;
/// One buffer of this many bytes fits into that, and two do not.
const LARGE: usize = HELD_BYTES_MAX * 2 / 3;

/// A worker with as little memory for buffers as it may have.
fn bench() -> Bench {
    let mut config = config();
    config.buffer_bytes = 1;
    Bench::with_config::<Cache<Crcw>>((1, 1), Uniques::Kept, config)
}

/// Stores a value if the key has none. The value is not the last argument.
fn add(key: &str, value_bytes: usize) -> Vec<u8> {
    let script = "return redis.call('exists',KEYS[1])<1 and \
                  redis.call('setex',KEYS[1],ARGV[2],ARGV[1])";
    let value = vec![b'v'; value_bytes];
    command(&[
        b"EVAL",
        script.as_bytes(),
        b"1",
        key.as_bytes(),
        &value,
        b"60",
    ])
}

fn ask(bench: &mut Bench, client: &mut LocalStream, words: &[&[u8]]) -> String {
    let reply = bench.ask(client, &command(words));
    String::from_utf8(reply).unwrap()
}

fn replies(client: &mut LocalStream) -> String {
    String::from_utf8(received(client)).unwrap()
}

#[test]
fn an_argument_after_a_large_one_finds_room() {
    let mut bench = bench();
    let mut client = bench.connect();
    let large = vec![b'v'; LARGE];
    assert_eq!(bench.ask(&mut client, &add("key", LARGE)), b"+OK\r\n");
    let length = ask(&mut bench, &mut client, &[b"STRLEN", b"key"]);
    assert_eq!(length, format!(":{LARGE}\r\n"));
    // These are wrong, and the connection goes on.
    let wrong: [&[&[u8]]; 5] = [
        &[b"MSET", b"a", &large, b"x"],
        &[b"SET", &large, b"x"],
        &[b"SETEX", b"a", &large, b"x"],
        &[b"EVAL", &large, b"0"],
        &[b"SETRANGE", b"a", &large, b"x"],
    ];
    for words in wrong {
        let reply = ask(&mut bench, &mut client, words);
        assert!(reply.starts_with("-ERR"), "{reply:?}");
        assert_eq!(ask(&mut bench, &mut client, &[b"PING"]), "+PONG\r\n");
    }
    assert_eq!(bench.node.workers[0].held_bytes(), 0);
}

/// A command of very many arguments is received in steps that grow with it.
#[test]
fn many_small_arguments_after_a_large_one_find_room() {
    let mut bench = bench();
    let mut client = bench.connect();
    let (large, small) = (vec![b'v'; LARGE], [b'x'; 10]);
    let mut words: Vec<&[u8]> = vec![b"EVAL", &large, b"0"];
    words.resize(30_000, &small);
    client.send(&command(&words));
    let mut held = Vec::new();
    for _ in 0..1_000 {
        bench.turn(0);
        held.push(bench.node.workers[0].held_bytes());
    }
    let reply = replies(&mut client);
    assert!(reply.starts_with("-ERR"), "{reply:?}");
    assert!(held.iter().max() <= Some(&HELD_BYTES_MAX));
    held.dedup();
    assert!(held.len() < 20, "it grew too often: {held:?}");
}

/// Of two buffers that do not fit together, the second is filled after the first has gone.
#[test]
fn clients_without_room_for_both_wait() {
    let mut bench = bench();
    let mut clients = [bench.connect(), bench.connect()];
    for _ in 0..3 {
        for (nth, client) in clients.iter_mut().enumerate() {
            client.send(&add(&format!("key{nth}"), LARGE));
        }
        let mut told = [String::new(), String::new()];
        for _ in 0..MEMORY_WAIT_MS_MAX / SHORT_TICK_MS {
            bench.clock.0.fetch_add(SHORT_TICK_MS, Ordering::Relaxed);
            bench.turns(100);
            assert!(bench.node.workers[0].held_bytes() <= HELD_BYTES_MAX);
            for (client, told) in clients.iter_mut().zip(&mut told) {
                *told += &replies(client);
            }
        }
        assert_eq!(told, ["+OK\r\n", "+OK\r\n"]);
        for (nth, client) in clients.iter_mut().enumerate() {
            let gone = ask(
                &mut bench,
                client,
                &[b"DEL", format!("key{nth}").as_bytes()],
            );
            assert_eq!(gone, ":1\r\n");
        }
    }
    assert_eq!(bench.node.figures().tallies()[0].stalled_kicks, 0);
}

/// Another client, which goes on sending, has the room for the argument after the large one: the
/// command is refused after a while.
#[test]
fn a_command_without_room_for_its_next_argument_is_refused() {
    let mut bench = bench();
    let (mut first, mut second) = (bench.connect(), bench.connect());
    // Too little is left beside both for one more step.
    let held = REPLY_BYTES_HIGH - BUFFER_BYTES;
    let all = add("first", held);
    let (now, later) = all.split_at(held / 2);
    first.send(now);
    bench.turns(100);
    second.send(&add("second", 2 << 20));
    let mut later = later.chunks(1_000);
    for _ in 0..MEMORY_WAIT_MS_MAX / SHORT_TICK_MS + 2 {
        assert_eq!(replies(&mut second), "");
        bench.clock.0.fetch_add(SHORT_TICK_MS, Ordering::Relaxed);
        first.send(later.next().unwrap());
        bench.turns(100);
        assert!(bench.node.workers[0].held_bytes() <= HELD_BYTES_MAX);
    }
    let refused = replies(&mut second);
    assert!(
        refused.starts_with("-OOM") && refused.lines().count() == 1,
        "{refused:?}"
    );
    assert_eq!(ask(&mut bench, &mut second, &[b"PING"]), "+PONG\r\n");
    for piece in later {
        first.send(piece);
        bench.turns(10);
    }
    assert_eq!(replies(&mut first), "+OK\r\n");
    let tally = bench.node.figures().tallies()[0];
    assert_eq!((tally.values_refused, tally.stalled_kicks), (1, 0));
}
