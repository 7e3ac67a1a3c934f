//! Values that are longer than a datagram: what a server copies and hashes to send them.

use crate::native::{Sent, Server};
use crate::requests::{alone, datagram, get, header, here, put, read, statuses, token};
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::fragment::{Assembly, DATA_BYTES, HEAD_BYTES, Joined, digest};
use glimmer_proto::native::reply::Long;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{Fragment, Kind, Record, Reply, ReplyHeader, RequestHeader, Status};

const BYTES: usize = 60_000;

fn value(seed: u32) -> Vec<u8> {
    (0..BYTES as u32)
        .map(|n| (n.wrapping_mul(seed) >> 8) as u8)
        .collect()
}

/// Stores a value that is longer than a datagram.
fn store(server: &mut Server, key: &[u8], mutation: u32, value: &[u8]) {
    let token = token(server);
    let mut message = Vec::new();
    put(key, mutation, value).write(&mut message);
    let digest = digest(&message);
    let fragments = (0..message.len()).step_by(DATA_BYTES).map(|offset| {
        let head = RequestHeader {
            kind: Kind::Fragment,
            sequence: mutation,
            ..header(token, 1)
        };
        let mut bytes = head.bytes().to_vec();
        Fragment::of(&message, digest, offset).write(&mut bytes);
        alone(bytes)
    });
    let mut last = None;
    for fragment in fragments {
        last = server.answer(0, here(), &[fragment], 0).pop();
    }
    let last = last.expect("each fragment is answered").bytes;
    let (reply, _) = Reply::read(&last[ReplyHeader::BYTES..]).expect("the last with a reply");
    assert_eq!(reply.status, Status::Stored);
}

/// One window of a long reply.
fn window(server: &mut Server, record: &Record<'_>) -> Vec<Sent> {
    let token = token(server);
    let sent = alone(datagram(header(token, 1), std::slice::from_ref(record)));
    let segment_batches = server.answer(0, here(), &[sent], 0);
    let fragments = segment_batches.iter().flat_map(|segment_batch| {
        let datagrams = segment_batch.bytes.chunks(segment_batch.segment_bytes);
        datagrams.map(|bytes| alone(bytes.to_vec()))
    });
    fragments.collect()
}

fn fragment_of(sent: &Sent) -> Fragment<'_> {
    Fragment::read(&sent.bytes[ReplyHeader::BYTES..]).expect("a fragment")
}

fn read_at(key: &[u8], offset: usize) -> Record<'_> {
    Record {
        action: Action::Read {
            offset: offset as u32,
        },
        ..get(key)
    }
}

/// Reads a long value, a window at a time.
fn fetch(server: &mut Server, key: &[u8]) -> Vec<u8> {
    let first = window(server, &get(key));
    let mut assembly = Assembly::new(&fragment_of(&first[0]));
    let mut fragments = first;
    loop {
        for sent in &fragments {
            assert_eq!(
                sent.bytes
                    .len()
                    .min(ReplyHeader::BYTES + HEAD_BYTES + DATA_BYTES),
                sent.bytes.len()
            );
            match assembly.join(&fragment_of(sent)) {
                Joined::Complete => {
                    let (reply, _) = Reply::read(assembly.bytes()).unwrap();
                    assert_eq!(reply.status, Status::Found);
                    return reply.value.to_vec();
                }
                joined => assert_eq!(joined, Joined::More),
            }
        }
        fragments = window(server, &read_at(key, assembly.next() as usize));
    }
}

#[test]
fn a_long_value_is_hashed_once_and_each_window_copied_once() {
    for access in [Access::Erew, Access::Crew, Access::Crcw] {
        let mut server = Server::new(access, 1);
        store(&mut server, b"large", 1, &value(7));
        let before = server.endpoints[0].figures();
        for _ in 0..10 {
            assert_eq!(fetch(&mut server, b"large"), value(7));
        }
        let after = server.endpoints[0].figures();
        assert_eq!(after.hashed - before.hashed, 1);
        let written = (after.written - before.written) as usize;
        // Ten times what was sent, and once all of it for its hash.
        let bound = 11 * (BYTES + 100 * Long::HEAD_BYTES);
        assert!(written <= bound, "{written} of {bound} bytes");
    }
}

/// Reads that were counted as hits.
fn hits(server: &Server) -> u64 {
    server.engines[0].figures().table().requests.get_hits
}

#[test]
fn a_read_in_many_windows_is_one_hit() {
    for access in [Access::Erew, Access::Crew, Access::Crcw] {
        let mut server = Server::new(access, 1);
        store(&mut server, b"large", 1, &value(7));
        // The first has the value hashed.
        for read in 1..=3 {
            assert_eq!(fetch(&mut server, b"large"), value(7));
            assert_eq!(hits(&server), read);
        }
        // Not one that is refused, as its client asks again.
        let proven = token(&server);
        for (token, records) in [
            (0, &[get(b"large")][..]),
            (0, &[get(b"none"), get(b"large")]),
            (proven, &[get(b"large"), get(b"large")]),
        ] {
            let sent = alone(datagram(header(token, records.len() as u8), records));
            server.answer(0, here(), &[sent], 0);
            assert_eq!(hits(&server), 3);
        }
    }
}

#[test]
fn a_long_reply_that_may_not_be_sent_is_not_copied() {
    let mut server = Server::new(Access::Erew, 1);
    store(&mut server, b"large", 1, &value(7));
    let proven = token(&server);
    let before = server.endpoints[0].figures();
    let mut ask = |token, records: &[Record<'_>]| {
        let sent = alone(datagram(header(token, records.len() as u8), records));
        let replies = server.answer(0, here(), &[sent], 0);
        statuses(&read(&replies[0].bytes))
    };
    assert_eq!(ask(0, &[get(b"large")]), [Status::NoToken]);
    assert_eq!(ask(0, &[read_at(b"large", 40_000)]), [Status::NoToken]);
    assert_eq!(
        ask(0, &[get(b"none"), get(b"large")]),
        [Status::NotFound, Status::NoToken]
    );
    assert_eq!(
        ask(proven, &[get(b"large"), get(b"none"), get(b"large")]),
        [Status::AskAlone, Status::NotFound, Status::AskAlone]
    );
    let after = server.endpoints[0].figures();
    assert_eq!(after.hashed, before.hashed);
    let written = after.written - before.written;
    assert!(written < 200, "{written} bytes for refusals");
}

#[test]
fn windows_of_different_values_do_not_go_together() {
    let mut server = Server::new(Access::Erew, 1);
    store(&mut server, b"large", 1, &value(7));
    let old = window(&mut server, &get(b"large"));
    store(&mut server, b"large", 2, &value(9));
    let next = read_at(b"large", old.len() * DATA_BYTES);
    let new = window(&mut server, &next);
    assert_ne!(fragment_of(&old[0]).digest, fragment_of(&new[0]).digest);
    assert_eq!(fragment_of(&new[0]).offset as usize, old.len() * DATA_BYTES);
    assert_eq!(fetch(&mut server, b"large"), value(9));
    // A reply that has become shorter than the offset begins again.
    store(&mut server, b"large", 3, &value(9)[..10_000]);
    let shorter = window(&mut server, &next);
    assert_eq!(fragment_of(&shorter[0]).offset, 0);
    assert_eq!(fetch(&mut server, b"large"), &value(9)[..10_000]);
}

/// Each form of the reply has its own digest, and the fields in front of the value are right.
#[test]
fn a_long_reply_shows_its_unique_if_it_is_asked_to() {
    let mut server = Server::new(Access::Erew, 1);
    store(&mut server, b"large", 1, &value(7));
    assert_eq!(fetch(&mut server, b"large"), value(7));
    let shown = |record: Record<'static>| Record {
        shows_cas: true,
        ..record
    };
    let first = window(&mut server, &shown(get(b"large")));
    let mut assembly = Assembly::new(&fragment_of(&first[0]));
    let rest = window(
        &mut server,
        &shown(read_at(b"large", first.len() * DATA_BYTES)),
    );
    let joined = first
        .iter()
        .chain(&rest)
        .map(|sent| assembly.join(&fragment_of(sent)));
    assert_eq!(joined.last(), Some(Joined::Complete));
    let (reply, _) = Reply::read(assembly.bytes()).unwrap();
    assert!(reply.cas.is_some_and(|cas| cas > 0));
    assert_eq!(reply.value, value(7));
}

/// Long replies leave no room for the request before a fragment, so that it is read again. The
/// fragment, which completes a store, is not.
#[test]
fn a_fragment_behind_a_request_that_waits_is_read_once() {
    const SEGMENT: usize = 1_400;
    let of = |sequence: u32, kind: Kind, token: u64| RequestHeader {
        kind,
        sequence,
        ..header(token, 1)
    };
    for reads in 0..PACKET_BATCH_MAX as u32 {
        let mut server = Server::new(Access::Erew, 1);
        store(&mut server, b"large", 1, &value(7));
        let token = token(&server);
        let mut message = Vec::new();
        put(b"new", 2, &[b'x'; 2_000]).write(&mut message);
        let fragment = |offset: usize| {
            let mut bytes = of(901, Kind::Fragment, token).bytes().to_vec();
            Fragment::of(&message, digest(&message), offset).write(&mut bytes);
            bytes
        };
        server.answer(0, here(), &[alone(fragment(0))], 0);
        let read =
            |sequence: u32, key: &[u8]| datagram(of(sequence, Kind::Requests, token), &[get(key)]);
        let mut together = read(900, b"small");
        together.resize(SEGMENT, 0);
        together.extend(fragment(DATA_BYTES));
        let reads = (1..=reads).map(|sequence| alone(read(sequence, b"large")));
        let together = Sent {
            bytes: together,
            segment_bytes: SEGMENT,
        };
        let sent: Vec<Sent> = reads.chain([together]).collect();
        let answers = server.answer(0, here(), &sent, 0);
        let answers = answers
            .iter()
            .flat_map(|sent| sent.bytes.chunks(sent.segment_bytes));
        let mut statuses = Vec::new();
        for bytes in answers {
            let head = ReplyHeader::read(bytes).unwrap();
            if head.sequence >= 900 {
                assert_eq!(head.kind, Kind::Replies);
                let (reply, _) = Reply::read(&bytes[ReplyHeader::BYTES..]).unwrap();
                statuses.push((head.sequence, reply.status));
            }
        }
        statuses.sort_unstable_by_key(|&(sequence, _)| sequence);
        assert_eq!(statuses, [(900, Status::NotFound), (901, Status::Stored)]);
    }
}
