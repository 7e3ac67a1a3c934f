//! Requests of a native client, and what they are answered by a server without sockets.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;

use glimmer_proto::StoreMode;
use glimmer_proto::native::request::{Action, Change, Exptime};
use glimmer_proto::native::{Kind, Reach, Record, Reply, ReplyHeader, RequestHeader, Status};

use crate::native::{SEED, Sent, Server, VERSION, moment};

pub fn here() -> SocketAddr {
    "127.0.0.1:9000".parse().unwrap()
}

pub fn token(server: &Server) -> u64 {
    server.rules.token_key.token(&here(), moment(0).ms)
}

pub fn header(token: u64, count: u8) -> RequestHeader {
    RequestHeader {
        kind: Kind::Requests,
        count,
        directory: VERSION,
        sequence: 77,
        timestamp: 5,
        client: 1,
        token,
    }
}

pub fn get(key: &[u8]) -> Record<'_> {
    Record {
        action: Action::Get,
        keyhash: SEED.keyhash(key),
        key,
        shows_cas: false,
    }
}

pub fn put<'a>(key: &'a [u8], mutation: u32, value: &'a [u8]) -> Record<'a> {
    let change = Change::Store {
        mode: StoreMode::Set,
        expiry: Exptime::NEVER,
        flags: 0,
        value,
    };
    mutate(key, mutation, change)
}

pub fn increment(key: &[u8], mutation: u32) -> Record<'_> {
    mutate(key, mutation, Change::Increment { delta: 1 })
}

fn mutate<'a>(key: &'a [u8], mutation: u32, change: Change<'a>) -> Record<'a> {
    Record {
        action: Action::Mutate {
            mutation,
            reach: Reach::UNKNOWN,
            change,
        },
        ..get(key)
    }
}

pub fn datagram(header: RequestHeader, records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = header.bytes().to_vec();
    records.iter().for_each(|record| record.write(&mut bytes));
    bytes
}

pub fn alone(bytes: Vec<u8>) -> Sent {
    Sent {
        segment_bytes: bytes.len(),
        bytes,
    }
}

pub fn owner(server: &Server, key: &[u8]) -> usize {
    server.rules.layout.map.owner(SEED.keyhash(key))
}

/// A key of a worker's.
pub fn key_of(server: &Server, worker: usize) -> Vec<u8> {
    let keys = (0..).map(|n| format!("key {n}").into_bytes());
    keys.into_iter()
        .find(|key| owner(server, key) == worker)
        .unwrap()
}

/// What the records of one datagram are answered.
pub fn ask(
    server: &mut Server,
    worker: usize,
    token: u64,
    records: &[Record<'_>],
) -> Vec<(Status, Vec<u8>)> {
    let sent = alone(datagram(header(token, records.len() as u8), records));
    let replies = server.answer(worker, here(), &[sent], 0);
    assert_eq!(replies.len(), 1, "one datagram is answered by one");
    read(&replies[0].bytes)
}

pub fn read(datagram: &[u8]) -> Vec<(Status, Vec<u8>)> {
    let header = ReplyHeader::read(datagram).unwrap();
    assert_eq!(
        (
            header.kind,
            header.sequence,
            header.timestamp,
            header.directory
        ),
        (Kind::Replies, 77, 5, VERSION)
    );
    let mut rest = &datagram[ReplyHeader::BYTES..];
    let mut replies = Vec::new();
    for _ in 0..header.count {
        let (reply, bytes) = Reply::read(rest).unwrap();
        replies.push((reply.status, reply.value.to_vec()));
        rest = &rest[bytes..];
    }
    replies
}

pub fn statuses(replies: &[(Status, Vec<u8>)]) -> Vec<Status> {
    replies.iter().map(|(status, _)| *status).collect()
}
