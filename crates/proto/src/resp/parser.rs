//! From one command to the next.

use super::command;
use super::frame::{self, ARRAY, Arguments, Fault, Style};
use super::lines;
use super::names;
use super::state::{Caching, Multi, Parser, State};
use super::words::Words;
use crate::speak::Rest;
use crate::text::{After, Limits, Step};
use crate::{Speak, foreign};
use glimmer_base::limits::{
    ITEM_BYTES_MAX, LINE_BYTES_MAX, RESP_BULK_BYTES_MAX, RESP_INLINE_BYTES_MAX,
};

impl Parser {
    /// Takes the next request from the front of `input`; see [`crate::text::Parser::next`].
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self.caching {
            Caching::Off | Caching::OptIn => self.step(input),
            Caching::Next | Caching::StillNext | Caching::Due => self.next_cached(input),
        }
    }

    #[inline]
    pub(super) fn step<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self.multi {
            Multi::Off | Multi::Spoilt => {}
            Multi::Queueing { count, at } => return self.next_queued(input, count, at as usize),
            Multi::Apart { .. } | Multi::NoMemory => return self.next_apart(input),
            Multi::Executing { left: 0, tail } if self.state == State::Start => {
                return self.end_of_queue(input, tail as usize);
            }
            Multi::Executing { .. } => {}
        }
        self.plain_step(input)
    }

    #[inline]
    pub(super) fn plain_step<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self.state {
            State::Start => match input.first() {
                None => Step::need(1),
                Some(&ARRAY) => self.begin_array(input),
                Some(_) => self.inline(input),
            },
            State::Array { count, seen, at } => self.array(input, count, seen, at as usize),
            State::Taken { nth } => self.array_around(input, nth),
            State::Keys(keys) => self.next_key(input, keys),
            State::Pieces(pieces) => self.next_piece(input, pieces),
            State::Pass { bytes, arguments } => self.pass(input, 0, bytes, arguments),
        }
    }

    /// Gives up on receiving the value that the last [`Step::Need`] asked room for; see
    /// [`crate::text::Parser::refuse_value`].
    pub fn refuse_value(&mut self) {
        self.no_memory = true;
    }

    /// See [`crate::Parser::take_value`].
    pub fn take_value(&mut self) {
        match &mut self.state {
            State::Array { seen, .. } => self.state = State::Taken { nth: *seen as u8 },
            State::Pieces(pieces) => pieces.taken = true,
            _ => {}
        }
    }

    /// Passes over what is left of a command behind the first `at` bytes of the input: these bytes
    /// of an argument, and this many arguments more.
    pub(super) fn pass<'a>(
        &mut self,
        input: &'a [u8],
        mut at: usize,
        mut bytes: u32,
        mut arguments: u32,
    ) -> Step<'a> {
        let end = input.len().min(self.passed_bytes_max());
        while at < end && (bytes, arguments) != (0, 0) {
            if bytes > 0 {
                match frame::bytes_of_argument(&input[at..end], bytes as usize) {
                    0 if at == 0 => return close(input, lines::BAD_BULK),
                    0 => break,
                    used => (at, bytes) = (at + used, bytes - used as u32),
                }
                continue;
            }
            match frame::bulk_head(&input[at..end], RESP_BULK_BYTES_MAX) {
                Ok((length, head)) => {
                    (at, bytes, arguments) = (at + head, length as u32 + 2, arguments - 1);
                }
                Err(fault) if at == 0 => return fault_step(input, 0, fault),
                // The next step begins with it.
                Err(_) => break,
            }
        }
        if at == 0 {
            return Step::need(1);
        }
        let is_end = (bytes, arguments) == (0, 0);
        self.state = match is_end {
            true => State::Start,
            false => State::Pass { bytes, arguments },
        };
        self.passed(at, is_end)
    }

    #[cold]
    fn inline<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        let line = &input[..input.len().min(RESP_INLINE_BYTES_MAX)];
        let Some(newline) = memchr::memchr(b'\n', line) else {
            return match input.len() >= RESP_INLINE_BYTES_MAX {
                true => close(input, lines::LONG_INLINE),
                false => Step::need(input.len() + 1),
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
                Err(line @ (lines::INLINE_ESCAPE | lines::INLINE_QUOTE)) => {
                    return Step::Refuse {
                        used: whole.len(),
                        line,
                        then: After::Continue,
                    };
                }
                Err(line) => return close(input, line),
            }
        }
        match count {
            0 => Step::Swallowed { used: whole.len() },
            _ if foreign::is_request_line(&arguments) => close(input, ""),
            _ => self.complete(whole, &arguments, count, Style::Inline),
        }
    }
}

impl Parser {
    /// A complete command: executed, or queued.
    #[inline(always)]
    pub(super) fn complete<'a>(
        &mut self,
        whole: &'a [u8],
        arguments: &Arguments<'a>,
        count: u32,
        style: Style,
    ) -> Step<'a> {
        match self.multi {
            Multi::Off => {}
            Multi::Executing { .. } => self.begin_queued(),
            _ => return self.queue(whole, arguments, count),
        }
        command::read(self, whole, arguments, count, style)
    }
}

/// What a fault comes to that was met at offset `at`.
pub(super) fn fault_step(input: &[u8], at: usize, fault: Fault) -> Step<'_> {
    match fault {
        Fault::NotBulk => Step::Answer {
            used: input.len(),
            words: Words::ExpectedBulk.into(),
            text: &input[at..at + 1],
            then: After::Close,
        },
        Fault::Short(need) => Step::need(at + need),
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

    fn begins_with(input: &[u8]) -> Option<bool> {
        match input.first() {
            Some(&ARRAY) => Some(true),
            _ => names::begins_inline(input),
        }
    }

    #[inline]
    fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next(self, input)
    }

    fn refuse_value(&mut self) {
        Parser::refuse_value(self);
    }

    fn passes_over(&self) -> bool {
        matches!(self.state, State::Pass { .. })
    }

    fn take_value(&mut self) {
        Parser::take_value(self);
    }

    fn keeps_commands(&self) -> bool {
        matches!(self.multi, Multi::Queueing { at: 1.., .. })
            || matches!(self.state, State::Array { .. } | State::Taken { .. })
    }

    fn queues_apart(&self) -> bool {
        matches!(self.multi, Multi::Apart { .. })
    }

    fn refuse_queue(&mut self, line: &'static str) -> &'static str {
        Parser::refuse_queue(self, line)
    }

    fn rest(&self) -> Rest {
        match self.state {
            State::Keys(_) => Rest::Here,
            State::Pieces(_) => Rest::Arriving,
            _ => Rest::None,
        }
    }

    fn take_back(&mut self, before: &Parser) {
        self.version = before.version;
        self.caching = before.caching;
    }

    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next_locked(self, input)
    }
}

const _: () = assert!(ITEM_BYTES_MAX + LINE_BYTES_MAX + RESP_BULK_BYTES_MAX < u32::MAX as usize);
