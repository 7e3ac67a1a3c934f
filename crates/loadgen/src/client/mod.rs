//! Clients that saturate a server: requests built in place, written in bursts, and every reply verified.

pub mod closed;
mod connection;
pub mod load;
pub mod open;
mod poll;
pub mod resp;
pub mod text;

pub use connection::Connection;

/// One step of the replies that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The whole reply to a read of one key.
    Get(u32),
    /// The reply to a write.
    Set,
    /// What precedes the values of a read of several keys.
    Head(u32),
    /// One of several keys.
    Key(u32),
    /// What follows the values of a read of several keys.
    End,
}

/// What the bytes received say about a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Not all of it is here yet.
    Incomplete,
    /// A verified value.
    Hit {
        /// Bytes that the step took.
        bytes: usize,
    },
    /// The server has no such key.
    Miss {
        /// Bytes that the step took.
        bytes: usize,
    },
    /// Anything that is neither hit nor miss.
    Done {
        /// Bytes that the step took.
        bytes: usize,
    },
    /// Not what a correct server answers: an error line, a wrong key, a wrong byte in a value.
    Wrong,
}

/// A protocol: how requests look, and how replies are recognised.
pub trait Protocol: Copy + Send + Sync {
    /// Appends a read of one key and the steps of its reply.
    fn get(&self, number: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>);

    /// Appends a write of a key's version and the steps of its reply.
    fn set(&self, number: u32, version: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>);

    /// Appends one read of several keys and the steps of its reply.
    fn multi_get(&self, numbers: &[u32], out: &mut Vec<u8>, steps: &mut impl Extend<Step>);

    /// Recognises a step at the beginning of what was received.
    fn take(&self, step: Step, input: &[u8]) -> Taken;
}

/// What a client counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys read and found, every byte verified.
    pub hits: u64,
    /// Keys read and not found.
    pub misses: u64,
    /// Keys written.
    pub writes: u64,
}

impl Tally {
    /// Keys read and written.
    pub fn operations(&self) -> u64 {
        self.hits + self.misses + self.writes
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            writes: self.writes - earlier.writes,
        }
    }
}

/// The start of a line, for a message to a person.
fn excerpt(input: &[u8]) -> String {
    input[..input.len().min(80)].escape_ascii().to_string()
}

/// Recognises a fixed line.
#[inline]
fn line(expected: &[u8], input: &[u8], taken: Taken) -> Taken {
    if input.starts_with(expected) {
        taken
    } else if expected.starts_with(input) || !input.contains(&b'\n') {
        Taken::Incomplete
    } else {
        Taken::Wrong
    }
}
