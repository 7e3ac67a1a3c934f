//! Lifetimes in milliseconds, in turns that take longer.

mod support;

use std::sync::atomic::Ordering;

use glimmer_base::limits::{BATCH_MAX, CLOCK_REQUESTS, TURN_REQUESTS_MAX};
use glimmer_server::config::AccessMode;
use glimmer_transport::stream::{ByteStream, LocalStream};
use glimmer_transport::{Received, Sent};
use support::Rig;

const CONNECTIONS: usize = 30;
const LIFETIME_MS: u64 = 5;

/// Appends what has arrived.
fn receive(stream: &mut LocalStream, replies: &mut Vec<u8>) {
    loop {
        replies.reserve(64 << 10);
        if !matches!(stream.receive(replies), Received::Full(_)) {
            return;
        }
    }
}

/// All connections ask together, so that a turn executes thousands of requests while the clock goes
/// on. A turn that took its beginning for the present would show the item to all of them.
fn expires_within_a_turn(access: AccessMode, workers: usize, key: &str) {
    let mut rig = Rig::new(access, workers);
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| rig.connect(64 << 10)).collect();
    while rig.turn() {}
    let asked = TURN_REQUESTS_MAX as usize - 1;
    let reads = format!("mg {key} t m\r\n").repeat(asked);
    let store = format!("ms {key} 1 T{LIFETIME_MS} m\r\nx\r\n");
    assert_eq!(streams[0].send(store.as_bytes()), Sent::All);
    for stream in &mut streams {
        assert_eq!(stream.send(reads.as_bytes()), Sent::All);
    }
    rig.clock.1.store(1, Ordering::Relaxed);
    let mut replies = vec![Vec::new(); CONNECTIONS];
    while rig.turn() {
        for (stream, replies) in streams.iter_mut().zip(&mut replies) {
            receive(stream, replies);
        }
    }
    let replies: Vec<String> = replies
        .into_iter()
        .map(|it| String::from_utf8(it).unwrap())
        .collect();
    let lines: Vec<&str> = replies.iter().flat_map(|it| it.lines()).collect();
    assert_eq!(lines.len(), 1 + CONNECTIONS * asked);
    let (stored, read) = lines.split_first().unwrap();
    assert_eq!(*stored, "HD");
    let left_ms = |line: &&str| line.strip_prefix("HD t").map(|left| left.parse().unwrap());
    let left_ms: Vec<u64> = read.iter().filter_map(left_ms).collect();
    let misses = read.iter().filter(|line| **line == "EN").count();
    assert_eq!(left_ms.len() + misses, read.len());
    assert!(left_ms.iter().all(|left| (1..=LIFETIME_MS).contains(left)));
    // A batch that begins just before the clock is due is executed by the time before.
    let by_one_reading = CLOCK_REQUESTS as usize - 1 + BATCH_MAX;
    let (hits, hits_max) = (left_ms.len(), LIFETIME_MS as usize * by_one_reading);
    assert!(
        hits <= hits_max,
        "{hits} hits with {workers} workers, {key}"
    );
}

#[test]
fn an_item_expires_in_the_middle_of_a_turn() {
    for key in ["a", "b", "c"] {
        expires_within_a_turn(AccessMode::Crcw, 1, key);
        // One of two workers executes what the other one forwards.
        expires_within_a_turn(AccessMode::Erew, 2, key);
    }
}
