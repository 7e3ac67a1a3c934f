//! The awaited steps of replies, oldest first.

use std::collections::VecDeque;

use anyhow::{Result, bail};

use super::{Kind, Meaning, Protocol, Reply, Step, Taken, excerpt};
use crate::workload::{Ask, Then, Verb};

/// A refusal in the binary protocol for want of a login, or of a permission: response, opcode, key,
/// extras and data type, and the status.
fn is_auth_failure(reply: &[u8]) -> bool {
    matches!(reply, [0x81, _, _, _, _, _, 0, 0x20, ..])
}

/// Whether a server refuses a request because nobody has logged in: memcached and Redis.
fn wants_login(reply: &[u8]) -> bool {
    // memcached takes a `set` for a login, whose value is a user and a password.
    [
        &b"CLIENT_ERROR unauthenticated"[..],
        b"CLIENT_ERROR authentication failure",
        b"CLIENT_ERROR bad authentication token format",
        b"-NOAUTH",
    ]
    .iter()
    .any(|refusal| reply.starts_with(refusal))
}

/// An awaited step and the fields of its request that are reported with it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    step: Step,
    verb: Verb,
    then: Then,
    last: bool,
    tag: u64,
    value_bytes: u32,
    ttl_s: u32,
}

impl Pending {
    fn reply(&self, meaning: Meaning) -> Reply {
        let Pending {
            step,
            verb,
            then,
            last,
            tag,
            value_bytes,
            ttl_s,
        } = *self;
        Reply {
            tag,
            verb,
            key: step.key,
            meaning,
            last,
            then,
            value_bytes,
            item_bytes: match (step.kind, meaning) {
                (Kind::Get, Meaning::Miss) | (Kind::Delete, _) => 0,
                _ => value_bytes,
            },
            arrived_ns: 0,
            ttl_s,
        }
    }
}

/// The awaited steps of a connection.
#[derive(Debug, Default)]
pub struct Queue {
    steps: VecDeque<Pending>,
    requests: usize,
}

/// How far received bytes have been recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Understood {
    /// Bytes recognised from the start.
    pub bytes: usize,
    /// Bytes that the next step needs, if known.
    pub needed: usize,
}

/// Collects the steps of one request.
struct Steps<'a> {
    queue: &'a mut VecDeque<Pending>,
    template: Pending,
}

impl Extend<Step> for Steps<'_> {
    #[inline]
    fn extend<T: IntoIterator<Item = Step>>(&mut self, steps: T) {
        let template = self.template;
        self.queue
            .extend(steps.into_iter().map(|step| Pending { step, ..template }));
    }
}

impl Queue {
    /// Appends a request to `out` and awaits its reply.
    #[inline]
    pub fn ask(&mut self, protocol: &impl Protocol, ask: &Ask, tag: u64, out: &mut Vec<u8>) {
        let template = Pending {
            step: Step {
                kind: Kind::End,
                key: ask.keys[0],
            },
            verb: ask.verb,
            then: ask.then,
            last: false,
            tag,
            value_bytes: ask.value_bytes,
            ttl_s: ask.ttl_s,
        };
        protocol.ask(
            ask,
            out,
            &mut Steps {
                queue: &mut self.steps,
                template,
            },
        );
        self.steps
            .back_mut()
            .expect("every request has a reply")
            .last = true;
        self.requests += 1;
    }

    /// Requests without a complete reply.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// The tag of the oldest request.
    pub fn tag(&self) -> Option<u64> {
        self.steps.front().map(|pending| pending.tag)
    }

    /// Goes through the received bytes and reports every complete step.
    #[inline]
    pub fn take(
        &mut self,
        protocol: &impl Protocol,
        input: &[u8],
        on_step: &mut impl FnMut(Reply),
    ) -> Result<Understood> {
        let mut bytes = 0;
        while let Some(pending) = self.steps.front() {
            let rest = &input[bytes..];
            match protocol.take(pending.step, rest) {
                Taken::Incomplete { bytes: needed } => return Ok(Understood { bytes, needed }),
                Taken::Wrong if wants_login(rest) => bail!(
                    "the server wants a login: give --auth-user, and --password-file or the \
                     variable GLIMMER_PASSWORD"
                ),
                Taken::Wrong if is_auth_failure(rest) => bail!(
                    "the server wants a login, or the user may not do this: give --auth-user, and \
                     --password-file or the variable GLIMMER_PASSWORD"
                ),
                Taken::Wrong => bail!(
                    "expected the reply to {:?} of key {:x}, got {:?}",
                    pending.step.kind,
                    pending.step.key.number(),
                    excerpt(rest)
                ),
                Taken::Whole {
                    meaning,
                    bytes: taken,
                } => {
                    bytes += taken;
                    self.requests -= usize::from(pending.last);
                    // The head and the end of a reply are reported only if they complete it.
                    let tells =
                        pending.last || !matches!(pending.step.kind, Kind::Head | Kind::End);
                    let reply = pending.reply(meaning);
                    self.steps.pop_front();
                    if tells {
                        on_step(reply);
                    }
                }
            }
        }
        if bytes < input.len() {
            bail!(
                "got bytes that no request asked for: {:?}",
                excerpt(&input[bytes..])
            );
        }
        Ok(Understood { bytes, needed: 0 })
    }

    /// Gives up all awaited steps.
    pub fn lose(&mut self, on_step: &mut impl FnMut(Reply)) {
        for pending in self.steps.drain(..) {
            if pending.last || !matches!(pending.step.kind, Kind::Head | Kind::End) {
                let key_step = !matches!(pending.step.kind, Kind::Head | Kind::End);
                on_step(pending.reply(if key_step {
                    Meaning::Lost
                } else {
                    Meaning::Done
                }));
            }
        }
        self.requests = 0;
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::driver::{Binary, Text};
    use crate::workload::{Key, value};

    /// A key of 16 bytes.
    pub fn key(number: u64) -> Key {
        Key::new(number, 16)
    }

    /// A step for key 7.
    pub fn step(kind: Kind) -> Step {
        Step { kind, key: key(7) }
    }

    /// A value and the end of its line, after a head.
    pub fn with_value(head: &str, number: u64, bytes: usize) -> Vec<u8> {
        let mut out = head.as_bytes().to_vec();
        value::append(&mut out, bytes, number, 1);
        out.extend_from_slice(b"\r\n");
        out
    }

    /// The bytes that a protocol writes for a request.
    pub fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// Checks that a truncated reply is incomplete at every length and never asks for more bytes
    /// than it has, and that the whole reply, alone or followed by another, means `meaning`.
    pub fn check_every_prefix(
        protocol: &impl Protocol,
        step: Step,
        reply: &[u8],
        meaning: Meaning,
    ) {
        for cut in 0..reply.len() {
            match protocol.take(step, &reply[..cut]) {
                Taken::Incomplete { bytes } => {
                    assert!(bytes <= reply.len(), "cut at {cut}: {bytes} bytes")
                }
                other => panic!("{step:?} cut at {cut}: {other:?}"),
            }
        }
        let whole = Taken::Whole {
            meaning,
            bytes: reply.len(),
        };
        assert_eq!(protocol.take(step, reply), whole, "{step:?}");
        assert_eq!(
            protocol.take(step, &[reply, reply].concat()),
            whole,
            "{step:?}"
        );
    }

    /// Checks that any wrong byte in a reply is noticed, at the latest when more bytes arrive than
    /// it could be waiting for.
    pub fn check_wrong_bytes(protocol: &impl Protocol, step: Step, reply: &[u8]) {
        for byte in 0..reply.len() {
            let mut wrong = reply.to_vec();
            wrong[byte] ^= 0x10;
            wrong.extend(std::iter::repeat_n(b'\n', 8 * reply.len()));
            let taken = protocol.take(step, &wrong);
            assert!(
                !matches!(taken, Taken::Whole { .. }),
                "byte {byte} of {}: {taken:?}",
                reply.escape_ascii()
            );
        }
    }

    #[test]
    fn replies_carry_what_their_request_said() {
        let mut queue = Queue::default();
        let (mut ask, mut out) = (Ask::default(), Vec::new());
        ask.one(Verb::Get, Key::new(1, 8));
        (ask.then, ask.value_bytes, ask.ttl_s) = (Then::SetIfMissed, 77, 5);
        queue.ask(&Text, &ask, 10, &mut out);
        ask.keys.push(Key::new(2, 8));
        queue.ask(&Text, &ask, 20, &mut out);
        assert_eq!((queue.requests(), queue.tag()), (2, Some(10)));
        let mut told = Vec::new();
        let understood = queue
            .take(&Text, b"END\r\nEND\r\n", &mut |reply| told.push(reply))
            .unwrap();
        assert_eq!((understood.bytes, queue.requests()), (10, 0));
        let seen: Vec<_> = told
            .iter()
            .map(|reply| (reply.tag, reply.meaning, reply.last))
            .collect();
        // A read of two keys: a miss for each, and the end that completes the reply.
        let expected = [
            (10, Meaning::Miss, true),
            (20, Meaning::Miss, false),
            (20, Meaning::Miss, false),
            (20, Meaning::Done, true),
        ];
        assert_eq!(seen, expected);
        assert!(told.iter().all(
            |reply| (reply.then, reply.value_bytes, reply.ttl_s) == (Then::SetIfMissed, 77, 5)
        ));
        let error = queue
            .take(&Text, b"END\r\n", &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("no request asked for"), "{error}");
    }

    #[test]
    fn a_server_that_wants_a_login_is_told_from_a_broken_one() {
        // The header of memcached's answer to a get, with the status of a refusal.
        let mut binary = [0; 24];
        (binary[0], binary[7]) = (0x81, 0x20);
        for (reply, hint) in [
            (&b"CLIENT_ERROR unauthenticated\r\n"[..], "--auth-user"),
            (b"-NOAUTH Authentication required.\r\n", "--auth-user"),
            (&binary, "--auth-user"),
            (b"ERROR\r\n", "expected the reply to Get"),
        ] {
            let (mut queue, mut ask) = (Queue::default(), Ask::default());
            ask.one(Verb::Get, key(0));
            queue.ask(&Binary, &ask, 0, &mut Vec::new());
            let error = queue.take(&Binary, reply, &mut |_| {}).unwrap_err();
            assert!(error.to_string().contains(hint), "{error}");
        }
    }
}
