//! From one command to the next.

use super::command;
use super::frame::{self, Arguments, Fault, Style};
use super::lines;
use super::state::{Parser, State};
use super::words::Words;
use crate::text::{After, Limits, Step};
use crate::{Speak, foreign};
use glimmer_base::limits::{
    ITEM_BYTES_MAX, LINE_BYTES_MAX, RESP_ARGUMENTS_MAX, RESP_BULK_BYTES_MAX, RESP_INLINE_BYTES_MAX,
};

/// The first byte of a command that is an array. No command of memcached's begins with it.
pub(super) const ARRAY: u8 = b'*';

impl Parser {
    /// Takes the next request from the front of `input`; see [`crate::text::Parser::next`].
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self.state {
            State::Start => match input.first() {
                None => Step::Need { need: 1 },
                Some(&ARRAY) => self.begin_array(input),
                Some(_) => self.inline(input),
            },
            State::Array { count, seen, at } => self.array(input, count, seen, at as usize),
            State::Keys(keys) => self.next_key(input, keys),
            State::Skip { bytes, arguments } => self.skip(input, bytes, arguments),
        }
    }

    /// Gives up on receiving the value that the last [`Step::Need`] asked room for; see
    /// [`crate::text::Parser::refuse_value`].
    pub fn refuse_value(&mut self) {
        self.no_memory = true;
    }

    fn begin_array<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        let (count, head) = match frame::length(input, lines::LONG_ARRAY, lines::BAD_ARRAY) {
            Ok(found) => found,
            Err(fault) => return fault_step(input, 0, fault),
        };
        match u32::try_from(count) {
            Ok(count) if count as usize > RESP_ARGUMENTS_MAX => close(input, lines::BAD_ARRAY),
            Ok(count) if count > 0 => self.array(input, count, 0, head),
            // Redis passes over arrays of no arguments, and of fewer.
            _ if count > i64::from(u32::MAX) => close(input, lines::BAD_ARRAY),
            _ => Step::Swallowed { used: head },
        }
    }

    fn array<'a>(&mut self, input: &'a [u8], count: u32, seen: u32, at: usize) -> Step<'a> {
        let (mut seen, mut at) = (seen, at);
        let mut arguments = Arguments::new();
        if seen > 0 {
            let Ok((_, head)) = frame::length(input, "", "") else {
                return close(input, lines::BAD_ARRAY);
            };
            collect(&input[head..], seen, &mut arguments);
        }
        while seen < count {
            let fault = match frame::bulk_head(&input[at..], RESP_BULK_BYTES_MAX) {
                Ok((bytes, head)) => {
                    let (begin, end) = (at + head, at + head + bytes);
                    if end > self.command_bytes_max() {
                        return self.refuse(begin, bytes, count - seen - 1, lines::TOO_LARGE);
                    }
                    match input.get(begin..end + 2) {
                        Some([argument @ .., b'\r', b'\n']) => {
                            // What does not fit is found again, key by key.
                            let _ = arguments.try_push(argument);
                            (seen, at) = (seen + 1, end + 2);
                            continue;
                        }
                        Some(_) => Fault::Broken(lines::BAD_BULK),
                        None if std::mem::take(&mut self.no_memory) => {
                            return self.refuse(
                                begin,
                                bytes,
                                count - seen - 1,
                                lines::OUT_OF_MEMORY,
                            );
                        }
                        None => Fault::Short(head + bytes + 2),
                    }
                }
                Err(fault) => fault,
            };
            self.state = State::Array {
                count,
                seen,
                at: at as u32,
            };
            return fault_step(input, at, fault);
        }
        self.no_memory = false;
        self.state = State::Start;
        command::read(self, &input[..at], &arguments, count, Style::Array)
    }

    /// Bytes of a command at most: a largest item and its key, or a great many keys.
    fn command_bytes_max(&self) -> usize {
        self.limits.item_bytes_max + LINE_BYTES_MAX
    }

    /// Refuses a command and has the rest of it skipped: the string of this many bytes that begins
    /// at `begin`, and this many arguments more.
    fn refuse(
        &mut self,
        begin: usize,
        bytes: usize,
        arguments: u32,
        line: &'static str,
    ) -> Step<'static> {
        self.no_memory = false;
        self.state = State::Skip {
            bytes: bytes as u32 + 2,
            arguments,
        };
        Step::Refuse {
            used: begin,
            line,
            then: After::Continue,
        }
    }

    fn skip<'a>(&mut self, input: &'a [u8], bytes: u32, arguments: u32) -> Step<'a> {
        if input.is_empty() {
            return Step::Need { need: 1 };
        }
        if bytes == 0 {
            return match frame::bulk_head(input, RESP_BULK_BYTES_MAX) {
                Ok((bytes, head)) => {
                    self.state = State::Skip {
                        bytes: bytes as u32 + 2,
                        arguments: arguments - 1,
                    };
                    Step::Swallowed { used: head }
                }
                Err(fault) => fault_step(input, 0, fault),
            };
        }
        let used = input.len().min(bytes as usize);
        self.state = match bytes - used as u32 {
            0 if arguments == 0 => State::Start,
            bytes => State::Skip { bytes, arguments },
        };
        Step::Swallowed { used }
    }

    #[cold]
    fn inline<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        let line = &input[..input.len().min(RESP_INLINE_BYTES_MAX)];
        let Some(newline) = memchr::memchr(b'\n', line) else {
            return match input.len() >= RESP_INLINE_BYTES_MAX {
                true => close(input, lines::LONG_INLINE),
                false => Step::Need {
                    need: input.len() + 1,
                },
            };
        };
        let whole = &input[..newline + 1];
        let (mut arguments, mut count, mut at) = (Arguments::new(), 0, 0);
        loop {
            match frame::word(&whole[at..]) {
                Ok(None) => break,
                Ok(Some((word, used))) => {
                    let _ = arguments.try_push(word);
                    (count, at) = (count + 1, at + used);
                }
                Err(lines::INLINE_ESCAPE) => {
                    return Step::Refuse {
                        used: whole.len(),
                        line: lines::INLINE_ESCAPE,
                        then: After::Continue,
                    };
                }
                Err(line) => return close(input, line),
            }
        }
        match count {
            0 => Step::Swallowed { used: whole.len() },
            _ if foreign::is_request_line(&arguments) => close(input, ""),
            _ => command::read(self, whole, &arguments, count, Style::Inline),
        }
    }
}

/// The first arguments again, all of which are there.
fn collect<'a>(mut input: &'a [u8], count: u32, arguments: &mut Arguments<'a>) {
    for _ in 0..count.min(arguments.capacity() as u32) {
        let Some((argument, used)) = frame::next_argument(input, Style::Array) else {
            return;
        };
        arguments.push(argument);
        input = &input[used..];
    }
}

/// What a fault comes to that was met at offset `at`.
fn fault_step(input: &[u8], at: usize, fault: Fault) -> Step<'_> {
    match fault {
        Fault::NotBulk => Step::Answer {
            used: input.len(),
            words: Words::ExpectedBulk.into(),
            text: &input[at..at + 1],
            then: After::Close,
        },
        Fault::Short(need) => Step::Need { need: at + need },
        Fault::Broken(line) => close(input, line),
    }
}

/// What breaks the protocol ends the connection, as in Redis.
pub(super) fn close(input: &[u8], line: &'static str) -> Step<'static> {
    Step::Refuse {
        used: input.len(),
        line,
        then: After::Close,
    }
}

impl Speak for Parser {
    const NAME: &'static str = "resp";
    const HAS_LOGIN: bool = true;

    fn new(limits: Limits) -> Parser {
        Parser::new(limits)
    }

    fn begins_with(first: u8) -> bool {
        first == ARRAY
    }

    #[inline]
    fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next(self, input)
    }

    fn refuse_value(&mut self) {
        Parser::refuse_value(self);
    }

    fn take_back(&mut self, before: &Parser) {
        self.version = before.version;
    }

    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next_locked(self, input)
    }
}

const _: () = assert!(ITEM_BYTES_MAX + LINE_BYTES_MAX + RESP_BULK_BYTES_MAX < u32::MAX as usize);
