//! One request to a cache, independent of the protocol.

use super::key::Key;

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one key or several.
    #[default]
    Get,
    /// Write a key.
    Set,
    /// Delete a key.
    Delete,
}

/// What follows the reply to a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    #[default]
    Nothing,
    /// A write of every key that was not found.
    SetIfMissed,
    /// A write of the key.
    Set,
}

/// A request. The same value is filled in again and again, so that no request allocates.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// What the request does.
    pub verb: Verb,
    /// The keys: one, or several for a read.
    pub keys: Vec<Key>,
    /// What follows the reply.
    pub then: Then,
    /// Length in bytes of the value of this write, or of the write that follows. In a read, of what
    /// the keys are expected to hold together.
    pub value_bytes: u32,
    /// Version of the value of a write.
    pub version: u32,
    /// Seconds after which the written value expires; zero for never.
    pub ttl_s: u32,
    /// When the request is due, in nanoseconds on the clock of a trace.
    pub at_ns: u64,
}

impl Ask {
    /// Turns it into a request for one key.
    #[inline]
    pub fn one(&mut self, verb: Verb, key: Key) {
        self.verb = verb;
        self.keys.clear();
        self.keys.push(key);
        self.then = Then::Nothing;
    }
}

/// A sequence of requests.
pub trait Source {
    /// Whether the requests are recorded ones: those of one key have to reach the server in their
    /// order, and values may be too large for it.
    fn is_recorded(&self) -> bool {
        false
    }

    /// Fills in the next request. Returns false when there are no more.
    fn next(&mut self, ask: &mut Ask) -> bool;

    /// Fills in the write of `key` that follows a reply. `value_bytes` and `ttl_s` come from its
    /// request.
    fn follow(&mut self, ask: &mut Ask, key: Key, value_bytes: u32, ttl_s: u32);

    /// The error that ended the sequence early, if any.
    fn error(&mut self) -> Option<anyhow::Error> {
        None
    }
}
