//! The common part of slow clients: they send most of a message at once and then a byte per second,
//! or receive that slowly.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Case, Crowd, Subject, TextClient, manners::PATIENCE};

/// Pause between two rounds over all clients.
const PAUSE: Duration = Duration::from_millis(100);
/// Receive buffer of a slow reader in bytes.
pub(super) const RECEIVE_BYTES: usize = 4096;
/// The item that slow readers request.
const KEY: &str = "glimmer-abuse-large";
/// The replies to a slow reader have at least this many bytes in total: more than socket buffers
/// hold.
const ASKED_BYTES: usize = 8 << 20;
/// A slow sender sends at most this many bytes of its value at once.
const SENT_BYTES_MAX: usize = 200_000;
/// For values of up to 16 KB, a slow sender sends this many bytes at once: more than is cheap to
/// keep, and less than half of an ordinary buffer.
const SENT_BYTES_SMALL: usize = 2_100;

/// The message of a slow client.
pub(super) struct Speech {
    words: Vec<u8>,
    /// Bytes that it sends at once. The others follow, one per second.
    at_once: usize,
}

/// Sends a part of a value.
pub(super) fn sender(value_bytes: usize) -> Speech {
    let mut words = format!("set glimmer-abuse-never 0 0 {value_bytes}\r\n").into_bytes();
    let part = match value_bytes {
        ..=16_384 => SENT_BYTES_SMALL.min(value_bytes / 2),
        _ => SENT_BYTES_MAX.min(value_bytes / 4 * 3),
    };
    let at_once = words.len() + part;
    words.resize(words.len() + value_bytes, b'x');
    Speech { words, at_once }
}

/// Requests a large item more often than socket buffers can hold, and reads a byte per second.
pub(super) fn reader(value_bytes: usize) -> Speech {
    let ask = format!("get {KEY}\r\n");
    let words = ask
        .repeat(ASKED_BYTES.div_ceil(value_bytes.max(1)) + 1)
        .into_bytes();
    let at_once = words.len() - ask.len();
    Speech { words, at_once }
}

/// Stores the item that slow readers request.
pub(super) fn store(subject: &Subject, case: &Case) -> Result<()> {
    let mut client = TextClient::connect(subject.address(), PATIENCE)?;
    client.set(KEY, &vec![b'x'; case.value_bytes])
}

/// Lets every client send its message. A client whose connection the server closes connects again
/// and starts over.
pub(super) fn drive<'a>(
    crowd: &mut Crowd,
    speech_of: impl Fn(usize) -> &'a Speech,
    stop: &AtomicBool,
) -> Result<String> {
    let begin = Instant::now();
    while !stop.load(Relaxed) {
        let seconds = begin.elapsed().as_secs() as usize;
        for number in 0..crowd.len() {
            if stop.load(Relaxed) {
                break;
            }
            let Speech { words, at_once } = speech_of(number);
            let end = (at_once + seconds).min(words.len() - 1);
            crowd.say(number, &words[..end])?;
            if crowd.taken(number) <= seconds {
                crowd.take(number, &mut [0]);
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(crowd.notes())
}

/// Every combination of memory, connections and value sizes, or a representative one.
pub(super) fn cases(every: bool, value_bytes: &[usize]) -> Vec<Case> {
    let first = Case {
        memory_mib: 64,
        connections: 1000,
        value_bytes: value_bytes[0],
        ..Case::default()
    };
    let mut cases = vec![first];
    if !every {
        return cases;
    }
    for memory_mib in [64, 1024] {
        for connections in [100, 1000, 10_000] {
            for &value_bytes in value_bytes {
                let case = Case {
                    memory_mib,
                    connections,
                    value_bytes,
                    ..Case::default()
                };
                if !cases.contains(&case) {
                    cases.push(case);
                }
            }
        }
    }
    cases
}
