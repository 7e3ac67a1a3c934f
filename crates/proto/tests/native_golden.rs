//! The datagrams of `docs/native-protocol.md`, byte for byte. They were computed from the document
//! without this crate.

use glimmer_base::Seed;
use glimmer_proto::StoreMode;
use glimmer_proto::native::directory::{Access, Direction, Mode};
use glimmer_proto::native::request::{Action, Change, Exptime};
use glimmer_proto::native::{
    Directory, Fragment, Kind, Reach, Record, Reply, ReplyHeader, RequestHeader, Status,
};
use std::collections::BTreeMap;

const GOLDEN: &str = include_str!("../golden/native.tsv");

fn golden() -> BTreeMap<&'static str, Vec<u8>> {
    let rows = GOLDEN.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let (name, hex) = row.split_once('\t').unwrap();
        let digits = hex.as_bytes().as_chunks::<2>().0;
        let byte =
            |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (name, digits.iter().map(byte).collect())
    })
    .collect()
}

/// The key of all vectors and its seed, from the comment above the vectors.
fn key_and_seed() -> (&'static [u8], Seed) {
    let comment = GOLDEN.lines().nth(2).unwrap();
    let (_, rest) = comment.split_once("key \"").unwrap();
    let (key, seed) = rest.split_once("\" under seed ").unwrap();
    let seed = u64::from_str_radix(seed.trim_end_matches('.'), 16).unwrap();
    (key.as_bytes(), Seed(seed))
}

fn header(kind: Kind, count: u8) -> RequestHeader {
    RequestHeader {
        kind,
        count,
        directory: 0x01020304,
        sequence: 7,
        timestamp: 1000,
        client: 0x1122334455667788,
        token: 0x99AABBCCDDEEFF00,
    }
}

fn records() -> Vec<(&'static str, Record<'static>)> {
    let (key, seed) = key_and_seed();
    let record = |action, shows_cas| Record {
        action,
        keyhash: seed.keyhash(key),
        key,
        shows_cas,
    };
    let store = |mutation, mode, expiry: u32, flags, value| Action::Mutate {
        mutation,
        reach: Reach::UNKNOWN,
        change: Change::Store {
            mode,
            expiry: expiry.into(),
            flags,
            value,
        },
    };
    let change = |mutation, change| Action::Mutate {
        mutation,
        reach: Reach::UNKNOWN,
        change,
    };
    vec![
        ("get", record(Action::Get, false)),
        ("get_with_cas", record(Action::Get, true)),
        ("read", record(Action::Read { offset: 43264 }, false)),
        (
            "noop",
            Record {
                keyhash: glimmer_base::Keyhash(0),
                key: &[],
                ..record(Action::Noop, false)
            },
        ),
        (
            "put",
            record(store(3, StoreMode::Set, 60, 0xCAFE, b"hello"), false),
        ),
        (
            "put_in_ms",
            record(
                change(
                    11,
                    Change::Store {
                        mode: StoreMode::Set,
                        expiry: Exptime::ms(1500),
                        flags: 0xCAFE,
                        value: b"hello",
                    },
                ),
                false,
            ),
        ),
        (
            "touch_in_ms_with_cas",
            record(
                change(
                    12,
                    Change::Touch {
                        expiry: Exptime::ms(u32::MAX),
                    },
                ),
                true,
            ),
        ),
        ("add", record(store(4, StoreMode::Add, 0, 0, b""), false)),
        (
            "replace",
            record(store(5, StoreMode::Replace, 2592001, 1, &[b'x'; 20]), true),
        ),
        (
            "cas",
            record(store(6, StoreMode::Cas(0x0102030405), 0, 0, b"new"), false),
        ),
        ("delete", record(change(7, Change::Delete), false)),
        (
            "increment",
            record(change(8, Change::Increment { delta: u64::MAX }), false),
        ),
        (
            "decrement",
            record(change(9, Change::Decrement { delta: 5 }), true),
        ),
        (
            "touch",
            record(change(10, Change::Touch { expiry: 300.into() }), false),
        ),
        (
            "touch_with_reach",
            record(
                Action::Mutate {
                    mutation: 10,
                    reach: Reach::over(20),
                    change: Change::Touch { expiry: 300.into() },
                },
                false,
            ),
        ),
    ]
}

fn replies() -> Vec<(&'static str, Reply<'static>)> {
    let bare = Reply::bare;
    let found = Reply {
        value: b"hello",
        ..bare(Status::Found)
    };
    let counted = Reply {
        number: Some(42),
        ..bare(Status::Counted)
    };
    vec![
        ("found", found),
        (
            "found_with_flags_and_cas",
            Reply {
                flags: 0xCAFE,
                cas: Some(0x0102030405),
                ..found
            },
        ),
        ("not_found", bare(Status::NotFound)),
        ("stored", bare(Status::Stored)),
        (
            "stored_with_cas",
            Reply {
                cas: Some(0x0102030406),
                ..bare(Status::Stored)
            },
        ),
        ("exists", bare(Status::Exists)),
        ("deleted", bare(Status::Deleted)),
        ("touched", bare(Status::Touched)),
        ("counted", counted),
        (
            "counted_with_cas",
            Reply {
                cas: Some(1),
                ..counted
            },
        ),
        ("alive", bare(Status::Alive)),
        ("not_a_number", bare(Status::NotANumber)),
        ("out_of_memory", bare(Status::OutOfMemory)),
        ("too_large", bare(Status::TooLarge)),
        ("malformed", bare(Status::Malformed)),
        ("wrong_partition", bare(Status::WrongPartition)),
        ("new_directory", bare(Status::NewDirectory)),
        ("ask_owner", bare(Status::AskOwner)),
        ("no_token", bare(Status::NoToken)),
        ("overloaded", bare(Status::Overloaded)),
        ("ask_alone", bare(Status::AskAlone)),
        ("superseded", bare(Status::Superseded)),
        ("forgotten", bare(Status::Forgotten)),
        ("too_many_writers", bare(Status::TooManyWriters)),
    ]
}

#[test]
fn requests() {
    let mut golden = golden();
    for (name, record) in records() {
        let bytes = golden.remove(format!("request {name}").as_str()).unwrap();
        let (head, rest) = bytes.split_at(RequestHeader::BYTES);
        assert_eq!(RequestHeader::read(&bytes), Some(header(Kind::Requests, 1)));
        assert_eq!(header(Kind::Requests, 1).bytes(), head);
        assert_eq!(Record::read(rest), Some((record, rest.len())), "{name}");
        let mut written = Vec::new();
        record.write(&mut written);
        assert_eq!(written, rest, "{name}");
    }
    let several = golden.remove("request several").unwrap();
    let mut rest = &several[RequestHeader::BYTES..];
    for wanted in ["get", "put", "delete"] {
        let (record, bytes) = Record::read(rest).unwrap();
        assert!(records().contains(&(wanted, record)));
        rest = &rest[bytes..];
    }
    let directory = golden.remove("request directory").unwrap();
    let question = RequestHeader {
        directory: 0,
        token: 0,
        ..header(Kind::Directory, 0)
    };
    assert_eq!(question.bytes(), directory.as_slice());
    let fragment = golden.remove("request fragment").unwrap();
    check_fragment(&fragment[RequestHeader::BYTES..]);
    assert!(golden.keys().all(|name| !name.starts_with("request")));
}

fn check_fragment(bytes: &[u8]) {
    let fragment = Fragment {
        message_bytes: 1357,
        offset: 1352,
        digest: 0x0123456789ABCDEF,
        data: b"tail.",
    };
    assert_eq!(Fragment::read(bytes), Some(fragment));
    let mut written = Vec::new();
    fragment.write(&mut written);
    assert_eq!(written, bytes);
}

#[test]
fn answers() {
    let mut golden = golden();
    let header = |kind, count| ReplyHeader {
        kind,
        count,
        directory: 0x01020304,
        sequence: 7,
        timestamp: 1000,
    };
    let named = replies();
    for status in Status::ALL {
        assert!(named.iter().any(|(_, reply)| reply.status == status));
        assert_eq!(Status::from_byte(status as u8), Some(status));
    }
    for (name, reply) in named {
        let bytes = golden.remove(format!("reply {name}").as_str()).unwrap();
        let (head, rest) = bytes.split_at(ReplyHeader::BYTES);
        assert_eq!(ReplyHeader::read(&bytes), Some(header(Kind::Replies, 1)));
        assert_eq!(header(Kind::Replies, 1).bytes(), head);
        assert_eq!(Reply::read(rest), Some((reply, rest.len())), "{name}");
        let mut written = Vec::new();
        reply.write(&mut written);
        assert_eq!(written, rest, "{name}");
    }
    golden.remove("reply several").unwrap();
    check_fragment(&golden.remove("reply fragment").unwrap()[ReplyHeader::BYTES..]);
    let progress = golden.remove("reply progress").unwrap();
    let kind = ReplyHeader::read(&progress).map(|header| header.kind);
    assert_eq!(kind, Some(Kind::Progress));
    let bytes = golden.remove("reply directory").unwrap();
    let directory = Directory {
        token: 0x99AABBCCDDEEFF00,
        token_s: 3600,
        seed: key_and_seed().1,
        item_bytes_max: 1 << 20,
        partitions: 4,
        mode: Mode::Cache,
        access: Access::Crew,
        direction: Direction::Client,
        mutation_window: 1024,
        begun_s: None,
        ports: vec![11300, 11301],
    };
    let (head, rest) = bytes.split_at(ReplyHeader::BYTES);
    assert_eq!(header(Kind::DirectoryReply, 1).bytes(), head);
    assert_eq!(Directory::read(rest), Some(directory.clone()));
    let mut written = Vec::new();
    directory.write(&mut written);
    assert_eq!(written, rest);
    assert!(golden.keys().all(|name| name.starts_with("request")));
}

/// The reach byte: 0 to 31 for a mutation, 0 for any other request.
#[test]
fn only_a_mutation_has_a_reach() {
    for (name, record) in records() {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        for reach in 0..=u8::MAX {
            bytes[3] = reach;
            let may = reach == 0 || reach < 32 && record.opcode().is_mutation();
            assert_eq!(Record::read(&bytes).is_some(), may, "{name} {reach}");
        }
    }
}
