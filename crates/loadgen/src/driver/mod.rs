//! Clients of caches: requests built in place, sent many at a time, every reply recognised and
//! every value verified.
//!
//! A protocol is one file behind [`Protocol`]: bytes of requests, and bytes of replies. How bytes
//! travel is behind [`Link`]: [`Stream`] for TCP and Unix sockets, [`Datagrams`] for memcached's
//! UDP. A protocol with datagrams of its own is one more [`Link`]: [`Native`].

mod address;
mod binary;
mod connect;
mod datagrams;
mod digits;
mod meta;
mod native;
mod pending;
mod poll;
mod resp;
mod stream;
mod target;
mod text;

use anyhow::Result;

pub use address::Address;
pub use binary::Binary;
pub use connect::{Connect, Endpoint, Job};
pub use datagrams::Datagrams;
pub use meta::Meta;
pub use native::{Native, Way};
pub use poll::Poll;
pub use resp::Resp;
pub use stream::Stream;
pub use target::{Dialect, Target};
pub use text::Text;

use crate::workload::{Ask, Key, Then, Verb};

/// One step of the replies that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub kind: Kind,
    /// The key that it is about; of [`Kind::Head`], a key whose number is the number of keys that
    /// follow.
    pub key: Key,
}

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The whole reply to a read of one key.
    Get,
    /// The reply to a write.
    Set,
    /// The reply to a delete.
    Delete,
    /// What precedes the values of a read of several keys.
    Head,
    /// One of several keys.
    Key,
    /// What follows the values of a read of several keys.
    End,
}

/// What the bytes received say about a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Not all of it is here.
    Incomplete {
        /// Bytes needed at least; 0 if that is not known.
        bytes: usize,
    },
    /// All of it, with what it means and the bytes that it took.
    Whole {
        /// Its meaning.
        meaning: Meaning,
        /// Bytes that the step took.
        bytes: usize,
    },
    /// Not what a correct server answers: an error line, a wrong key, a wrong byte in a value.
    Wrong,
}

impl Taken {
    /// Nothing is known about how much is missing.
    const MORE: Taken = Taken::Incomplete { bytes: 0 };

    #[inline]
    fn whole(meaning: Meaning, bytes: usize) -> Taken {
        Taken::Whole { meaning, bytes }
    }
}

/// What a complete step means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A verified value, or a key that was deleted.
    Hit,
    /// The server has no such key.
    Miss,
    /// Written; or something that belongs to a reply and counts for nothing.
    Done,
    /// The server says that it cannot store this.
    Refused,
    /// No reply came in time, over a transport that loses some.
    Lost,
}

/// What a write writes.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// Length of the value.
    pub value_bytes: u32,
    /// Version of the value.
    pub version: u32,
    /// Seconds until it expires, or zero.
    pub ttl_s: u32,
}

/// A protocol: how requests look, and how replies are recognised.
pub trait Protocol: Copy + Default + Send + Sync {
    /// Whether the reply to a read of several keys says first how many follow, instead of saying at
    /// its end that it ends.
    const HAS_HEAD: bool = false;

    /// Appends a read of one key.
    fn get(&self, key: Key, out: &mut Vec<u8>);

    /// Appends a read of several keys.
    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>);

    /// Appends a write.
    fn set(&self, write: Write, out: &mut Vec<u8>);

    /// Appends a delete.
    fn delete(&self, key: Key, out: &mut Vec<u8>);

    /// Recognises a step at the beginning of what was received.
    fn take(&self, step: Step, input: &[u8]) -> Taken;

    /// Appends what is asked, and the steps of its reply.
    #[inline]
    fn ask(&self, ask: &Ask, out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        let key = ask.keys[0];
        let kind = match ask.verb {
            Verb::Get if ask.keys.len() > 1 => {
                self.get_many(&ask.keys, out);
                return several(&ask.keys, Self::HAS_HEAD, steps);
            }
            Verb::Get => {
                self.get(key, out);
                Kind::Get
            }
            Verb::Set => {
                let Ask {
                    value_bytes,
                    version,
                    ttl_s,
                    ..
                } = *ask;
                let write = Write {
                    key,
                    value_bytes,
                    version,
                    ttl_s,
                };
                self.set(write, out);
                Kind::Set
            }
            Verb::Delete => {
                self.delete(key, out);
                Kind::Delete
            }
        };
        steps.extend([Step { kind, key }]);
    }
}

/// The steps of the reply to a read of several keys.
fn several(keys: &[Key], has_head: bool, steps: &mut impl Extend<Step>) {
    if has_head {
        let key = Key::new(keys.len() as u64, 16);
        steps.extend([Step {
            kind: Kind::Head,
            key,
        }]);
    }
    let kind = Kind::Key;
    steps.extend(keys.iter().map(|&key| Step { kind, key }));
    if !has_head {
        let (kind, key) = (Kind::End, Key::default());
        steps.extend([Step { kind, key }]);
    }
}

/// A step of a reply that has come, told to the sender of the request.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// What was given with the request.
    pub ticket: u64,
    /// What was asked.
    pub verb: Verb,
    /// The key of this step.
    pub key: Key,
    /// What the step means.
    pub meaning: Meaning,
    /// Whether the reply is complete with it.
    pub last: bool,
    /// What the request said is to follow,
    pub then: Then,
    /// and with what value
    pub value_bytes: u32,
    /// and for how long.
    pub ttl_s: u32,
}

/// A connection with requests under way, as the loops see it.
pub trait Link {
    /// Whether requests that are due at the same time are all asked for before any of them is sent,
    /// because they can leave together.
    const GATHERS: bool = false;

    /// Takes a request on. `ticket` comes back with the reply.
    fn ask(&mut self, ask: &Ask, ticket: u64);

    /// Sends what has been taken on, as far as the kernel takes it.
    fn send(&mut self) -> Result<()>;

    /// Whether there is something that the kernel has not taken.
    fn is_blocked(&self) -> bool;

    /// Receives what is there and tells of every step. An error is a broken connection or a reply
    /// that no correct server gives.
    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()>;

    /// Gives up on requests whose ticket is below `ticket`, if the transport loses replies.
    fn expire(&mut self, ticket: u64, on_step: &mut impl FnMut(Reply));

    /// Requests without a complete reply.
    fn under_way(&self) -> usize;
}

/// The start of what was received, for a message to a person.
fn excerpt(input: &[u8]) -> String {
    input[..input.len().min(80)].escape_ascii().to_string()
}

/// Recognises a fixed line.
#[inline]
fn line(expected: &[u8], input: &[u8], meaning: Meaning) -> Taken {
    if input.starts_with(expected) {
        Taken::whole(meaning, expected.len())
    } else if expected.starts_with(input) || !input.contains(&b'\n') {
        Taken::MORE
    } else {
        Taken::Wrong
    }
}

/// Recognises a line that begins so.
#[inline]
fn line_with(start: &[u8], input: &[u8], meaning: Meaning) -> Taken {
    match memchr::memchr(b'\n', input) {
        Some(end) if input.starts_with(start) => Taken::whole(meaning, end + 1),
        Some(_) => Taken::Wrong,
        None => Taken::MORE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_several_keys_begins_or_ends_with_a_step_of_its_own() {
        let mut ask = Ask::default();
        ask.one(Verb::Get, Key::new(1, 8));
        ask.keys.push(Key::new(2, 8));
        let steps = |ask_of: &dyn Fn(&mut Vec<Step>)| {
            let mut steps = Vec::new();
            ask_of(&mut steps);
            let seen = steps.iter().map(|step| (step.kind, step.key.number()));
            seen.collect::<Vec<_>>()
        };
        let keys = [(Kind::Key, 1), (Kind::Key, 2)];
        assert_eq!(
            steps(&|steps| Text.ask(&ask, &mut Vec::new(), steps)),
            [&keys[..], &[(Kind::End, Key::default().number())]].concat()
        );
        assert_eq!(
            steps(&|steps| Resp.ask(&ask, &mut Vec::new(), steps)),
            [&[(Kind::Head, 2)], &keys[..]].concat()
        );
        ask.one(Verb::Delete, Key::new(3, 8));
        assert_eq!(
            steps(&|steps| Resp.ask(&ask, &mut Vec::new(), steps)),
            [(Kind::Delete, 3)]
        );
    }
}
