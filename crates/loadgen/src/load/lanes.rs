//! Which requests a thread sends, and on which of its connections.

use std::ops::Range;

use super::by_size::LARGE_FROM;
use crate::workload::{Ask, key_part};

/// Requests that a thread draws for others before it looks after its connections again.
pub const DRAWN_MAX: u32 = 1024;

/// The requests of a thread and their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// All requests, on any connection.
    Mixed,
    /// All requests. Those of large values take the connections from this one on, the others those
    /// before it.
    Apart(usize),
    /// Only the requests of large values, on any connection.
    Large,
    /// Only the others, on any connection.
    Small,
}

fn is_large(ask: &Ask) -> bool {
    ask.value_bytes >= LARGE_FROM
}

/// The connection, out of these, of all requests of one key. The key's thread does not tell it.
#[inline]
pub fn connection_of(ask: &Ask, connections: Range<usize>) -> usize {
    let number = ask.keys[0].number().rotate_left(32);
    connections.start + key_part(number, connections.len() as u64) as usize
}

/// The keys of one of several threads that each draw all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The thread's index.
    pub part: u64,
    /// The number of these threads.
    pub parts: u64,
}

impl KeyPart {
    /// All keys.
    pub const ALL: KeyPart = KeyPart { part: 0, parts: 1 };

    /// Whether the thread sends this request.
    #[inline]
    pub fn takes(self, ask: &Ask) -> bool {
        self.parts == 1 || key_part(ask.keys[0].number(), self.parts) == self.part
    }
}

impl Lanes {
    /// Whether the thread sends this request.
    #[inline]
    pub fn takes(self, ask: &Ask) -> bool {
        match self {
            Lanes::Mixed | Lanes::Apart(_) => true,
            Lanes::Large => is_large(ask),
            Lanes::Small => !is_large(ask),
        }
    }

    /// The connections, out of `links`, on one of which a request is sent.
    #[inline]
    pub fn connections(self, ask: &Ask, links: usize) -> Range<usize> {
        match self {
            Lanes::Apart(first) if is_large(ask) => first..links,
            Lanes::Apart(first) => 0..first,
            Lanes::Mixed | Lanes::Large | Lanes::Small => 0..links,
        }
    }
}
