//! Large values that arrive over a long time, many at once: each is stored as it was sent, whoever
//! pauses, resets or sends nonsense beside it, and nothing is left of those that were given up.

use std::sync::atomic::Ordering;

use glimmer_base::limits::UPLOAD_IDLE_MS_MAX;
use glimmer_server::Config;
use glimmer_server::config::{AccessMode, Mode, TableKind};
use glimmer_transport::stream::{ByteStream, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::Rig;

mod support;

/// Every access mode, with one worker and with several.
const MODES: [(AccessMode, usize); 5] = [
    (AccessMode::Erew, 1),
    (AccessMode::Erew, 3),
    (AccessMode::Crew, 2),
    (AccessMode::Crcw, 1),
    (AccessMode::Crcw, 3),
];

/// Of those the ones in which the most can go wrong.
const FEW_MODES: [(AccessMode, usize); 2] = [(AccessMode::Erew, 3), (AccessMode::Crcw, 3)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Cache,
    Store,
    Memc3,
}

fn rig(table: Table, (access, workers): (AccessMode, usize), mebibytes: usize) -> Rig {
    Rig::with(Config {
        memory_bytes: mebibytes << 20,
        workers,
        access,
        mode: match table {
            Table::Store => Mode::Store,
            _ => Mode::Cache,
        },
        table: match table {
            Table::Memc3 => TableKind::Memc3,
            _ => TableKind::Mica,
        },
        ..Config::default()
    })
}

/// The value of the key with this number.
fn value(number: usize, bytes: usize) -> Vec<u8> {
    let line: Vec<u8> = (0..251).map(|at| (number * 7 + at) as u8).collect();
    let mut value = line.repeat(bytes.div_ceil(line.len()));
    value.truncate(bytes);
    value
}

/// A client, and what it has yet to send.
struct Client {
    stream: LocalStream,
    said: Vec<u8>,
    sent: usize,
    replies: Vec<u8>,
    has_ended: bool,
}

impl Client {
    fn new(rig: &Rig, said: Vec<u8>) -> Client {
        let faults = StreamFaults {
            buffer_bytes: 50_000,
            ..StreamFaults::default()
        };
        Client {
            stream: rig.connect_with(faults, 1),
            said,
            sent: 0,
            replies: Vec::new(),
            has_ended: false,
        }
    }

    /// Sends some bytes, and receives what there is.
    fn go_on(&mut self, bytes_max: usize) {
        let rest = &self.said[self.sent..];
        let bytes = rest.len().min(bytes_max);
        match self.stream.send(&rest[..bytes]) {
            Sent::All => self.sent += bytes,
            Sent::Part(bytes) => self.sent += bytes,
            Sent::Failed => self.has_ended = true,
        }
        self.replies.reserve(4_096);
        if self.stream.receive(&mut self.replies) == Received::Ended {
            self.has_ended = true;
        }
    }
}

fn turn(rig: &mut Rig, ms: u64) {
    rig.clock.0.fetch_add(ms, Ordering::Relaxed);
    for worker in &mut rig.server.node.workers {
        worker.turn();
    }
}

fn set(key: usize, value: &[u8]) -> Vec<u8> {
    let head = format!("set k{key} 0 0 {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn get(rig: &mut Rig, key: usize, bytes: usize) -> Option<Vec<u8>> {
    let mut stream = rig.connect(1 << 24);
    let reply = rig.say(&mut stream, format!("get k{key}\r\n").as_bytes());
    let head = format!("VALUE k{key} 0 {bytes}\r\n");
    match reply == b"END\r\n" {
        true => None,
        false => Some(reply[head.len()..reply.len() - "\r\nEND\r\n".len()].to_vec()),
    }
}

fn uploads(rig: &Rig) -> u64 {
    let tables = rig.server.tables.iter();
    tables.map(|tables| tables.table().uploads.count).sum()
}

/// Runs the clients, each of which sends some bytes now and then, until all were answered by this
/// many bytes, or have ended.
fn run(rig: &mut Rig, clients: &mut [Client], reply_bytes: usize, rng: &mut SmallRng) {
    for _ in 0..100_000 {
        let mut is_done = true;
        for client in clients.iter_mut() {
            is_done &= client.has_ended || client.replies.len() >= reply_bytes;
            if rng.random_ratio(1, 3) {
                client.go_on(rng.random_range(1..40_000));
            }
        }
        turn(rig, 1);
        if is_done {
            return;
        }
    }
    panic!("some were never answered");
}

#[test]
fn all_that_arrive_together_are_stored() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    for table in [Table::Cache, Table::Store, Table::Memc3] {
        for mode in MODES {
            let mut rig = rig(table, mode, 64);
            let sizes: Vec<usize> = (0..16).map(|_| rng.random_range(16_000..900_000)).collect();
            let said =
                |key: usize| [set(key, &value(key, sizes[key])), b"get x\r\n".into()].concat();
            let mut clients: Vec<_> = (0..sizes.len())
                .map(|key| Client::new(&rig, said(key)))
                .collect();
            run(&mut rig, &mut clients, "STORED\r\nEND\r\n".len(), &mut rng);
            for (key, client) in clients.iter().enumerate() {
                let replies = String::from_utf8_lossy(&client.replies);
                assert_eq!(
                    replies, "STORED\r\nEND\r\n",
                    "{table:?}, {mode:?}, {}",
                    sizes[key]
                );
                let found = get(&mut rig, key, sizes[key]);
                assert!(found == Some(value(key, sizes[key])), "{table:?}, {mode:?}");
            }
            assert_eq!(uploads(&rig), 0);
        }
    }
}

/// An `MSET` that is far longer than the memory for buffers, and one beside it.
#[test]
fn the_values_of_one_command_are_received_one_after_the_other() {
    let mut rng = SmallRng::seed_from_u64(3);
    for (table, mode) in [Table::Cache, Table::Store, Table::Memc3]
        .into_iter()
        .flat_map(|table| FEW_MODES.map(|mode| (table, mode)))
    {
        let mut rig = rig(table, mode, 64);
        let bytes = |key: usize| [200_000, 10, 300_000, 20_000][key % 4];
        let mset = |from: usize| {
            let mut said = b"*17\r\n$4\r\nMSET\r\n".to_vec();
            for key in from..from + 8 {
                let name = format!("k{key}");
                let head = format!("${}\r\n{name}\r\n${}\r\n", name.len(), bytes(key));
                said.extend([head.as_bytes(), &value(key, bytes(key)), b"\r\n"].concat());
            }
            said.extend(b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n");
            said
        };
        let mut clients = [0, 8].map(|from| Client::new(&rig, mset(from)));
        let mut most = 0;
        for _ in 0..400 {
            let step = rng.random_range(1..40_000);
            clients.iter_mut().for_each(|client| client.go_on(step));
            turn(&mut rig, 1);
            most = most.max(uploads(&rig));
        }
        for client in &clients {
            let replies = String::from_utf8_lossy(&client.replies);
            assert_eq!(replies, "+OK\r\n$-1\r\n", "{table:?} {mode:?}");
        }
        for key in 0..16 {
            let found = get(&mut rig, key, bytes(key));
            assert!(found == Some(value(key, bytes(key))), "{table:?} {mode:?}");
        }
        assert_eq!((most, uploads(&rig)), (2, 0), "{table:?} {mode:?}");
    }
}

#[test]
fn later_senders_wait_and_are_not_refused() {
    let mut rng = SmallRng::seed_from_u64(1);
    let tables = [Table::Cache, Table::Memc3];
    for (table, mode) in tables
        .into_iter()
        .flat_map(|table| FEW_MODES.map(|mode| (table, mode)))
    {
        // Far more than values that arrive may take.
        let mut rig = rig(table, mode, 64);
        let bytes = 900_000;
        let mut clients: Vec<_> = (0..40)
            .map(|key| Client::new(&rig, set(key, &value(key, bytes))))
            .collect();
        run(&mut rig, &mut clients, "STORED\r\n".len(), &mut rng);
        for client in &clients {
            assert_eq!(client.replies, b"STORED\r\n", "{table:?} {mode:?}");
        }
        assert_eq!(uploads(&rig), 0);
    }
}

#[test]
fn who_stops_keeps_a_place_until_others_wait_for_long() {
    for mode in FEW_MODES {
        let mut rig = rig(Table::Cache, mode, 64);
        let bytes = 900_000;
        let begun = |key: usize| {
            let mut said = set(key, &value(key, bytes));
            said.truncate(100_000);
            said
        };
        let mut idle: Vec<_> = (0..60).map(|key| Client::new(&rig, begun(key))).collect();
        for _ in 0..500 {
            idle.iter_mut().for_each(|client| client.go_on(20_000));
            turn(&mut rig, 1);
        }
        assert!(uploads(&rig) > 1, "{mode:?}");
        assert!(idle.iter().all(|client| !client.has_ended), "{mode:?}");
        // Small requests are served beside them.
        let mut small = rig.connect(1 << 20);
        assert_eq!(rig.say(&mut small, b"set s 0 0 1\r\nx\r\n"), b"STORED\r\n");
        let mut late = [Client::new(&rig, set(100, &value(100, bytes)))];
        let since = rig.clock.0.load(Ordering::Relaxed);
        run(
            &mut rig,
            &mut late,
            "STORED\r\n".len(),
            &mut SmallRng::seed_from_u64(2),
        );
        let waited_ms = rig.clock.0.load(Ordering::Relaxed) - since;
        assert_eq!(late[0].replies, b"STORED\r\n", "{mode:?}");
        assert!(
            waited_ms + 600 >= UPLOAD_IDLE_MS_MAX,
            "{mode:?}: {waited_ms}"
        );
        assert_eq!(
            rig.say(&mut small, b"get s\r\n"),
            b"VALUE s 0 1\r\nx\r\nEND\r\n"
        );
        drop(idle);
        for _ in 0..200 {
            turn(&mut rig, 20);
        }
        assert_eq!(uploads(&rig), 0, "{mode:?}");
    }
}

/// A client asks for a large value and goes on with a large store, for which there is no place yet.
/// It is sent the value meanwhile, slice by slice beside small requests.
#[test]
fn who_waits_for_a_place_is_sent_its_replies() {
    for mode in FEW_MODES {
        let mut rig = rig(Table::Cache, mode, 64);
        let bytes = 900_000;
        let begun = |key: usize| set(key, &value(key, bytes))[..100_000].to_vec();
        let mut client = rig.connect(1 << 24);
        assert_eq!(
            rig.say(&mut client, &set(0, &value(0, bytes))),
            b"STORED\r\n"
        );
        let mut idle: Vec<_> = (1..60).map(|key| Client::new(&rig, begun(key))).collect();
        for _ in 0..300 {
            idle.iter_mut().for_each(|client| client.go_on(20_000));
            turn(&mut rig, 1);
        }
        let places = uploads(&rig);
        assert!(places > 1 && places < 59, "{mode:?}: some wait, {places}");
        // It is one of those that are sent much from now on.
        let whole = rig.say(&mut client, b"get k0\r\n");
        assert!(whole.len() > bytes, "{mode:?}");
        let mut small = rig.connect(1 << 20);
        client.send(&[b"get k0\r\n", &begun(100)[..20_000]].concat());
        let mut replies = Vec::new();
        for _ in 0..1_000 {
            small.send(b"get x\r\n");
            turn(&mut rig, 1);
            small.receive(&mut Vec::with_capacity(1_000));
            replies.reserve(1 << 20);
            client.receive(&mut replies);
        }
        assert!(replies == whole, "{mode:?}: {} bytes", replies.len());
        assert_eq!(uploads(&rig), places, "{mode:?}: none was given up");
    }
}

/// As memcached answers a value of another length than was announced.
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n";

/// Stores whose values are complete and are not stored, or not as they are.
#[test]
fn each_kind_of_store_is_answered_as_if_its_value_had_come_at_once() {
    let mut long = value(7, 30_000);
    *long.last_mut().unwrap() = b'z';
    let doubled = ":60000\r\n$1\r\nz\r\n".to_string();
    let text = |command: &str, end: &[u8]| {
        let head = format!("{command} {}\r\n", long.len());
        [head.as_bytes(), &long[..], end].concat()
    };
    let resp = |words: &[&str], then: &[u8]| {
        let mut said = format!("*{}\r\n", words.len() + 1).into_bytes();
        for word in words.iter().map(|word| word.as_bytes()).chain([&long[..]]) {
            said.extend([format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
        }
        said.extend(then);
        said
    };
    let steps: Vec<(Vec<u8>, &str)> = vec![
        (text("add k1 0 0", b"\r\n"), "STORED\r\n"),
        (text("add k1 0 0", b"\r\n"), "NOT_STORED\r\n"),
        (text("replace k2 0 0", b"\r\n"), "NOT_STORED\r\n"),
        (text("replace k1 5 0", b"\r\n"), "STORED\r\n"),
        (text("append k1 0 0", b"\r\n"), "STORED\r\n"),
        (b"mg k1 s f\r\n".into(), "HD s60000 f5\r\n"),
        (text("ms k3", b"\r\n"), "HD\r\n"),
        (
            b"ms k3 2 MA\r\nxx\r\nmg k3 s\r\n".into(),
            "HD\r\nHD s30002\r\n",
        ),
        (text("set k4 0 -1", b"\r\n"), "STORED\r\n"),
        (b"get k4 k2\r\n".into(), "END\r\n"),
        (text("set k5 0 0", b"xx\r\n"), BAD_CHUNK),
        (
            text("set k6 0 0", b"\r\nset k6 0 0 1\r\ny\r\n"),
            "STORED\r\nSTORED\r\n",
        ),
        (b"get k6\r\n".into(), "VALUE k6 0 1\r\ny\r\nEND\r\n"),
        (text("set k7 0 0", b"\r\n"), "STORED\r\n"),
        (b"flush_all\r\nget k7\r\n".into(), "OK\r\nEND\r\n"),
        (resp(&["SETNX", "k8"], b""), ":1\r\n"),
        (resp(&["SETNX", "k8"], b""), ":0\r\n"),
        (
            resp(&["APPEND", "k8"], b"STRLEN k8\r\n"),
            ":60000\r\n:60000\r\n",
        ),
        (resp(&["APPEND", "k9"], b""), ":30000\r\n"),
        (
            resp(&["APPEND", "k9"], b"GETRANGE k9 59999 -1\r\n"),
            &doubled,
        ),
        (
            resp(&["GETSET", "k10"], b"STRLEN k10\r\n"),
            "$-1\r\n:30000\r\n",
        ),
        (
            resp(&["SETEX", "k10", "100"], b"TTL k10\r\n"),
            "+OK\r\n:100\r\n",
        ),
        (
            resp(&["PSETEX", "k10", "9000"], b"TTL k10\r\n"),
            "+OK\r\n:9\r\n",
        ),
        (resp(&["SET", "k10"], b"TTL k10\r\n"), "+OK\r\n:-1\r\n"),
    ];
    for table in [Table::Cache, Table::Store, Table::Memc3] {
        for mode in MODES {
            for chunk in [7_000, 1 << 20] {
                let mut rig = rig(table, mode, 64);
                for (said, expected) in &steps {
                    let mut client = [Client::new(&rig, said.clone())];
                    for _ in 0..40 {
                        client[0].go_on(chunk);
                        turn(&mut rig, 1);
                    }
                    let replies = String::from_utf8_lossy(&client[0].replies);
                    let said = String::from_utf8_lossy(&said[..said.len().min(12)]);
                    assert_eq!(&replies, expected, "{said} {table:?} {mode:?} {chunk}");
                }
                assert_eq!(uploads(&rig), 0, "{table:?} {mode:?}");
            }
        }
    }
}

/// Clients that come and go while the access mode changes and items are flushed.
#[test]
fn what_is_given_up_leaves_nothing_behind() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    for table in [Table::Cache, Table::Store, Table::Memc3] {
        let mut rig = rig(table, (AccessMode::Crcw, 3), 64);
        let mut clients: Vec<(usize, usize, Client)> = Vec::new();
        let mut stored = 0;
        for step in 0..1_500 {
            if clients.len() < 20 {
                let (key, bytes) = (rng.random_range(0..30), rng.random_range(10_000..400_000));
                let client = Client::new(&rig, set(key, &value(key, bytes)));
                clients.push((key, bytes, client));
            }
            for (.., client) in &mut clients {
                if rng.random_ratio(1, 2) {
                    client.go_on(rng.random_range(1..60_000));
                }
            }
            clients.retain_mut(|(.., client)| {
                stored += u32::from(client.replies == b"STORED\r\n");
                let is_refused = client.replies.starts_with(b"SERVER_ERROR");
                assert!(!client.has_ended && (!is_refused || table == Table::Store));
                let leaves = rng.random_ratio(1, 400);
                client.replies.is_empty() && !leaves
            });
            if step % 500 == 499 {
                let mode = ["erew", "crew", "crcw"][rng.random_range(0..3)];
                let mut admin = rig.connect(1 << 20);
                rig.say(
                    &mut admin,
                    format!("dispatch keyhash {mode}\r\n").as_bytes(),
                );
                if rng.random_ratio(1, 3) {
                    rig.say(&mut admin, b"flush_all\r\n");
                }
            }
            let key = rng.random_range(0..30);
            if step % 20 == 0
                && let Some(found) = {
                    let mut stream = rig.connect(1 << 24);
                    let reply = rig.say(&mut stream, format!("get k{key}\r\n").as_bytes());
                    (reply != b"END\r\n").then_some(reply)
                }
            {
                let line = found.iter().position(|&byte| byte == b'\n').unwrap() + 1;
                let found = &found[line..found.len() - "\r\nEND\r\n".len()];
                assert!(found == value(key, found.len()), "{table:?}");
            }
            turn(&mut rig, 1);
        }
        println!("{table:?}: {stored} values were stored");
        assert!(stored > 50, "{table:?}: {stored}");
        clients.clear();
        for _ in 0..20 {
            turn(&mut rig, 20);
        }
        assert_eq!(uploads(&rig), 0, "{table:?}");
    }
}
