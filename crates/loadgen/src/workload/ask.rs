//! One request to a cache, whatever its protocol.

use super::key::Key;

/// What is asked.
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

/// What the reply to a read is followed by.
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

/// A request. One is made and filled again and again, so that no request allocates.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// What is asked.
    pub verb: Verb,
    /// Of which keys: one, or several if it is a read.
    pub keys: Vec<Key>,
    /// What follows.
    pub then: Then,
    /// Length in bytes of the value of a write, this one or the one that follows.
    pub value_bytes: u32,
    /// Version of the value of a write.
    pub version: u32,
    /// Seconds after which what is written expires; zero if it does not.
    pub ttl_s: u32,
    /// When it is due in nanoseconds on the clock of a trace.
    pub at_ns: u64,
}

impl Ask {
    /// Turns it into a request of one key.
    #[inline]
    pub fn one(&mut self, verb: Verb, key: Key) {
        self.verb = verb;
        self.keys.clear();
        self.keys.push(key);
        self.then = Then::Nothing;
    }
}

/// Requests, one after another.
pub trait Source {
    /// Fills in the next request; false when there are no more.
    fn next(&mut self, ask: &mut Ask) -> bool;

    /// Fills in the write of `key` that follows a reply. `value_bytes` and `ttl_s` are what its
    /// request said.
    fn follow(&mut self, ask: &mut Ask, key: Key, value_bytes: u32, ttl_s: u32);

    /// What ended the requests before their time, if anything did.
    fn error(&mut self) -> Option<anyhow::Error> {
        None
    }
}
