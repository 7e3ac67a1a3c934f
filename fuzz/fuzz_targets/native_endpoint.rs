#![no_main]
//! A client with a validated address sends native datagrams to a worker, each of them twice. The
//! worker answers the duplicates again.

#[path = "../../crates/node/tests/all/support/native.rs"]
mod native;

use glimmer_proto::native::directory::Access;
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Record, RequestHeader};
use native::{SEED, Sent, Server, VERSION, moment};
use std::net::SocketAddr;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let client = SocketAddr::from(([127, 0, 0, 1], 9000));
    let mut server = Server::new(Access::Crew, 1);
    let token = server.rules.token_key.token(&client, moment(0).ms);
    let mut rest = data;
    // Two bytes say how long the next one is.
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (datagram, behind) = behind.split_at(length);
        rest = behind;
        let bytes = made_acceptable(datagram, token);
        let sent = Sent {
            segment_bytes: bytes.len().max(1),
            bytes,
        };
        for _ in 0..2 {
            for reply in server.answer(0, client, std::slice::from_ref(&sent), 0) {
                assert!(reply.segment_bytes <= DATAGRAM_BYTES_MAX && !reply.bytes.is_empty());
            }
        }
    }
});

/// What no mutation would find: magic, version, directory, token, and the hash of each key.
fn made_acceptable(datagram: &[u8], token: u64) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    if bytes.len() < RequestHeader::BYTES {
        return bytes;
    }
    bytes[..2].copy_from_slice(&[glimmer_proto::native::MAGIC, glimmer_proto::native::VERSION]);
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[24..RequestHeader::BYTES].copy_from_slice(&token.to_le_bytes());
    let mut at = RequestHeader::BYTES;
    while let Some((record, length)) = Record::read(&bytes[at..]) {
        let keyhash = SEED.keyhash(record.key);
        bytes[at + 8..at + 16].copy_from_slice(&keyhash.0.to_le_bytes());
        at += length;
    }
    bytes
}
