//! Which connection is served next.

use std::collections::VecDeque;

use glimmer_base::limits::LARGE_REPLY_BYTES;

use crate::stream::key::ConnectionKey;

/// Connections to be served, each class in the order in which its connections became ready.
///
/// A connection that was sent large replies in its last burst waits in a queue of its own, of which
/// a turn serves a bounded number of bytes. Connections with small replies therefore wait for that
/// many bytes of large ones at most, however many clients ask for large values.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// By [`ReplyClass`].
    queues: [VecDeque<ConnectionKey>; 2],
}

/// How large the replies of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyClass {
    /// Its last burst made fewer than [`LARGE_REPLY_BYTES`] bytes of replies.
    Small,
    /// Its last burst made at least [`LARGE_REPLY_BYTES`] bytes of replies.
    Large,
}

impl ReplyClass {
    /// The class of a connection whose last burst made this many bytes of replies.
    #[inline]
    pub fn of(burst_reply_bytes: usize) -> ReplyClass {
        if burst_reply_bytes >= LARGE_REPLY_BYTES {
            ReplyClass::Large
        } else {
            ReplyClass::Small
        }
    }
}

impl ReadyQueue {
    /// Adds a connection at the end of the queue of its class.
    #[inline]
    pub fn push(&mut self, key: ConnectionKey, class: ReplyClass) {
        self.queues[class as usize].push_back(key);
    }

    /// The connection of this class that has been ready for longest. It stays in the queue.
    #[inline]
    pub fn first(&self, class: ReplyClass) -> Option<ConnectionKey> {
        self.queues[class as usize].front().copied()
    }

    /// Removes the connection of this class that has been ready for longest.
    #[inline]
    pub fn remove_first(&mut self, class: ReplyClass) {
        self.queues[class as usize].pop_front();
    }

    /// Connections of this class.
    pub fn len(&self, class: ReplyClass) -> usize {
        self.queues[class as usize].len()
    }

    /// Whether no connection is ready.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}
