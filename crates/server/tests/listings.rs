//! Keys of any bytes in every line that shows keys: no key begins a line or reaches a terminal as
//! it is, and each can be read back.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::{Moment, shown};
use glimmer_node::{AdminHandler, Clock, Devices, Part, Rest};
use glimmer_proto::Accepts;
use glimmer_proto::text::Shutdown;
use glimmer_server::config::AccessMode;
use glimmer_server::{Config, DrivenServer, HugepagePolicy};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};
use proptest::prelude::*;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS,
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        0
    }
}

/// Answers no `stats`.
struct Silent;

impl AdminHandler for Silent {
    fn stats(&self, _: &[u8], _: u64, _: Moment, _: &mut Vec<u8>) -> Part {
        Part::Last
    }

    fn admits(&self, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

/// A server of one worker, without threads and sockets.
struct Rig {
    server: DrivenServer,
    listener: LocalListener,
}

impl Rig {
    fn new() -> Rig {
        let config = Config {
            tcp: Vec::new(),
            tcp_protocols: Vec::new(),
            memory_bytes: 16 << 20,
            workers: 1,
            access: AccessMode::Erew,
            hugepages: HugepagePolicy::Off,
            ..Config::default()
        };
        let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
        let devices = vec![Devices {
            listeners: vec![(Box::new(listener.clone()), Accepts::Any)],
            ..Devices::default()
        }];
        let mut drawn = 0;
        let mut random = || {
            drawn += 1;
            drawn
        };
        let (clock, admin) = (Arc::new(Still), Arc::new(Silent));
        let server = DrivenServer::assemble(&config, devices, clock, admin, &mut random);
        Rig {
            server: server.unwrap(),
            listener,
        }
    }

    fn connect(&self, seed: u64) -> LocalStream {
        let address = SocketAddr::from(([10, 0, 0, 2], seed as u16));
        self.listener
            .connect(address, StreamFaults::default(), seed)
    }

    /// Sends bytes, and receives until nothing more comes.
    fn say(&mut self, stream: &mut LocalStream, said: &[u8]) -> Vec<u8> {
        let (mut said, mut replies) = (said, Vec::new());
        loop {
            match stream.send(said) {
                Sent::All => said = &[],
                Sent::Part(bytes) => said = &said[bytes..],
                Sent::Failed => return replies,
            }
            let worker = &mut self.server.node.workers[0];
            let mut is_idle = !(worker.rest() == Rest::Busy || worker.is_called());
            if !is_idle {
                worker.turn();
            }
            replies.reserve(64 << 10);
            match stream.receive(&mut replies) {
                Received::Drained(0) => {}
                Received::Ended => return replies,
                _ => is_idle = false,
            }
            if is_idle && said.is_empty() && !stream.ready().readable {
                return replies;
            }
        }
    }
}

/// A command of RESP.
fn resp(arguments: &[&[u8]]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        command.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        command.extend_from_slice(argument);
        command.extend_from_slice(b"\r\n");
    }
    command
}

/// The lines of a reply without their ends, which are these.
fn lines<'a>(reply: &'a [u8], end: &str) -> Vec<&'a str> {
    let text = std::str::from_utf8(reply).expect("listings are text");
    let controls = |c: char| c.is_control() && c != '\r' && c != '\n';
    assert!(!text.contains(controls), "{text:?}");
    let text = text.strip_suffix(end).expect("the last line has an end");
    text.split(end).collect()
}

/// The lines before the last one, which is this.
fn listed<'a>(reply: &'a [u8], end: &str, last: &str) -> Vec<&'a str> {
    let mut lines = lines(reply, "\n");
    for line in &mut lines {
        *line = line.strip_suffix(end).unwrap_or(line);
    }
    assert_eq!(lines.pop(), Some(last));
    // Dumps begin with a line of their own.
    lines.retain(|line| line.trim_end() != "OK");
    lines
}

/// The key between two texts of a line, as it was before it was shown.
fn key_of(line: &str, before: &str, after: &str) -> Vec<u8> {
    let key = line
        .strip_prefix(before)
        .and_then(|rest| rest.split_once(after));
    let (key, _) = key.unwrap_or_else(|| panic!("{line:?} is not what the server writes"));
    shown::read(key.as_bytes()).unwrap_or_else(|| panic!("{key:?} cannot be read"))
}

/// Each listing of a server that has these keys shows all of them, and nothing else.
fn check(keys: &BTreeSet<Vec<u8>>) {
    let mut rig = Rig::new();
    let [mut text, mut client, mut watcher] = [1, 2, 3].map(|seed| rig.connect(seed));
    assert_eq!(rig.say(&mut text, b"stats detail on\r\n"), b"OK\r\n");
    let watches = rig.say(&mut watcher, b"watch fetchers mutations deletions\r\n");
    assert_eq!(watches, b"OK\r\n");
    for key in keys {
        assert_eq!(
            rig.say(&mut client, &resp(&[b"SET", key, b"v"])),
            b"+OK\r\n"
        );
        assert_eq!(rig.say(&mut client, &resp(&[b"GET", key])), b"$1\r\nv\r\n");
    }

    let reply = rig.say(&mut text, b"lru_crawler metadump all\r\n");
    let dumped = listed(&reply, "", "END\r");
    let dumped = dumped.iter().map(|line| key_of(line, "key=", " exp="));
    assert_eq!(dumped.collect::<BTreeSet<_>>(), *keys, "metadump");

    let reply = rig.say(&mut text, b"lru_crawler mgdump all\r\n");
    let commands = listed(&reply, "\r", "EN");
    assert_eq!(commands.len(), keys.len(), "mgdump");
    let mut encoded = 0;
    for command in &commands {
        let key = command.strip_prefix("mg ").expect("a command");
        let (key, marker) = key
            .split_once(' ')
            .map_or((key, ""), |(key, _)| (key, " b"));
        encoded += usize::from(!marker.is_empty());
        if key.len() > KEY_BYTES_MAX {
            // No line can name it.
            continue;
        }
        let says = rig.say(&mut text, format!("{command}\r\n").as_bytes());
        assert_eq!(says, b"HD\r\n", "{command}");
        // What a reply repeats of the key stays on its line.
        for (command, begin) in [("mg", "HD k"), ("me", "ME ")] {
            let shows_key = if command == "mg" { " k" } else { "" };
            let line = format!("{command} {key}{marker}{shows_key}\r\n");
            let says = rig.say(&mut text, line.as_bytes());
            let ends = says.iter().filter(|&&byte| byte == b'\n').count();
            assert!(
                says.starts_with(begin.as_bytes()) && ends == 1,
                "{line}: {says:?}"
            );
        }
    }
    let plain = keys.iter().filter(|key| shown::is_visible(key)).count();
    assert_eq!(encoded, keys.len() - plain);

    let reply = rig.say(&mut text, b"stats cachedump 1 0\r\n");
    let items = listed(&reply, "\r", "END");
    let items: BTreeSet<_> = items
        .iter()
        .map(|line| {
            line.strip_prefix("ITEM ")
                .unwrap()
                .split_once(' ')
                .unwrap()
                .0
        })
        .map(|key| key.as_bytes().to_vec())
        .collect();
    let visible = keys.iter().filter(|key| shown::is_visible(key)).cloned();
    assert_eq!(items, visible.collect(), "cachedump");

    let reply = rig.say(&mut text, b"stats detail dump\r\n");
    let prefixes = listed(&reply, "\r", "END");
    let prefixes = prefixes.iter().map(|line| key_of(line, "PREFIX ", " get "));
    let expected = keys.iter().filter_map(|key| {
        let end = key.iter().position(|&byte| byte == b':')?;
        Some(key[..end].to_vec())
    });
    assert_eq!(
        prefixes.collect::<BTreeSet<_>>(),
        expected.collect(),
        "stats detail"
    );

    for key in keys {
        assert_eq!(rig.say(&mut client, &resp(&[b"DEL", key])), b":1\r\n");
    }
    let reply = rig.say(&mut watcher, b"");
    let events = lines(&reply, "\n");
    for kind in ["item_store", "item_get", "deleted"] {
        let kind = format!(" type={kind} key=");
        let seen = events.iter().filter_map(|line| line.split_once(&*kind));
        let seen = seen.map(|(_, rest)| key_of(rest, "", " "));
        assert_eq!(seen.collect::<BTreeSet<_>>(), *keys, "{kind}");
    }
    let is_event = |line: &&str| line.starts_with("ts=") && line.contains(" type=");
    assert!(events.iter().all(is_event), "{events:?}");
}

#[test]
fn keys_that_end_lines_are_shown() {
    let keys: &[&[u8]] = &[
        b"plain:1",
        b"a%20b:1",
        b"x\r\nPREFIX forged get 1 hit 1 set 1 del 0\r\nEND\r\n:1",
        b"y\nkey=forged exp=-1\n",
        b"\x1b]0;title\x07\x1b[2J:1",
        b"mg forged\r\nflush_all\r\n",
        "\u{9b}2J:1".as_bytes(),
        "ключ:1".as_bytes(),
        b"\xff\xfe:1",
        b" ",
        b":",
        b"%",
    ];
    check(&keys.iter().map(|key| key.to_vec()).collect());
    let each: BTreeSet<_> = (0..=u8::MAX).map(|byte| vec![byte, b':', byte]).collect();
    check(&each);
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::with_cases(8)
    })]

    #[test]
    fn keys_of_any_bytes_are_shown(
        keys in prop::collection::btree_set(
            prop::collection::vec(
                prop_oneof![3 => any::<u8>(), 1 => b' '..=b'~', 1 => Just(b':'), 1 => Just(b'\n')],
                1..=250,
            ),
            1..30,
        ),
    ) {
        check(&keys);
    }
}
