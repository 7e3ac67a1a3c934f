//! Datagrams that nobody should send, and datagrams that the network repeats: the server answers no
//! more than it may, and stays.

use crate::native::{Sent, Server};
use crate::requests::{
    alone, ask, datagram, get, header, here, increment, key_of, put, read, statuses, token,
};
use glimmer_proto::StoreMode;
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::request::{Action, Change, Exptime};
use glimmer_proto::native::{
    DATAGRAM_BYTES_MAX, Kind, Reach, Record, ReplyHeader, RequestHeader, Status,
};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

fn seeded() -> SmallRng {
    SmallRng::seed_from_u64(glimmer_seeds::seed())
}

#[test]
fn any_bytes_are_answered_with_no_more_bytes_and_leave_nothing_behind() {
    let mut rng = seeded();
    let mut server = Server::new(Access::Crew, 2);
    let proven = token(&server);
    let key = key_of(&server, 0);
    ask(&mut server, 0, proven, &[put(&key, 0, &[b'v'; 1300])]);
    let (bytes_before, mut answered) = (server.endpoints[0].bytes(), 0);
    for round in 0..3_000u64 {
        let mut segment_batches = Vec::new();
        for _ in 0..rng.random_range(1..=8) {
            let mut bytes = match rng.random_range(0..4) {
                0 => Vec::new(),
                1 => datagram(header(rng.random(), 1), &[get(&key)]),
                2 => datagram(header(0, 2), &[put(&key, rng.random(), b"z"), get(&key)]),
                _ => {
                    let kind = [Kind::Requests, Kind::Directory, Kind::Fragment];
                    let kind = kind[rng.random_range(0..3)];
                    RequestHeader {
                        kind,
                        client: rng.random(),
                        ..header(0, rng.random())
                    }
                    .bytes()
                    .to_vec()
                }
            };
            bytes.extend((0..rng.random_range(0..700)).map(|_| rng.random::<u8>()));
            for _ in 0..rng.random_range(0..3) {
                let at = rng.random_range(0..bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.random();
                }
            }
            let segment_bytes = rng.random_range(1..=bytes.len().max(1));
            segment_batches.push(Sent {
                bytes,
                segment_bytes,
            });
        }
        let received: usize = segment_batches.iter().map(|one| one.bytes.len()).sum();
        let replies = server.answer(0, here(), &segment_batches, round);
        let sent: usize = replies.iter().map(|one| one.bytes.len()).sum();
        assert!(sent <= received, "{sent} bytes for {received}");
        answered += replies.len();
    }
    assert!(
        answered > 1000,
        "{answered} answers: the datagrams are too odd"
    );
    assert_eq!(server.endpoints[0].bytes(), bytes_before);
    let replies = ask(&mut server, 0, proven, &[get(&key)]);
    assert_eq!(replies, [(Status::Found, vec![b'v'; 1300])]);
}

/// IPv6 carries datagrams that are longer than a segment batch may be.
#[test]
fn what_is_longer_than_a_datagram_may_be_is_dropped() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    for bytes in [DATAGRAM_BYTES_MAX + 1, 9_000, 65_507, 65_508, 65_527] {
        let mut long = datagram(header(token, 1), &[get(b"key")]);
        long.resize(bytes, 0);
        assert_eq!(server.answer(0, here(), &[alone(long)], 0), [], "{bytes}");
    }
    let mut longest = datagram(header(token, 1), &[get(b"key")]);
    longest.resize(DATAGRAM_BYTES_MAX, 0);
    let replies = server.answer(0, here(), &[alone(longest)], 0);
    assert_eq!(statuses(&read(&replies[0].bytes)), [Status::NotFound]);
}

/// Answers to mutations that were executed before take as much room as when they were new, and have
/// no more.
#[test]
fn a_full_datagram_may_come_twice() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    ask(&mut server, 0, token, &[put(b"long", 0, &[b'v'; 1000])]);
    let keys: Vec<String> = (0..31).map(|n| format!("{n:02}")).collect();
    for (number, key) in (1..).zip(&keys) {
        ask(&mut server, 0, token, &[put(key.as_bytes(), number, b"1")]);
    }
    let mut records = vec![get(b"long")];
    let increments = (32..).zip(&keys);
    records.extend(increments.map(|(number, key)| increment(key.as_bytes(), number)));
    let first = ask(&mut server, 0, token, &records);
    let again = ask(&mut server, 0, token, &records);
    assert_eq!(statuses(&first), statuses(&again));
    let alone = statuses(&first).into_iter();
    assert!(alone.filter(|status| *status == Status::AskAlone).count() > 5);
    // Each was executed once, whatever could be told of it.
    for key in &keys {
        let found = ask(&mut server, 0, token, &[get(key.as_bytes())]);
        assert_eq!(found, [(Status::Found, b"2".to_vec())]);
    }
}

/// Full datagrams of any requests with a good token, repeated, cut off, and with wrong bytes here
/// and there.
#[test]
fn what_clients_may_send_is_survived_however_often_it_arrives() {
    let mut rng = seeded();
    for access in [Access::Erew, Access::Crcw] {
        let mut server = Server::new(access, 1);
        let token = token(&server);
        let keys: Vec<String> = (0..40).map(|n| format!("key {n}")).collect();
        let (mut mutation, mut answered) = (0u32, 0);
        for round in 0..2_000u64 {
            let mut segment_batches = Vec::new();
            for _ in 0..rng.random_range(1..=4) {
                let value = vec![b'v'; [0, 5, 200, 1_000][rng.random_range(0..4)]];
                let mut records = Vec::new();
                let mut bytes = RequestHeader::BYTES;
                while records.len() < 32 && rng.random_ratio(19, 20) {
                    // Now and then a number that was used before, for whatever it was.
                    mutation = match rng.random_range(0..20) {
                        0 => mutation.saturating_sub(rng.random_range(0..50)),
                        _ => mutation + 1,
                    };
                    let record = draw(&mut rng, &keys, &value, mutation);
                    bytes += record.bytes();
                    if bytes > DATAGRAM_BYTES_MAX {
                        break;
                    }
                    records.push(record);
                }
                let mut bytes = datagram(header(token, records.len() as u8), &records);
                if rng.random_ratio(1, 10) {
                    bytes.truncate(rng.random_range(1..=bytes.len()));
                }
                if rng.random_ratio(1, 5) {
                    let at = rng.random_range(0..bytes.len());
                    bytes[at] = rng.random();
                }
                segment_batches.push(alone(bytes));
            }
            for _ in 0..rng.random_range(1..=3) {
                for reply in server.answer(0, here(), &segment_batches, round) {
                    for datagram in reply.bytes.chunks(reply.segment_bytes) {
                        assert!(datagram.len() <= DATAGRAM_BYTES_MAX);
                        assert!(ReplyHeader::read(datagram).is_some());
                        answered += 1;
                    }
                }
            }
        }
        assert!(answered > 5_000, "{answered} answers");
        let good = ask(&mut server, 0, token, &[get(b"none")]);
        assert_eq!(statuses(&good), [Status::NotFound]);
    }
}

fn draw<'a>(rng: &mut SmallRng, keys: &'a [String], value: &'a [u8], mutation: u32) -> Record<'a> {
    let key = keys.choose(rng).expect("there are keys").as_bytes();
    let change = match rng.random_range(0..8) {
        0 => return get(key),
        1 => {
            let offset = rng.random();
            let action = Action::Read { offset };
            return Record { action, ..get(key) };
        }
        2 => return put(key, mutation, b"7"),
        3 => return put(key, mutation, value),
        4 => Change::Delete,
        5 => Change::Touch {
            expiry: Exptime::NEVER,
        },
        6 => Change::Store {
            mode: *[
                StoreMode::Add,
                StoreMode::Replace,
                StoreMode::Cas(rng.random()),
            ]
            .choose(rng)
            .expect("there are some"),
            expiry: rng.random::<u32>().into(),
            flags: rng.random(),
            value,
        },
        _ => Change::Increment {
            delta: rng.random(),
        },
    };
    Record {
        action: Action::Mutate {
            mutation,
            reach: Reach::over(rng.random_range(1..=40)),
            change,
        },
        shows_cas: rng.random(),
        ..get(key)
    }
}
