//! The state between two packets.

use super::command::{self, Asked, Packet};
use super::control::Words;
use super::header::{BYTES, RequestHeader};
use super::{Header, MAGIC_REQUEST, Status, opcode};
use crate::text::{Admin, After, Limits, Step};
use crate::{Announced, Form, Refusal, Request, Speak, Verb};
use glimmer_base::limits::{ITEM_BYTES_MAX, KEY_BYTES_MAX, LOCKED_BYTES_MAX, SASL_BYTES_MAX};

/// The longest body, whatever the command. As in memcached, a longer one is not skipped.
const BODY_BYTES_MAX: usize = ITEM_BYTES_MAX;

/// Parses the bytes of one connection as memcached's binary protocol. Small and `Copy`, for the
/// same reason as [`crate::text::Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parser {
    limits: Limits,
    state: State,
    /// There is no memory for the value that the last step needed.
    no_memory: bool,
}

/// The position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the start of a packet.
    Packet,
    /// In a refused body: this many bytes are yet to be swallowed, at least one.
    Swallow { left: u32 },
    /// At the start of a packet whose value the caller has taken out of the input.
    Taken,
}

impl State {
    fn swallowing(left: usize) -> State {
        match left as u32 {
            0 => State::Packet,
            left => State::Swallow { left },
        }
    }
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            state: State::Packet,
            no_memory: false,
        }
    }

    /// Parses the next request at the front of `input`; see [`crate::text::Parser::next`].
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if self.state != State::Packet {
            return self.next_within(input);
        }
        let Some(bytes) = input.first_chunk::<BYTES>() else {
            return match input {
                [] | [MAGIC_REQUEST, ..] => Step::need(BYTES),
                _ => close_at_once(input),
            };
        };
        if bytes[0] != MAGIC_REQUEST {
            return close_at_once(input);
        }
        let header = RequestHeader::read(bytes);
        let front_bytes = header.extras_bytes + header.key_bytes;
        if front_bytes > header.body_bytes {
            return fail(
                input.len(),
                header.header,
                Status::UnknownCommand,
                After::Close,
            );
        }
        if header.key_bytes > KEY_BYTES_MAX {
            return close(input, &header);
        }
        match command::check(&header) {
            Ok(()) => {}
            Err(Status::UnknownCommand) if header.body_bytes <= BODY_BYTES_MAX => {
                self.state = State::swallowing(header.body_bytes);
                let status = Status::UnknownCommand;
                return fail(BYTES, header.header, status, After::Continue);
            }
            Err(_) => return close(input, &header),
        }
        let Some(body) = input[BYTES..].get(..header.body_bytes) else {
            return self.await_body(input, &header);
        };
        self.no_memory = false;
        let (extras, rest) = body.split_at(header.extras_bytes);
        let (key, value) = rest.split_at(header.key_bytes);
        if let Some(step) = self.refuse_large(&header, extras, key) {
            return step;
        }
        let used = BYTES + header.body_bytes;
        read(
            used,
            &Packet {
                header,
                extras,
                key,
                value,
            },
        )
    }

    /// In a refused body, or at a packet again whose value has been taken.
    #[cold]
    fn next_within<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if let State::Swallow { left } = self.state {
            return self.swallow(input, left);
        }
        let Some(bytes) = input.first_chunk::<BYTES>() else {
            return Step::need(BYTES);
        };
        let header = RequestHeader::read(bytes);
        let used = BYTES + header.extras_bytes + header.key_bytes;
        let Some(front) = input.get(BYTES..used) else {
            return Step::need(used);
        };
        self.state = State::Packet;
        self.no_memory = false;
        let (extras, key) = front.split_at(header.extras_bytes);
        read(
            used,
            &Packet {
                header,
                extras,
                key,
                value: &[],
            },
        )
    }

    /// Refuses the value that the last [`Step::Need`] asked for; see
    /// [`crate::text::Parser::refuse_value`].
    pub fn refuse_value(&mut self) {
        self.no_memory = true;
    }

    /// See [`crate::Parser::take_value`].
    pub fn take_value(&mut self) {
        self.state = State::Taken;
    }

    /// Waits for the rest of a body, unless extras and key already show that it will be refused.
    fn await_body<'a>(&mut self, input: &'a [u8], header: &RequestHeader) -> Step<'a> {
        if header.body_bytes > BODY_BYTES_MAX {
            return close(input, header);
        }
        let front_bytes = header.extras_bytes + header.key_bytes;
        let Some(front) = input[BYTES..].get(..front_bytes) else {
            return Step::need(BYTES + front_bytes);
        };
        let (extras, key) = front.split_at(header.extras_bytes);
        if let Some(step) = self.refuse_large(header, extras, key) {
            return step;
        }
        if std::mem::take(&mut self.no_memory) {
            return self.refuse(header, key, Refusal::NoMemory, header.value_bytes());
        }
        let announced = Announced {
            key,
            has_base64_key: false,
            value_at: BYTES + front_bytes,
            value_bytes: header.value_bytes(),
        };
        let is_stored = command::stored_flags(header, extras).is_some();
        Step::Need {
            need: BYTES + header.body_bytes,
            announced: announced.medium().filter(|_| is_stored),
        }
    }

    /// Refuses a value that is too large.
    #[inline]
    fn refuse_large<'a>(
        &mut self,
        header: &RequestHeader,
        extras: &'a [u8],
        key: &'a [u8],
    ) -> Option<Step<'a>> {
        let value_bytes = header.value_bytes();
        if value_bytes == 0 {
            return None;
        }
        let most = match command::stored_flags(header, extras) {
            Some(flags) => self.limits.value_bytes_max(key.len(), flags),
            // Bodies that no command uses, and SASL messages.
            None => SASL_BYTES_MAX,
        };
        (value_bytes > most).then(|| self.refuse(header, key, Refusal::TooLarge, value_bytes))
    }

    /// Refuses a value, of which `left` bytes are in the input.
    fn refuse<'a>(
        &mut self,
        header: &RequestHeader,
        key: &'a [u8],
        reason: Refusal,
        left: usize,
    ) -> Step<'a> {
        let used = BYTES + header.body_bytes - header.value_bytes();
        if command::drops_old(header.header) {
            self.state = State::swallowing(left);
            return Step::Request {
                used,
                request: Request {
                    key,
                    verb: Verb::Refused { reason },
                    form: Form::Binary(header.header),
                },
            };
        }
        let status = match reason {
            Refusal::TooLarge => Status::TooLarge,
            Refusal::NoMemory => Status::OutOfMemory,
        };
        self.state = State::swallowing(left);
        fail(used, header.header, status, After::Continue)
    }

    fn swallow(&mut self, input: &[u8], left: u32) -> Step<'static> {
        if input.is_empty() {
            return Step::need(1);
        }
        let used = input.len().min(left as usize);
        self.state = State::swallowing(left as usize - used);
        Step::Swallowed { used }
    }
}

/// A packet that no command has ends the connection, as in memcached.
fn close(input: &[u8], header: &RequestHeader) -> Step<'static> {
    let status = Status::InvalidArguments;
    fail(input.len(), header.header, status, After::Close)
}

/// The step of a complete packet.
#[inline(always)]
fn read<'a>(used: usize, packet: &Packet<'a>) -> Step<'a> {
    let header = packet.header.header;
    match command::read(packet) {
        Asked::Request(request) => Step::Request { used, request },
        Asked::Answer => fail(used, header, Status::Success, After::Continue),
        Asked::Control(control) => Step::Admin {
            used,
            admin: Admin::Control(control, Words::of(header).into()),
        },
    }
}

/// The parser's own reply, which is an error unless the status is [`Status::Success`].
fn fail(used: usize, header: Header, status: Status, then: After) -> Step<'static> {
    Step::Answer {
        used,
        words: Words { header, status }.into(),
        text: &[],
        then,
    }
}

impl Speak for Parser {
    const NAME: &'static str = "binary";
    const HAS_LOGIN: bool = true;

    fn new(limits: Limits) -> Parser {
        Parser::new(limits)
    }

    fn begins_with(input: &[u8]) -> Option<bool> {
        Some(input.first() == Some(&MAGIC_REQUEST))
    }

    #[inline]
    fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next(self, input)
    }

    fn refuse_value(&mut self) {
        Parser::refuse_value(self);
    }

    fn passes_over(&self) -> bool {
        matches!(self.state, State::Swallow { .. })
    }

    fn take_value(&mut self) {
        Parser::take_value(self);
    }

    /// Only SASL commands and `VERSION` are answered. Any other command ends the connection at its
    /// header, as in memcached.
    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if self.state == State::Packet
            && let Some(bytes @ &[MAGIC_REQUEST, ..]) = input.first_chunk::<BYTES>()
        {
            let header = RequestHeader::read(bytes);
            let is_open = matches!(
                header.header.opcode,
                opcode::SASL_LIST_MECHANISMS
                    | opcode::SASL_AUTH
                    | opcode::SASL_STEP
                    | opcode::VERSION
            );
            if !is_open && header.extras_bytes + header.key_bytes <= header.body_bytes {
                return fail(input.len(), header.header, Status::AuthError, After::Close);
            }
        }
        Parser::next(self, input)
    }
}

/// Input of another protocol cannot be answered.
fn close_at_once(input: &[u8]) -> Step<'static> {
    Step::Refuse {
        used: input.len(),
        line: "",
        then: After::Close,
    }
}

const _: () = assert!(SASL_BYTES_MAX < ITEM_BYTES_MAX);
const _: () = assert!(BYTES + KEY_BYTES_MAX + SASL_BYTES_MAX <= LOCKED_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_no_item_has_ends_the_connection() {
        for (opcode, extras_bytes) in [(opcode::SET, 8), (opcode::APPEND, 0), (0x77, 0)] {
            for (body_bytes, is_end) in [
                (BODY_BYTES_MAX as u32, false),
                (BODY_BYTES_MAX as u32 + 1, true),
                (u32::MAX, true),
            ] {
                let mut packet = [0; BYTES + 9];
                (packet[0], packet[1], packet[3]) = (MAGIC_REQUEST, opcode, 1);
                packet[4] = extras_bytes;
                packet[8..12].copy_from_slice(&body_bytes.to_be_bytes());
                let header = RequestHeader::read(packet.first_chunk().unwrap());
                let step = Parser::new(Limits::default()).next(&packet);
                let end = close(&packet, &header);
                assert_eq!(step == end, is_end, "{opcode}, {body_bytes}: {step:?}");
            }
        }
    }
}
