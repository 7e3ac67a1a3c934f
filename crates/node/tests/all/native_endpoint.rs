//! What native datagrams are answered, without sockets.

use crate::native::{self, SEED, Sent, Server, VERSION};
use crate::requests::{
    alone, ask, datagram, get, header, here, increment, key_of, put, read, statuses, token,
};
use glimmer_base::Keyhash;
use glimmer_base::limits::NATIVE_TOKEN_S;
use glimmer_dispatch::{Plan, Role};
use glimmer_node::native::NativeEndpoint;
use glimmer_proto::native::directory::{Access, Direction, REPLY_BYTES_MAX};
use glimmer_proto::native::fragment::DATA_BYTES;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{Directory, Kind, Record, Reply, ReplyHeader, RequestHeader, Status};

#[test]
fn several_requests_are_answered_in_their_order() {
    for access in [Access::Erew, Access::Crew, Access::Crcw] {
        let mut server = Server::new(access, 1);
        let token = token(&server);
        let replies = ask(
            &mut server,
            0,
            token,
            &[
                get(b"a"),
                put(b"a", 0, b"1"),
                get(b"a"),
                increment(b"a", 1),
                get(b"a"),
                get(b"b"),
            ],
        );
        let expected = [
            (Status::NotFound, b"".to_vec()),
            (Status::Stored, b"".to_vec()),
            (Status::Found, b"1".to_vec()),
            (Status::Counted, b"".to_vec()),
            (Status::Found, b"2".to_vec()),
            (Status::NotFound, b"".to_vec()),
        ];
        assert_eq!(replies, expected);
    }
}

#[test]
fn a_mutation_is_executed_once_and_answered_the_same_again() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    ask(&mut server, 0, token, &[put(b"n", 0, b"7")]);
    let sent = alone(datagram(header(token, 1), &[increment(b"n", 1)]));
    // Twice in the same segment batches, and once more later.
    let first = server.answer(0, here(), &[sent.clone(), sent.clone()], 0);
    let later = server.answer(0, here(), std::slice::from_ref(&sent), 0);
    assert_eq!(first.len(), 2);
    for reply in first.iter().chain(&later) {
        let (reply, _) = Reply::read(&reply.bytes[ReplyHeader::BYTES..]).unwrap();
        assert_eq!((reply.status, reply.number), (Status::Counted, Some(8)));
    }
    assert_eq!(server.endpoints[0].figures().repeated, 2);
    let replies = ask(&mut server, 0, token, &[get(b"n")]);
    assert_eq!(replies, [(Status::Found, b"8".to_vec())]);
}

#[test]
fn a_late_duplicate_undoes_nothing() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    // Number 1 is lost on its way; the client gives it up and stores another value.
    ask(&mut server, 0, token, &[put(b"k", 0, b"old")]);
    ask(&mut server, 0, token, &[put(b"k", 2, b"new")]);
    let late = ask(&mut server, 0, token, &[put(b"k", 1, b"lost")]);
    assert_eq!(statuses(&late), [Status::Superseded]);
    let late = ask(&mut server, 0, token, &[put(b"k", 0, b"old")]);
    assert_eq!(
        statuses(&late),
        [Status::Stored],
        "as it was answered before"
    );
    let replies = ask(&mut server, 0, token, &[get(b"k")]);
    assert_eq!(replies, [(Status::Found, b"new".to_vec())]);
}

#[test]
fn what_is_on_the_wrong_core_is_refused_and_not_executed() {
    for access in [Access::Erew, Access::Crew] {
        let mut server = Server::new(access, 2);
        let token = token(&server);
        let key = key_of(&server, 1);
        let replies = ask(&mut server, 0, token, &[put(&key, 0, b"x")]);
        assert_eq!(statuses(&replies), [Status::WrongPartition]);
        let replies = ask(&mut server, 1, token, &[get(&key)]);
        assert_eq!(statuses(&replies), [Status::NotFound]);
        ask(&mut server, 1, token, &[put(&key, 0, b"x")]);
        let replies = ask(&mut server, 0, token, &[get(&key)]);
        let expected = match access {
            Access::Erew => Status::WrongPartition,
            _ => Status::Found,
        };
        assert_eq!(statuses(&replies), [expected]);
        let misdirected: u64 = (server.endpoints.iter())
            .map(|endpoint| endpoint.figures().misdirected)
            .sum();
        assert_eq!(misdirected, 1 + u64::from(access == Access::Erew));
    }
}

#[test]
fn where_any_worker_may_write_a_mutation_is_executed_once_by_all_of_them() {
    let mut server = Server::new(Access::Crcw, 3);
    let token = token(&server);
    for owner in 0..3 {
        let key = key_of(&server, owner);
        let at = |later: usize| (owner + later) % 3;
        ask(&mut server, at(0), token, &[put(&key, 0, b"7")]);
        // It is executed by another worker than the owner, and comes again at all three.
        for later in [1, 2, 0, 1] {
            let replies = ask(&mut server, at(later), token, &[increment(&key, 1)]);
            assert_eq!(statuses(&replies), [Status::Counted]);
        }
        let replies = ask(&mut server, at(2), token, &[get(&key)]);
        assert_eq!(replies, [(Status::Found, b"8".to_vec())]);
        let late = ask(&mut server, at(1), token, &[put(&key, 0, b"7")]);
        assert_eq!(
            statuses(&late),
            [Status::Stored],
            "as it was answered before"
        );
        let replies = ask(&mut server, at(1), token, &[get(&key)]);
        assert_eq!(replies, [(Status::Found, b"8".to_vec())]);
    }
    let repeated = |endpoint: &NativeEndpoint| endpoint.figures().repeated;
    assert_eq!(server.endpoints.iter().map(repeated).sum::<u64>(), 3 * 4);
}

/// What is handed over does not come here: what is here although another worker owns it found no
/// room in the mesh, or cannot be handed over.
#[test]
fn what_a_directing_server_cannot_hand_over_is_refused_and_not_executed() {
    for access in [Access::Erew, Access::Crew] {
        let mut server = Server::directed(Direction::Server, access, 2);
        let token = token(&server);
        let (mine, theirs) = (key_of(&server, 0), key_of(&server, 1));
        let mut ask = |records: &[Record<'_>]| {
            let sent = alone(datagram(header(token, records.len() as u8), records));
            let replies = server.answer_here(0, here(), &[sent], 0);
            statuses(&read(&replies[0].bytes))
        };
        assert_eq!(ask(&[put(&theirs, 0, b"x")]), [Status::Overloaded]);
        let both = ask(&[put(&mine, 0, b"x"), put(&theirs, 0, b"x")]);
        assert_eq!(both, [Status::Stored, Status::AskAlone]);
        let lie = Record {
            keyhash: SEED.keyhash(&mine),
            ..put(&theirs, 1, b"x")
        };
        assert_eq!(ask(&[lie]), [Status::WrongPartition]);
        let replies = server.answer_here(
            1,
            here(),
            &[alone(datagram(header(token, 1), &[get(&theirs)]))],
            0,
        );
        assert_eq!(statuses(&read(&replies[0].bytes)), [Status::NotFound]);
    }
}

/// What follows the requests of a datagram is no request, whatever it looks like.
#[test]
fn padding_is_handed_over_unread() {
    let mut server = Server::directed(Direction::Server, Access::Erew, 2);
    let token = token(&server);
    let (mine, theirs) = (key_of(&server, 0), key_of(&server, 1));
    let looks_like_a_request = datagram(header(token, 1), &[get(&mine)]);
    let looks_like_a_request = &looks_like_a_request[RequestHeader::BYTES..];
    for padding in [&[0; 60][..], &[0xff; 60], looks_like_a_request] {
        let mut bytes = datagram(header(token, 1), &[get(&theirs)]);
        bytes.extend_from_slice(padding);
        let replies = server.answer(0, here(), &[alone(bytes)], 0);
        assert_eq!(statuses(&read(&replies[0].bytes)), [Status::NotFound]);
    }
}

/// Worker 1 takes values of 500 bytes and more. It does not matter which worker owns them, and
/// whether clients or the server direct requests.
#[test]
fn a_plan_by_size_hands_over_what_is_large() {
    let mut server = Server::new(Access::Crcw, 2);
    let sizes = [0..0, 500..u32::MAX];
    let roles = sizes
        .map(|sizes| Role {
            sizes,
            ..Role::default()
        })
        .to_vec();
    server.plan = Plan::by_size(server.rules.layout, 500, roles);
    let token = token(&server);
    let mut ask = |worker, records: &[Record<'_>]| {
        let sent = alone(datagram(header(token, records.len() as u8), records));
        let replies = server.answer_or_hand_over(worker, here(), &[sent], 0);
        let requests = |server: &Server, worker: usize| server.endpoints[worker].figures().requests;
        let executed = [requests(&server, 0), requests(&server, 1)];
        (statuses(&read(&replies[0].bytes)), executed)
    };
    let (small, large) = ([b's'; 400], [b'l'; 600]);
    let (statuses, before) = ask(0, &[put(b"small", 0, &small)]);
    assert_eq!((&statuses[..], before), (&[Status::Stored][..], [1, 0]));
    let (statuses, executed) = ask(0, &[put(b"large", 1, &large)]);
    assert_eq!((&statuses[..], executed), (&[Status::Stored][..], [1, 1]));
    // The lookup finds out how large a value is.
    let (statuses, executed) = ask(0, &[get(b"large")]);
    assert_eq!((&statuses[..], executed), (&[Status::Found][..], [2, 2]));
    let (statuses, executed) = ask(1, &[get(b"large")]);
    assert_eq!((&statuses[..], executed), (&[Status::Found][..], [2, 4]));
    let (statuses, executed) = ask(0, &[get(b"small")]);
    assert_eq!((&statuses[..], executed), (&[Status::Found][..], [3, 4]));
    // Requests of one datagram do not part. The first decides.
    let (statuses, _) = ask(0, &[get(b"small"), get(b"large")]);
    assert_eq!(statuses, [Status::Found, Status::AskAlone]);
    let (statuses, _) = ask(0, &[put(b"large", 2, &large), put(b"small", 3, &small)]);
    assert_eq!(statuses, [Status::Stored, Status::Stored]);
}

/// Of a read the server believes the partition, and nothing else that the client says of its key.
#[test]
fn a_wrong_keyhash_stores_nothing_and_finds_nothing_elsewhere() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    ask(&mut server, 0, token, &[put(b"k", 0, b"x")]);
    let lie = |bits: u64, record: Record<'static>| Record {
        keyhash: Keyhash(SEED.keyhash(b"k").0 ^ bits),
        ..record
    };
    // The highest bit says which of the two partitions, and the lowest is one of the tag's.
    const PARTITION: u64 = 1 << 63;
    let lies = [
        lie(PARTITION, put(b"k", 1, b"y")),
        lie(1, put(b"k", 2, b"z")),
        lie(PARTITION, get(b"k")),
        lie(1, get(b"k")),
    ];
    let replies = ask(&mut server, 0, token, &lies);
    let wrong = Status::WrongPartition;
    assert_eq!(
        statuses(&replies),
        [wrong, wrong, Status::NotFound, Status::Found]
    );
    let mut rules = server.rules.clone();
    rules.checks_reads = true;
    server.endpoints = NativeEndpoint::of_workers(rules, native::KEPT_BYTES_MAX);
    let asked = [lie(PARTITION, get(b"k")), lie(1, get(b"k")), get(b"k")];
    let replies = ask(&mut server, 0, token, &asked);
    assert_eq!(statuses(&replies), [wrong, wrong, Status::Found]);
}

#[test]
fn an_old_directory_is_noticed() {
    let mut server = Server::new(Access::Erew, 1);
    let old = RequestHeader {
        directory: VERSION - 1,
        ..header(token(&server), 2)
    };
    let sent = alone(datagram(old, &[get(b"k"), put(b"k", 0, b"x")]));
    let replies = server.answer(0, here(), &[sent], 0);
    assert_eq!(
        statuses(&read(&replies[0].bytes)),
        [Status::NewDirectory, Status::NewDirectory]
    );
}

#[test]
fn the_directory_is_told_to_whom_asks_at_length() {
    let mut server = Server::new(Access::Crew, 2);
    let question = RequestHeader {
        kind: Kind::Directory,
        directory: 0,
        ..header(0, 0)
    };
    let mut bytes = question.bytes().to_vec();
    assert_eq!(server.answer(1, here(), &[alone(bytes.clone())], 0), []);
    bytes.resize(REPLY_BYTES_MAX, 0);
    let replies = server.answer(1, here(), &[alone(bytes)], 0);
    assert_eq!(replies.len(), 1);
    let head = ReplyHeader::read(&replies[0].bytes).unwrap();
    assert_eq!((head.kind, head.directory), (Kind::DirectoryReply, VERSION));
    let directory = Directory::read(&replies[0].bytes[ReplyHeader::BYTES..]).unwrap();
    assert_eq!(directory.ports, server.ports);
    assert_eq!(directory.token, token(&server));
    assert_eq!((directory.access, directory.seed), (Access::Crew, SEED));
    assert_eq!(
        usize::from(directory.partitions),
        server.rules.layout.map.partitions()
    );
}

#[test]
fn who_has_not_shown_its_address_is_told_little_and_changes_nothing() {
    let mut server = Server::new(Access::Erew, 1);
    let proven = token(&server);
    let value = vec![b'v'; 900];
    ask(&mut server, 0, proven, &[put(b"k", 0, &value)]);
    let late = 3 * u64::from(NATIVE_TOKEN_S) * 1000;
    for (token, now_ms) in [(0, 0), (proven ^ 1, 0), (proven, late)] {
        for records in [
            &[get(b"k")][..],
            &[get(b"k"), get(b"k")],
            &[put(b"k", 9, b"x")],
        ] {
            let sent = alone(datagram(header(token, records.len() as u8), records));
            let bytes = sent.bytes.len();
            let replies = server.answer(0, here(), &[sent], now_ms);
            assert!(replies[0].bytes.len() <= bytes);
            let replies = read(&replies[0].bytes);
            assert!(
                replies.iter().all(|(status, _)| *status == Status::NoToken),
                "{replies:?}"
            );
        }
    }
    // What is no longer than its question may go to anybody.
    let mut padded = datagram(header(0, 1), &[get(b"k")]);
    padded.resize(1000, 0);
    let replies = server.answer(0, here(), &[alone(padded)], 0);
    assert_eq!(read(&replies[0].bytes), [(Status::Found, value.clone())]);
    let replies = ask(&mut server, 0, proven, &[get(b"k")]);
    assert_eq!(replies, [(Status::Found, value)]);
}

#[test]
fn a_segment_batch_is_answered_by_one_over_it() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    let key = |n: usize| format!("{n:016}").into_bytes();
    let keys: Vec<Vec<u8>> = (0..64).map(key).collect();
    for (n, key) in keys
        .iter()
        .enumerate()
        .filter(|(n, _)| !n.is_multiple_of(3))
    {
        ask(&mut server, 0, token, &[put(key, n as u32, &key[8..])]);
    }
    let segment_bytes = datagram(header(token, 1), &[get(&keys[0])]).len();
    let bytes: Vec<u8> = (keys.iter())
        .flat_map(|key| datagram(header(token, 1), &[get(key)]))
        .collect();
    let replies = server.answer(
        0,
        here(),
        &[Sent {
            bytes,
            segment_bytes,
        }],
        0,
    );
    assert_eq!(replies.len(), 1, "all fit over their requests");
    assert_eq!(replies[0].segment_bytes, segment_bytes);
    let answers: Vec<_> = replies[0].bytes.chunks(segment_bytes).map(read).collect();
    assert_eq!(answers.len(), 64);
    for (n, (answer, key)) in answers.iter().zip(&keys).enumerate() {
        let expected = match n % 3 {
            0 => (Status::NotFound, Vec::new()),
            _ => (Status::Found, key[8..].to_vec()),
        };
        assert_eq!(answer, &[expected]);
    }
}

#[test]
fn longer_replies_go_beside_in_segment_batches_of_like_length() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    let keys: Vec<Vec<u8>> = (0..40).map(|n| format!("{n:016}").into_bytes()).collect();
    let value = |n: usize| vec![n as u8; if n.is_multiple_of(2) { 500 } else { 1000 }];
    for (n, key) in keys.iter().enumerate() {
        ask(&mut server, 0, token, &[put(key, n as u32, &value(n))]);
    }
    let segment_batches: Vec<Sent> = (keys.iter())
        .map(|key| alone(datagram(header(token, 1), &[get(key)])))
        .collect();
    // Separate datagrams of one client, as many as arrive with one call.
    let replies = server.answer(0, here(), &segment_batches[..32], 0);
    let mut values: Vec<Vec<u8>> = (replies.iter())
        .flat_map(|one| one.bytes.chunks(one.segment_bytes))
        .map(|reply| read(reply).remove(0).1)
        .collect();
    values.sort();
    let mut expected: Vec<Vec<u8>> = (0..32).map(value).collect();
    expected.sort();
    assert_eq!(values, expected);
    assert!(replies.iter().all(|one| one.segment_bytes < 1200));
}

#[test]
fn what_does_not_fit_beside_others_is_to_be_asked_alone() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    let long = vec![b'x'; 1000];
    ask(&mut server, 0, token, &[put(b"long", 0, &long)]);
    let replies = ask(
        &mut server,
        0,
        token,
        &[get(b"long"), get(b"long"), get(b"none"), get(b"long")],
    );
    assert_eq!(
        statuses(&replies),
        [
            Status::Found,
            Status::AskAlone,
            Status::NotFound,
            Status::AskAlone
        ]
    );
}

#[test]
fn an_item_that_is_longer_than_a_datagram_comes_and_goes_in_fragments() {
    let mut server = Server::new(Access::Erew, 1);
    let token = token(&server);
    let value: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    let mut message = Vec::new();
    put(b"large", 0, &value).write(&mut message);
    let digest = glimmer_proto::native::fragment::digest(&message);
    let fragment = |offset: usize, count: u8| {
        let head = RequestHeader {
            kind: Kind::Fragment,
            ..header(token, count)
        };
        let mut bytes = head.bytes().to_vec();
        glimmer_proto::native::Fragment::of(&message, digest, offset).write(&mut bytes);
        alone(bytes)
    };
    let offsets: Vec<usize> = (0..message.len()).step_by(DATA_BYTES).collect();
    let (&last, before) = offsets.split_last().unwrap();
    for (index, &offset) in before.iter().enumerate() {
        assert_eq!(server.answer(0, here(), &[fragment(offset, 0)], 0), []);
        if index == 3 {
            let replies = server.answer(0, here(), &[fragment(offset, 1)], 0);
            let head = ReplyHeader::read(&replies[0].bytes).unwrap();
            assert_eq!(head.kind, Kind::Progress);
            let next = replies[0].bytes[ReplyHeader::BYTES..]
                .first_chunk()
                .unwrap();
            assert_eq!(u32::from_le_bytes(*next) as usize, offset + DATA_BYTES);
        }
    }
    let replies = server.answer(0, here(), &[fragment(last, 1)], 0);
    assert_eq!(statuses(&read(&replies[0].bytes)), [Status::Stored]);

    let mut assembly = None;
    let mut offset = 0;
    let reply = loop {
        let action = match offset {
            0 => Action::Get,
            offset => Action::Read { offset },
        };
        let record = Record {
            action,
            ..get(b"large")
        };
        let sent = alone(datagram(header(token, 1), &[record]));
        let replies = server.answer(0, here(), &[sent], 0);
        assert_eq!(replies.len(), 1, "a window is one segment batch");
        for datagram in replies[0].bytes.chunks(replies[0].segment_bytes) {
            let head = ReplyHeader::read(datagram).unwrap();
            assert_eq!(head.kind, Kind::FragmentReply);
            let fragment = &datagram[ReplyHeader::BYTES..];
            let fragment = glimmer_proto::native::Fragment::read(fragment).unwrap();
            let assembly = assembly
                .get_or_insert_with(|| glimmer_proto::native::fragment::Assembly::new(&fragment));
            assembly.join(&fragment);
        }
        let done = assembly.as_ref().unwrap();
        if done.bytes().len() == done.message_bytes() {
            break done.bytes().to_vec();
        }
        offset = done.next();
    };
    let (reply, _) = Reply::read(&reply).unwrap();
    assert_eq!((reply.status, reply.value), (Status::Found, &value[..]));
}
