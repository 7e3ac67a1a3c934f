//! Which connection is served next.

use std::collections::VecDeque;

use glimmer_base::limits::LARGE_REPLY_BYTES;

use crate::stream::key::ConnectionKey;

/// Connections to be served, each lane in the order in which its connections became ready.
///
/// A connection that was sent large replies in its last burst, or that has announced a large value,
/// waits in a queue of its own, of which a turn serves a bounded number of bytes. The other
/// connections therefore wait for that many bytes at most, however many clients read or store large
/// values.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// By [`Lane`].
    queues: [VecDeque<ConnectionKey>; 2],
}

/// How much one request of a connection asks of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Fewer than [`LARGE_REPLY_BYTES`] bytes were sent to it in its last burst, and it has not
    /// announced that many.
    Small,
    /// All others.
    Large,
}

impl Lane {
    /// The lane of a connection that is sent, or sends, this many bytes at a time.
    #[inline]
    pub fn of(bytes: usize) -> Lane {
        if bytes >= LARGE_REPLY_BYTES {
            Lane::Large
        } else {
            Lane::Small
        }
    }
}

impl ReadyQueue {
    /// Adds a connection at the end of the queue of its lane.
    #[inline]
    pub fn push(&mut self, key: ConnectionKey, lane: Lane) {
        self.queues[lane as usize].push_back(key);
    }

    /// Adds a connection at the front of the queue of its lane: it goes on with what it has begun.
    #[inline]
    pub fn push_first(&mut self, key: ConnectionKey, lane: Lane) {
        self.queues[lane as usize].push_front(key);
    }

    /// The connection of this lane that is served next. It stays in the queue.
    #[inline]
    pub fn first(&self, lane: Lane) -> Option<ConnectionKey> {
        self.queues[lane as usize].front().copied()
    }

    /// Removes the connection of this lane that has been ready for longest.
    #[inline]
    pub fn remove_first(&mut self, lane: Lane) {
        self.queues[lane as usize].pop_front();
    }

    /// Connections of this lane.
    pub fn len(&self, lane: Lane) -> usize {
        self.queues[lane as usize].len()
    }
}
