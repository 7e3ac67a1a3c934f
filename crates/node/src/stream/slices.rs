//! How much large work a worker does before it looks at small work again.
//!
//! A worker serves one thing after another, so a small request waits for the large copy, receive or
//! send that is going on. Where small requests come, large work is therefore cut into *slices*: a
//! turn copies, receives and sends [`LARGE_SLICE_BYTES`] of large requests and replies, and the
//! next turn looks at small requests first. Where none come, large work is done in one piece, which
//! costs fewer system calls and no copy.

use glimmer_base::limits::{LARGE_SLICE_BYTES, SMALL_WORK_MS};
use slotmap::Key;

use super::key::ConnectionKey;

/// Who has sent small requests of late, and what is left of the turn's slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    /// The connection whose small requests were served last, and when, in milliseconds since the
    /// epoch.
    latest: (ConnectionKey, u64),
    /// The same for the last connection that is another one.
    other: (ConnectionKey, u64),
    /// When a datagram or another worker brought requests.
    apart_ms: u64,
    /// Bytes of large work that are left of this turn's slice.
    left: usize,
}

impl Slices {
    /// No small request has come yet.
    pub fn new() -> Slices {
        Slices {
            latest: (ConnectionKey::null(), 0),
            other: (ConnectionKey::null(), 0),
            apart_ms: 0,
            left: LARGE_SLICE_BYTES,
        }
    }

    /// Begins a turn, which has a slice of its own.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.left = LARGE_SLICE_BYTES;
    }

    /// Notes that small requests of a connection were served.
    #[inline]
    pub fn note_small(&mut self, key: ConnectionKey, now_ms: u64) {
        if self.latest.0 != key {
            self.other = self.latest;
            self.latest.0 = key;
        }
        self.latest.1 = now_ms;
    }

    /// Notes that requests were served that came by a datagram or from another worker.
    #[inline]
    pub fn note_apart(&mut self, now_ms: u64) {
        self.apart_ms = now_ms;
    }

    /// Whether a connection's large work is cut into slices: small requests of others have come of
    /// late.
    pub fn cuts(&self, key: ConnectionKey, now_ms: u64) -> bool {
        let beside = match self.latest.0 == key {
            true => self.other.1,
            false => self.latest.1,
        };
        now_ms.saturating_sub(beside.max(self.apart_ms)) < SMALL_WORK_MS
    }

    /// Bytes of large work that may be done for a connection now.
    pub fn share(&self, key: ConnectionKey, now_ms: u64) -> usize {
        match self.cuts(key, now_ms) {
            true => self.left,
            false => usize::MAX,
        }
    }

    /// Notes that large work was done.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
