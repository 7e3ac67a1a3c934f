//! Clients that have yet to authenticate, and send large values.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Admin, Habits, config, engines};
use glimmer_base::limits::BUFFER_BYTES;
use glimmer_node::{Devices, DrivenNode, Rest};
use glimmer_proto::Accepts;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// What each stranger sends of its value.
const SENT_BYTES: usize = 900 << 10;
const STRANGERS: u64 = 12;

/// A worker that wants to know who its clients are.
fn locked(accepts: Accepts) -> (DrivenNode, LocalListener) {
    let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
    let mut config = config();
    (config.locked, config.accepts, config.buffer_bytes) = (true, accepts, 16 << 20);
    let devices = vec![Devices {
        listeners: vec![(Box::new(listener.clone()), accepts)],
        ..Devices::default()
    }];
    let engines = engines(1, Habits::EREW);
    let node = DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap();
    (node, listener)
}

/// Sends bytes until all of them are taken or the connection is closed, and returns the replies.
fn send(node: &mut DrivenNode, stream: &mut LocalStream, mut bytes: &[u8]) -> Vec<u8> {
    let mut replies = Vec::new();
    loop {
        replies.reserve(4096);
        match stream.send(bytes) {
            Sent::All => bytes = &[],
            Sent::Part(count) => bytes = &bytes[count..],
            Sent::Failed => bytes = &[],
        }
        let worker = &mut node.workers[0];
        let mut is_idle = !(worker.rest() == Rest::Busy || worker.is_called());
        worker.turn();
        match stream.receive(&mut replies) {
            Received::Drained(0) => {}
            Received::Drained(_) => is_idle = false,
            _ => return replies,
        }
        if is_idle && bytes.is_empty() && !stream.ready().readable {
            return replies;
        }
    }
}

/// Whatever strangers send, each holds an ordinary buffer at most, and the value of a client that
/// is served beside them has all the memory there is.
#[test]
fn strangers_hold_no_part_of_a_value() {
    let resp = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 1_000_000).into_bytes();
    let mut binary = vec![0; 24 + 8 + 1];
    (binary[0], binary[1], binary[3], binary[4]) = (0x80, 1, 1, 8);
    binary[8..12].copy_from_slice(&1_000_009_u32.to_be_bytes());
    let text = b"set k 0 0 1000000\r\n".to_vec();
    for (accepts, head, refusal) in [
        (Accepts::Resp, resp, &b"-NOAUTH"[..]),
        (Accepts::Binary, binary, b"\x81\x01"),
        (Accepts::Text, text, b"CLIENT_ERROR"),
    ] {
        let (mut node, listener) = locked(accepts);
        let figures = node.figures();
        let strangers: Vec<_> = (0..STRANGERS)
            .map(|seed| {
                let address = SocketAddr::from(([10, 0, 0, 2], 1));
                let mut stream = listener.connect(address, StreamFaults::default(), seed);
                let value = [&head[..], &vec![b'v'; SENT_BYTES]].concat();
                let replies = send(&mut node, &mut stream, &value);
                // A connection that is closed while more arrives may lose what it was told.
                let is_lost = replies.is_empty() && stream.ready().hung_up;
                let says = String::from_utf8_lossy(&replies);
                assert!(
                    is_lost || replies.starts_with(refusal),
                    "{accepts}: {says:?}"
                );
                stream
            })
            .collect();
        let tally = figures.tallies()[0];
        let held_bytes = (tally.buffer_bytes - tally.buffer_bytes_free) as usize;
        let most = strangers.len() * BUFFER_BYTES;
        assert!(held_bytes <= most, "{accepts}: {held_bytes} bytes are held");
    }
}
