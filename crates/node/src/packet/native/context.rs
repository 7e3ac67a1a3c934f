//! A datagram that is being answered, and its sender.

use glimmer_proto::native::{Extent, Wanted};
use std::net::SocketAddr;

/// A datagram that is being answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    /// What its answer repeats.
    pub sequence: u32,
    pub timestamp: u32,
    /// The segment batch that it came with, and where in it.
    pub spot: Position,
    /// Its bytes.
    pub bytes: u32,
    /// Its client has shown that it owns its address.
    pub is_proven: bool,
    /// Requests that it has, of those of the batch.
    pub entries: u8,
}

/// Where a datagram lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub segment_batch: u32,
    pub offset: u32,
}

impl Position {
    /// The number of the segment batch that it came with.
    #[inline(always)]
    pub fn segment_batch(self) -> usize {
        self.segment_batch as usize
    }
}

/// By whom a request was sent, and in knowledge of what.
#[derive(Clone, Copy)]
pub struct Sender<'p> {
    pub peer: &'p SocketAddr,
    pub client: u64,
    pub directory: u32,
    pub is_proven: bool,
    /// Requests of its datagram; 0 if it came in fragments.
    pub requests: u8,
    /// Bytes of a reply that leaves room for the others in the datagram, and is not longer than
    /// the client may be sent.
    pub short_bytes_max: u32,
}

impl Sender<'_> {
    /// How much is wanted of the reply to a read. A long one goes to a client that has shown its
    /// address and asked for nothing else; all others are told so, and nothing is copied for them.
    #[inline(always)]
    pub fn extent(&self, offset: u32) -> Extent {
        let may_be_long = self.is_proven && self.requests <= 1;
        Extent {
            short_bytes_max: self.short_bytes_max,
            long: match may_be_long {
                true => Wanted::Window(offset),
                false => Wanted::Nothing,
            },
        }
    }
}
