//! Clients of caches. They build requests in place, send many of them together, recognise every
//! reply and verify every value.
//!
//! A protocol implements [`Protocol`] in one file: it writes requests and recognises replies. A
//! transport implements [`Link`]: [`Stream`] for TCP and Unix sockets, [`Datagrams`] for
//! memcached's UDP. A protocol with its own datagrams is another [`Link`]: [`Native`]. Both go over
//! sockets, or over any other packet transport.

mod address;
mod arrivals;
mod binary;
mod connect;
mod datagrams;
mod digits;
mod masstree;
mod meta;
mod native;
mod pending;
mod poll;
mod resp;
mod stream;
mod target;
mod text;

use std::io;

use anyhow::{Result, bail};
use glimmer_connect::Speech;

pub use address::Address;
pub use binary::Binary;
pub use connect::{Connect, Endpoint, Job};
pub use datagrams::Datagrams;
pub use masstree::{MASSTREE_VALUE_BYTES_MAX, Masstree};
pub use meta::Meta;
pub use native::{Native, SendMode};
pub use poll::{Awaited, Poll};
pub use resp::Resp;
pub use stream::Stream;
pub use target::{Dialect, Target};
pub use text::Text;

use crate::workload::{Ask, Key, Then, Verb, value};

/// One step of the replies that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The kind of the step.
    pub kind: Kind,
    /// The key of the step. In [`Kind::Head`], a key whose number is the number of keys that
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
    /// The part before the values of a read of several keys.
    Head,
    /// One of several keys.
    Key,
    /// The part after the values of a read of several keys.
    End,
}

/// The result of looking for a [`Step`] in the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The step has not arrived completely.
    Incomplete {
        /// Bytes needed at least; 0 if that is unknown.
        bytes: usize,
    },
    /// The step is complete.
    Whole {
        /// Its meaning.
        meaning: Meaning,
        /// Length of the step in bytes.
        bytes: usize,
    },
    /// No correct server sends this: an error line, a wrong key, or a wrong byte in a value.
    Wrong,
}

impl Taken {
    /// It is unknown how many bytes are missing.
    const MORE: Taken = Taken::Incomplete { bytes: 0 };

    #[inline]
    fn whole(meaning: Meaning, bytes: usize) -> Taken {
        Taken::Whole { meaning, bytes }
    }

    /// A hit of this length if all of it is right.
    #[inline]
    fn hit_if(is_right: bool, bytes: usize) -> Taken {
        if is_right {
            Taken::whole(Meaning::Hit, bytes)
        } else {
            Taken::Wrong
        }
    }

    /// Something is missing that a whole line would have.
    #[inline]
    fn more_of_line(input: &[u8]) -> Taken {
        if input.contains(&b'\n') {
            Taken::Wrong
        } else {
            Taken::MORE
        }
    }
}

/// The meaning of a complete step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A verified value, or a deleted key.
    Hit,
    /// The server does not have the key.
    Miss,
    /// The write succeeded, or this is a part of a reply that is not counted.
    Done,
    /// The server had no room for the value.
    Refused,
    /// The value is longer than the server accepts any.
    TooLarge,
    /// The same, and the request was not sent.
    Unsent,
    /// No reply arrived in time, over a transport that loses datagrams.
    Lost,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// Length of the value.
    pub value_bytes: u32,
    /// Version of the value.
    pub version: u32,
    /// Seconds until the value expires, or zero for never.
    pub ttl_s: u32,
}

impl Write {
    #[inline]
    fn append_value(&self, out: &mut Vec<u8>) {
        let bytes = self.value_bytes as usize;
        value::append(out, bytes, self.key.number(), self.version);
    }
}

/// A protocol: how to write requests and recognise replies.
pub trait Protocol: Copy + Default + Send + Sync {
    /// Whether the reply to a read of several keys starts with the number of values, instead of
    /// ending with an end marker.
    const HAS_HEAD: bool = false;

    /// How a client says who it is, if the protocol has a way for that.
    const LOGIN: Option<Speech> = None;

    /// Appends a read of one key.
    fn get(&self, key: Key, out: &mut Vec<u8>);

    /// Appends a read of several keys.
    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>);

    /// Appends a write.
    fn set(&self, write: Write, out: &mut Vec<u8>);

    /// Appends a delete.
    fn delete(&self, key: Key, out: &mut Vec<u8>);

    /// Looks for a step at the start of the received bytes.
    fn take(&self, step: Step, input: &[u8]) -> Taken;

    /// Says on a new stream what comes before all requests, and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the server does not answer as it should, or if the connection breaks.
    fn begin(stream: &mut (impl io::Read + io::Write)) -> Result<()> {
        let _ = stream;
        Ok(())
    }

    /// Appends a request and the steps of its reply.
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

/// A received step of a reply, as reported to the sender of the request.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The caller's tag of the request.
    pub tag: u64,
    /// The verb of the request.
    pub verb: Verb,
    /// The key of this step.
    pub key: Key,
    /// The meaning of the step.
    pub meaning: Meaning,
    /// Whether this step completes the reply.
    pub last: bool,
    /// What the request says shall follow its reply.
    pub then: Then,
    /// Length in bytes of the value that follows.
    pub value_bytes: u32,
    /// Length in bytes of the values that the request moved: zero for a key that was not found, and
    /// for a delete. A read of several keys counts all of them, found or not.
    pub item_bytes: u32,
    /// When the kernel received the last bytes of the read that completed this step, in nanoseconds
    /// of `CLOCK_REALTIME`; zero if that is not known.
    pub arrived_ns: u64,
    /// Time to live of the value that follows, in seconds.
    pub ttl_s: u32,
}

/// A connection with requests in flight, as the loops see it.
pub trait Link {
    /// Whether all requests that are due at the same time are issued before any is sent, so that
    /// they can be sent together.
    const GATHERS: bool = false;

    /// Issues a request. `tag` comes back with the reply.
    fn ask(&mut self, ask: &Ask, tag: u64);

    /// Sends issued requests, as far as the kernel accepts them.
    fn send(&mut self) -> Result<()>;

    /// Whether the kernel has not accepted everything yet.
    fn is_blocked(&self) -> bool;

    /// Whether [`receive`](Self::receive) has steps of requests that were not sent.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Receives what has arrived and reports every step. Fails if the connection breaks or a reply
    /// is wrong.
    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()>;

    /// Gives up requests whose tag is below `tag`, if the transport can lose replies.
    fn expire(&mut self, tag: u64, on_step: &mut impl FnMut(Reply));

    /// Requests without a complete reply.
    fn under_way(&self) -> usize;

    /// From now on, one read asks for this many bytes at most, if this is a stream.
    fn read_at_most(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// From now on, steps say when the kernel received them ([`Reply::arrived_ns`]).
    ///
    /// # Errors
    ///
    /// If the kernel does not say that of this transport.
    fn note_arrivals(&mut self) -> Result<()> {
        bail!("the kernel tells no receive timestamps of this transport")
    }
}

/// The start of the received bytes, for an error message.
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

/// Recognises a line by its start.
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
