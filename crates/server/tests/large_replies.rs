//! Large values leave from the table's memory: through streams that take a part of them, fail in
//! the middle or are read slowly, and between other requests of the same client.

use glimmer_base::limits::{LENT_BYTES_MIN, REPLY_BYTES_HIGH, TURN_LARGE_BYTES_MAX};
use glimmer_proto::Accepts;
use glimmer_server::Config;
use glimmer_server::config::AccessMode;
use glimmer_transport::Sent;
use glimmer_transport::stream::{ByteStream, StreamFaults};
use support::Rig;

mod support;

/// An item with the largest value has room for its key and header.
const VALUE_BYTES_MAX: usize = (1 << 20) - 100;

/// Every access mode, with workers that can send values from where they lie and others.
const RIGS: [(AccessMode, usize); 5] = [
    (AccessMode::Erew, 1),
    (AccessMode::Erew, 2),
    (AccessMode::Crew, 2),
    (AccessMode::Crcw, 1),
    (AccessMode::Crcw, 2),
];

fn value(letter: char, bytes: usize) -> String {
    letter.to_string().repeat(bytes)
}

/// What a client says, and what it has to be told.
#[derive(Default)]
struct Script {
    said: String,
    expected: String,
}

impl Script {
    fn set(&mut self, key: &str, value: &str) {
        self.said += &format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        self.expected += "STORED\r\n";
    }

    fn get(&mut self, items: &[(&str, Option<&str>)]) {
        self.said += "get";
        for &(key, value) in items {
            self.said += &format!(" {key}");
            if let Some(value) = value {
                self.expected += &format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
            }
        }
        self.said += "\r\n";
        self.expected += "END\r\n";
    }

    fn meta(&mut self, key: &str, value: &str) {
        self.said += &format!("mg {key} v k\r\n");
        self.expected += &format!("VA {} k{key}\r\n{value}\r\n", value.len());
    }

    fn then(&mut self, said: &str, expected: &str) {
        self.said += said;
        self.expected += expected;
    }
}

/// Large values between small ones and between changes of the same keys, all sent at once.
fn everything() -> Script {
    let mut script = Script::default();
    let [long, longer, short] = [
        value('a', LENT_BYTES_MIN),
        value('b', 100_000),
        value('c', 9),
    ];
    let [a, b, c] = [
        ("a", Some(&*long)),
        ("b", Some(&*longer)),
        ("c", Some(&*short)),
    ];
    script.set("a", &long);
    script.set("b", &longer);
    script.set("c", &short);
    for items in [&[a][..], &[c, a, c], &[b, a, b, c, b], &[("none", None), b]] {
        script.get(&[c]);
        script.get(items);
        script.meta("b", &longer);
    }
    script.get(&[b]);
    script.set("b", &long);
    script.get(&[("b", Some(&long))]);
    script.then("append b 0 0 3\r\nend\r\n", "STORED\r\n");
    script.get(&[("b", Some(&format!("{long}end"))), a]);
    script.then("delete b\r\n", "DELETED\r\n");
    script.get(&[("b", None), a]);
    script.then("touch a -1\r\n", "TOUCHED\r\n");
    script.get(&[("a", None), c]);
    script.set("a", &longer);
    script.get(&[("a", Some(&longer))]);
    script.then("flush_all\r\n", "OK\r\n");
    script.get(&[("a", None), ("c", None)]);
    script.set("a", &long);
    script.get(&[a]);
    script
}

#[test]
fn replies_are_whole_and_in_order_through_short_writes() {
    let script = everything();
    for (access, workers) in RIGS {
        for seed in 0..4 {
            let mut rig = Rig::new(access, workers);
            let faults = StreamFaults {
                short_read: 0.3,
                short_write: [0.9, 0.3, 0.0, 0.3][seed as usize],
                buffer_bytes: [1_000, 20_000, 64 << 10, 1 << 24][seed as usize],
                ..StreamFaults::default()
            };
            let mut stream = rig.connect_with(faults, seed);
            let replies = rig.say(&mut stream, script.said.as_bytes());
            let is_right = replies == script.expected.as_bytes();
            assert!(is_right, "{access:?}, {workers} workers, seed {seed}");
        }
    }
}

/// The stream takes a reply up to a certain byte, for each byte around those at which one part of
/// the reply ends and the next begins.
#[test]
fn a_reply_may_be_cut_anywhere() {
    let long = value('v', LENT_BYTES_MIN);
    let mut script = Script::default();
    script.get(&[("short", Some("x"))]);
    script.get(&[("long", Some(&long)), ("short", Some("x"))]);
    let (said, expected) = (script.said.as_bytes(), script.expected.as_bytes());
    let tail = expected.len() - "\r\nVALUE short 0 1\r\nx\r\nEND\r\n".len();
    let mut rig = Rig::new(AccessMode::Erew, 1);
    let mut first = rig.connect(1 << 20);
    let set = format!(
        "set long 0 0 {}\r\n{long}\r\nset short 0 0 1\r\nx\r\n",
        long.len()
    );
    rig.say(&mut first, set.as_bytes());
    for cut in (1..80).chain(tail - 10..=expected.len()) {
        let mut stream = rig.connect(cut);
        // Its first replies are made as those of other new clients.
        for _ in 0..2 {
            assert!(
                rig.say(&mut stream, said) == expected,
                "cut after {cut} bytes"
            );
        }
    }
}

#[test]
fn a_reset_in_the_middle_ends_the_connection_alone() {
    let long = value('v', 150_000);
    let mut rig = Rig::new(AccessMode::Erew, 1);
    let mut other = rig.connect(1 << 24);
    let mut script = Script::default();
    script.set("long", &long);
    script.get(&[("long", Some(&long))]);
    assert!(rig.say(&mut other, script.said.as_bytes()) == script.expected.as_bytes());
    for seed in 0..30 {
        let mut stream = rig.connect(50_000);
        rig.say(&mut stream, b"get long\r\n");
        let faults = StreamFaults {
            reset: 0.2,
            short_write: 0.5,
            buffer_bytes: 50_000,
            ..StreamFaults::default()
        };
        let mut stream = rig.connect_with(faults, seed);
        let replies = rig.say(&mut stream, &b"get long\r\n".repeat(8));
        let mut whole = Script::default();
        (0..8).for_each(|_| whole.get(&[("long", Some(&long))]));
        assert!(
            whole.expected.as_bytes().starts_with(&replies),
            "seed {seed}"
        );
    }
    while rig.turn() {}
    assert_eq!(rig.total().curr_connections, 1, "the others were closed");
    assert_eq!(rig.held_bytes(), 0);
    let mut again = Script::default();
    again.get(&[("long", Some(&long))]);
    assert!(rig.say(&mut other, again.said.as_bytes()) == again.expected.as_bytes());
}

/// A server whose clients log in with this protocol.
fn locked((access, workers): (AccessMode, usize), protocol: Accepts) -> Rig {
    Rig::with(Config {
        memory_bytes: 128 << 20,
        workers,
        access,
        protocol,
        sasl: protocol == Accepts::Binary,
        auth_file: Some("users".into()),
        ..Config::default()
    })
}

/// A client that has logged in asks for a large value, and then logs in wrongly: the answer to that
/// is withheld, and what was asked before arrives whole.
#[test]
fn a_wrong_login_leaves_a_large_value_whole() {
    let long = value('v', 100_000);
    for (mode, buffer_bytes) in RIGS
        .into_iter()
        .flat_map(|mode| [(mode, 20_000), (mode, 1 << 20)])
    {
        let mut rig = locked(mode, Accepts::Resp);
        let mut stream = rig.connect(buffer_bytes);
        let said = command(&["AUTH", "u", "right"]) + &command(&["SET", "long", &long]);
        assert_eq!(rig.say(&mut stream, said.as_bytes()), b"+OK\r\n+OK\r\n");
        let said = command(&["GET", "long"]) + &command(&["AUTH", "u", "wrong"]);
        let answer = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
        let expected = format!("$100000\r\n{long}\r\n{answer}");
        let replies = rig.ask(&mut stream, said.as_bytes(), expected.len());
        assert!(replies == expected.as_bytes(), "{mode:?}, {buffer_bytes}");
    }
}

#[test]
fn a_wrong_login_in_binary_leaves_a_large_value_whole() {
    let long = value('v', 100_000);
    for (mode, buffer_bytes) in RIGS
        .into_iter()
        .flat_map(|mode| [(mode, 20_000), (mode, 1 << 20)])
    {
        let mut rig = locked(mode, Accepts::Binary);
        let mut stream = rig.connect(buffer_bytes);
        let said = packet(SASL_AUTH, b"", "PLAIN", "\0u\0right");
        assert_eq!(rig.say(&mut stream, &said)[6..8], [0, 0], "admitted");
        let said = packet(SET, &[0; 8], "long", &long);
        assert_eq!(rig.say(&mut stream, &said)[6..8], [0, 0], "stored");
        let wrong = packet(SASL_AUTH, b"", "PLAIN", "\0u\0wrong");
        let said = [packet(GET, b"", "long", ""), wrong].concat();
        let get_bytes = 24 + 4 + long.len();
        let replies = rig.ask(&mut stream, &said, get_bytes + 24);
        assert!(replies.len() > get_bytes + 24, "{mode:?}, {buffer_bytes}");
        let (get, login) = replies.split_at(get_bytes);
        let is_right = get[6..8] == [0, 0] && get[28..] == *long.as_bytes();
        assert!(is_right, "{mode:?}, {buffer_bytes}");
        assert_eq!(
            (login[1], login[7]),
            (SASL_AUTH, 0x20),
            "{mode:?}, {buffer_bytes}"
        );
    }
}

const GET: u8 = 0;
const SET: u8 = 1;
const STAT: u8 = 0x10;
const SASL_AUTH: u8 = 0x21;

/// A command of RESP.
fn command(words: &[&str]) -> String {
    let head = format!("*{}\r\n", words.len());
    let words = words.iter();
    head + &words
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect::<String>()
}

/// A request of the binary protocol.
fn packet(opcode: u8, extras: &[u8], key: &str, value: &str) -> Vec<u8> {
    let mut packet = vec![
        0x80,
        opcode,
        0,
        key.len() as u8,
        extras.len() as u8,
        0,
        0,
        0,
    ];
    packet.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    packet.extend([0; 12]);
    [&packet, extras, key.as_bytes(), value.as_bytes()].concat()
}

/// Clients ask for the largest value again and again, and read nothing.
#[test]
fn what_slow_readers_are_owed_stays_within_the_bound() {
    const CLIENTS: usize = 200;
    let long = value('v', VALUE_BYTES_MAX);
    let mut rig = Rig::new(AccessMode::Erew, 1);
    let mut other = rig.connect(1 << 24);
    let mut script = Script::default();
    script.set("long", &long);
    rig.say(&mut other, script.said.as_bytes());
    let limit = rig.server.plan.buffer_bytes_per_worker as u64;
    let mut streams: Vec<_> = (0..CLIENTS).map(|_| rig.connect(50_000)).collect();
    for round in 0..10 {
        for stream in &mut streams {
            let _ = stream.send(b"get long\r\nget long\r\n");
            if round == 9 {
                // Others take a little.
                stream.receive(&mut Vec::with_capacity(10_000));
            }
        }
        for _ in 0..10 {
            rig.turn();
            assert!(rig.held_bytes() <= limit, "round {round}");
        }
        let mut script = Script::default();
        script.get(&[("long", Some(&long))]);
        let (said, expected) = (script.said.as_bytes(), script.expected.as_bytes());
        assert!(
            rig.ask(&mut other, said, expected.len()) == expected,
            "round {round}"
        );
    }
}

/// A client that asks for a great many large values and takes them all has its share of a turn.
#[test]
fn a_turn_sends_a_bounded_number_of_bytes() {
    const BYTES: usize = 100_000;
    let long = value('v', BYTES);
    let mut rig = Rig::new(AccessMode::Erew, 1);
    let mut stream = rig.connect(1 << 26);
    let mut script = Script::default();
    script.set("long", &long);
    script.get(&[("long", Some(&long))]);
    rig.say(&mut stream, script.said.as_bytes());
    assert_eq!(stream.send(&b"get long\r\n".repeat(200)), Sent::All);
    let mut before = rig.total().bytes_written;
    let mut turns = 0;
    while rig.turn() {
        let sent = rig.total().bytes_written - before;
        let most = TURN_LARGE_BYTES_MAX + REPLY_BYTES_HIGH + 2 * BYTES;
        assert!(sent <= most as u64, "{sent} bytes in turn {turns}");
        (before, turns) = (before + sent, turns + 1);
    }
    assert!(turns > 10, "{turns}");
}

/// Counts by prefix are gathered for one client at a time. One that takes nothing of an earlier
/// reply has not begun to.
#[test]
fn counts_by_prefix_are_shown_while_another_takes_no_value() {
    const PREFIXES: usize = 500;
    let long = value('v', 100_000);
    for mode in RIGS {
        let mut rig = Rig::new(mode.0, mode.1);
        let mut text = rig.connect(1 << 20);
        let mut script = Script::default();
        script.set("long", &long);
        rig.say(&mut text, script.said.as_bytes());
        assert_eq!(rig.say(&mut text, b"stats detail on\r\n"), b"OK\r\n");
        let gets: String = (0..PREFIXES)
            .map(|nth| format!("get prefix{nth}:x\r\n"))
            .collect();
        let replies = rig.say(&mut text, gets.as_bytes());
        assert_eq!(replies.len(), PREFIXES * "END\r\n".len());
        let [get, stat] = [(GET, "long"), (STAT, "detail dump")]
            .map(|(opcode, key)| packet(opcode, b"", key, ""));
        let mut idle = rig.connect(10_000);
        assert_eq!(idle.send(&[&get[..], &stat].concat()), Sent::All);
        while rig.turn() {}
        let [mut first, mut second] = [(); 2].map(|()| rig.connect(1 << 20));
        let shown = rig.say(&mut first, &stat);
        assert!(shown.len() > PREFIXES * "PREFIX prefix".len(), "{mode:?}");
        assert!(rig.say(&mut second, &stat) == shown, "{mode:?}");
        let taken = rig.ask(&mut idle, &[], long.len() + shown.len());
        assert!(
            taken.len() > long.len() + shown.len() && taken.ends_with(&shown),
            "{mode:?}"
        );
    }
}
