//! Keys of any bytes in every line that shows keys: no key begins a line or reaches a terminal as
//! it is, and each can be read back.

mod support;

use std::collections::BTreeSet;

use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::shown;
use glimmer_server::Config;
use glimmer_server::config::AccessMode;
use glimmer_transport::stream::StreamFaults;
use proptest::prelude::*;
use support::Rig;

/// A server of one worker.
fn rig() -> Rig {
    Rig::with(Config {
        memory_bytes: 16 << 20,
        workers: 1,
        access: AccessMode::Erew,
        ..Config::default()
    })
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
    let mut rig = rig();
    let connect = |seed| rig.connect_with(StreamFaults::default(), seed);
    let [mut text, mut client, mut watcher] = [1, 2, 3].map(connect);
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
