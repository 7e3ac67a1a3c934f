//! A client that asks for too much, reads too little or sends too slowly harms only itself.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use crate::support::{Client, Habits, PATIENCE, config, start, start_with};
use glimmer_base::limits::{BATCH_MAX, ITEM_BYTES_DEFAULT, LINE_BYTES_MAX, STALLED_MS_MAX};
use glimmer_node::{Node, NodeConfig, Tally};

const VALUE_BYTES: usize = 1_000_000;

fn total(node: &Node) -> Tally {
    let mut total = Tally::default();
    node.figures()
        .tallies()
        .into_iter()
        .for_each(|tally| total += tally);
    total
}

/// Waits until the figures say so. A test that waits for ever has failed; no time is asserted.
fn wait_until(node: &Node, what: &str, condition: impl Fn(&Tally) -> bool) {
    let polls = PATIENCE.as_millis() / 10;
    for _ in 0..polls {
        if condition(&total(node)) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: {:?}", total(node));
}

fn store(client: &mut Client, key: &str, value: &[u8]) {
    client.send(format!("set {key} 0 0 {}\r\n", value.len()));
    client.send(value);
    assert_eq!(client.ask("\r\n"), "STORED\r\n");
}

fn expect_value(client: &mut Client, key: &str, value: &[u8]) {
    assert_eq!(client.line(), format!("VALUE {key} 0 {}\r\n", value.len()));
    assert!(client.bytes(value.len()) == value, "the value of {key}");
    assert_eq!(client.line(), "\r\n");
}

#[test]
fn a_huge_multi_get_is_answered_key_by_key() {
    for workers in [1, 3] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        client.expect("set present 0 0 2\r\nhi\r\n", "STORED\r\n");
        let keys: usize = (LINE_BYTES_MAX - 100) / "present absent ".len();
        client.send(format!("get {}\r\n", "present absent ".repeat(keys)));
        for _ in 0..keys {
            assert_eq!(client.line(), "VALUE present 0 2\r\n");
            assert_eq!(client.line(), "hi\r\n");
        }
        assert_eq!(client.line(), "END\r\n");
        if workers == 1 {
            // With more, what bounds a turn may be the reorder buffer.
            wait_until(&node, "others had their turn meanwhile", |tally| {
                tally.conn_yields > 0
            });
        }
    }
}

/// The keys are taken as they arrive: the server never has more of the line than it parses as a
/// whole.
#[test]
fn a_multi_get_of_any_length_is_answered_in_bounded_memory() {
    const LINE_BYTES: usize = 16 * LINE_BYTES_MAX;
    for workers in [1, 3] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        client.expect("set present 0 0 2\r\nhi\r\n", "STORED\r\n");
        let keys = LINE_BYTES / "present absent ".len();
        let mut writer = client.stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            let line = format!("get {}\r\nmn\r\n", "present absent ".repeat(keys));
            writer.write_all(line.as_bytes()).unwrap();
        });
        let mut held_bytes = 0;
        for key in 0..keys {
            assert_eq!(client.line(), "VALUE present 0 2\r\n");
            assert_eq!(client.line(), "hi\r\n");
            if key % 1000 == 0 {
                held_bytes = held_bytes.max(total(&node).buffer_bytes);
            }
        }
        assert_eq!(
            (client.line(), client.line()),
            ("END\r\n".into(), "MN\r\n".into())
        );
        writing.join().unwrap();
        let most = (4 * LINE_BYTES_MAX) as u64;
        assert!(held_bytes <= most, "{held_bytes} bytes of {LINE_BYTES}");
    }
}

#[test]
fn large_values_arrive_whole_and_leave_no_large_buffer_behind() {
    for workers in [1, 2] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        for round in 0..5u8 {
            let value = vec![b'a' + round; VALUE_BYTES];
            store(&mut client, &format!("key{round}"), &value);
        }
        for round in 0..5u8 {
            client.send(format!("get key{round}\r\n"));
            expect_value(
                &mut client,
                &format!("key{round}"),
                &vec![b'a' + round; VALUE_BYTES],
            );
            assert_eq!(client.line(), "END\r\n");
        }
        wait_until(&node, "large buffers are freed", |tally| {
            tally.buffer_bytes < 600_000
        });
    }
}

/// What is waiting for a client that is slow to read stays bounded, and everything arrives.
#[test]
fn a_slow_reader_gets_everything() {
    for workers in [1, 3] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        let value = vec![b'x'; 100_000];
        for key in 0..8 {
            store(&mut client, &format!("k{key}"), &value);
        }
        let rounds = 60;
        let mut writer = client.stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            for _ in 0..rounds {
                writer
                    .write_all(b"get k0 k1 k2 k3 k4 k5 k6 k7\r\n")
                    .unwrap();
            }
        });
        let bytes_max = NodeConfig::buffer_bytes_min(&config().limits) * workers;
        for _ in 0..rounds {
            for key in 0..8 {
                expect_value(&mut client, &format!("k{key}"), &value);
                assert!(total(&node).buffer_bytes as usize <= bytes_max);
            }
            assert_eq!(client.line(), "END\r\n");
        }
        writing.join().unwrap();
    }
}

/// Clients that ask for megabytes and never read fill the budget; the ones that do read go on, and
/// the others are closed.
#[test]
fn clients_that_never_read_are_closed_when_memory_is_short() {
    for workers in [1, 2] {
        let node = start(workers, Habits::EREW);
        let mut good = Client::connect(&node);
        store(&mut good, "large", &vec![b'x'; VALUE_BYTES]);
        good.expect("set small 0 0 2\r\nhi\r\n", "STORED\r\n");
        let idlers: Vec<Client> = (0..24)
            .map(|_| {
                let mut client = Client::connect(&node);
                // More than sockets on loopback hold.
                client.send("get large\r\n".repeat(64));
                client
            })
            .collect();
        wait_until(&node, "memory becomes short and is got back", |tally| {
            tally.stalled_kicks > 0
        });
        for _ in 0..100 {
            good.expect("get small\r\n", "VALUE small 0 2\r\nhi\r\nEND\r\n");
        }
        let limit = NodeConfig::buffer_bytes_min(&config().limits) * workers;
        // One batch may overshoot, by replies that were guessed to be smaller.
        let overshoot = BATCH_MAX * ITEM_BYTES_DEFAULT;
        assert!((total(&node).buffer_bytes as usize) < limit + overshoot);
        drop(idlers);
    }
}

/// A client that asks several workers for megabytes and takes its time lacks nobody's memory but
/// its own: it is not closed, and replies that came home early never keep the one in front of them
/// from being made.
#[test]
fn a_slow_reader_that_is_alone_gets_everything() {
    let node = start(4, Habits::EREW);
    let mut client = Client::connect(&node);
    let value = vec![b'x'; 100_000];
    for key in 0..8 {
        store(&mut client, &format!("k{key}"), &value);
    }
    let rounds = 30;
    client.send("get k0 k1 k2 k3 k4 k5 k6 k7\r\n".repeat(rounds));
    thread::sleep(Duration::from_millis(STALLED_MS_MAX + 200));
    for _ in 0..rounds {
        for key in 0..8 {
            expect_value(&mut client, &format!("k{key}"), &value);
        }
        assert_eq!(client.line(), "END\r\n");
    }
    assert_eq!(total(&node).stalled_kicks, 0);
}

#[test]
fn a_length_of_two_gigabytes_costs_nothing() {
    let node = start(1, Habits::EREW);
    let mut client = Client::connect(&node);
    client.expect("set k 0 0 2\r\nhi\r\n", "STORED\r\n");
    client.send("set k 0 0 2147483000\r\n");
    assert_eq!(client.line(), "SERVER_ERROR object too large for cache\r\n");
    client.send(vec![b'x'; 3_000_000]);
    let mut other = Client::connect(&node);
    // The refused store took the old value with it, as memcached's does.
    other.expect("get k\r\n", "END\r\n");
    assert!(total(&node).buffer_bytes < 600_000);
}

/// More values announced than the budget has room for, and none is sent to its end: some are
/// refused with memcached's line, or their clients are closed because they hold memory and do not
/// go on. All of the refused ones' bytes are swallowed, and others are served.
#[test]
fn values_beyond_the_budget_are_refused_or_give_way() {
    let node = start(1, Habits::EREW);
    let value = vec![b'x'; VALUE_BYTES];
    let mut clients: Vec<Client> = (0..40)
        .map(|index| {
            let mut client = Client::connect(&node);
            client.send(format!("set key{index} 0 0 {VALUE_BYTES}\r\n"));
            // It may be closed meanwhile.
            let _ = client.stream.write_all(&value[..VALUE_BYTES - 1]);
            client
        })
        .collect();
    wait_until(&node, "the first have given way", |tally| {
        tally.values_refused + tally.stalled_kicks > 0
    });
    let (mut stored, mut refused, mut closed) = (0, 0, 0);
    // The last byte of each value comes only when all but the last of every value were sent.
    for client in &mut clients {
        match client.try_ask("x\r\n").as_str() {
            "STORED\r\n" => stored += 1,
            "SERVER_ERROR out of memory storing object\r\n" => refused += 1,
            "" => closed += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused + closed > 0, "{stored} stored");
    clients.retain_mut(|client| client.try_ask("mn\r\n") == "MN\r\n");
    assert!(
        clients.len() >= stored + refused,
        "the stream goes on behind a refused value"
    );
    store(&mut Client::connect(&node), "another", &value);
    wait_until(&node, "buffers are freed", |tally| {
        tally.buffer_bytes < 5_000_000
    });
}

#[test]
fn one_byte_at_a_time() {
    for workers in [1, 2] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        let requests = b"set abc 5 0 3\r\nxyz\r\nget abc def\r\nbogus\r\ndelete abc\r\nget abc\r\n";
        for byte in requests {
            client.send([*byte]);
        }
        client.expect(
            "",
            "STORED\r\nVALUE abc 5 3\r\nxyz\r\nEND\r\nERROR\r\nDELETED\r\nEND\r\n",
        );
    }
}

#[test]
fn connections_beyond_the_most_are_told_so() {
    let mut config = config();
    config.connections_max = 3;
    let node = start_with(config, 2, Habits::EREW);
    let mut inside: Vec<Client> = (0..3).map(|_| Client::connect(&node)).collect();
    for client in &mut inside {
        client.expect("mn\r\n", "MN\r\n");
    }
    let mut outside = Client::connect(&node);
    assert_eq!(outside.rest(), b"ERROR Too many open connections\r\n");
    assert_eq!(total(&node).rejected_connections, 1);
    inside.pop();
    wait_until(&node, "the place is free", |tally| {
        tally.curr_connections == 2
    });
    let mut next = Client::connect(&node);
    next.expect("mn\r\n", "MN\r\n");
}

#[test]
fn an_idle_connection_is_closed_if_asked_for() {
    let mut config = config();
    config.idle_timeout = Some(Duration::from_secs(1));
    let node = start_with(config, 1, Habits::EREW);
    let mut client = Client::connect(&node);
    client.expect("mn\r\n", "MN\r\n");
    assert_eq!(client.rest(), b"");
    let tally = total(&node);
    assert_eq!((tally.idle_kicks, tally.curr_connections), (1, 0));
}

#[test]
fn a_line_without_end_is_cut_off() {
    let node = start(1, Habits::EREW);
    let mut client = Client::connect(&node);
    let line = vec![b'k'; LINE_BYTES_MAX * 2];
    // The server closes while the line is still being sent.
    let _ = client.stream.write_all(&line);
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    wait_until(&node, "it is closed", |tally| tally.curr_connections == 0);
}
