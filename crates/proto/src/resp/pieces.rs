//! Commands with several keys that are too long to be kept as a whole: each key is handed out, with
//! its value, as soon as it has arrived.
//!
//! A shorter command is looked through before its first key is executed, and one with a bad key
//! does nothing. Here a key that no item can have is one that has no item. A value that cannot be
//! stored is passed over, and the sum at the end says so.

use super::call::is_key;
use super::form::{Form, Shows};
use super::frame::{self, Arguments};
use super::lines;
use super::names::{NAME_BYTES_MAX, arity, upper};
use super::parser::{close, fault_step};
use super::state::{Each, Parser, PieceFault, Pieces, State};
use super::words::Words;
use crate::control::Control;
use crate::request::Write;
use crate::text::{Admin, After, Step};
use crate::{Announced, Request, Verb};
use glimmer_base::limits::{KEY_BYTES_MAX, RESP_BULK_BYTES_MAX};

/// What is done with each key of a command of `count` arguments, if it may be executed in pieces.
pub(super) fn of(arguments: &Arguments<'_>, count: u32) -> Option<Each> {
    let mut buffer = [0; NAME_BYTES_MAX];
    let name = upper(arguments.first()?, &mut buffer);
    let (least, _, _) = arity(name)?;
    match name {
        _ if count < least => None,
        b"MGET" => Some(Each::Get { array: None }),
        b"DEL" | b"UNLINK" => Some(Each::Delete),
        b"EXISTS" | b"TOUCH" => Some(Each::Look),
        b"MSET" if !count.is_multiple_of(2) => Some(Each::Set),
        _ => None,
    }
}

impl Parser {
    /// Begins with the keys of a command whose name ends at `begin`.
    #[cold]
    pub(super) fn begin_pieces<'a>(&mut self, begin: usize, count: u32, each: Each) -> Step<'a> {
        self.no_memory = false;
        self.begin_queued();
        self.state = State::Pieces(Pieces {
            left: count - 1,
            skip: 0,
            each,
            skips_value: false,
            taken: false,
            fault: None,
        });
        match each {
            Each::Get { .. } => Step::Answer {
                used: begin,
                words: Words::Array(count - 1).into(),
                text: &[],
                then: After::Continue,
            },
            _ => Step::Swallowed { used: begin },
        }
    }

    /// The next step of a command that is executed in pieces.
    pub(super) fn next_piece<'a>(&mut self, input: &'a [u8], mut pieces: Pieces) -> Step<'a> {
        if input.is_empty() {
            return Step::need(1);
        }
        if pieces.skip > 0 {
            return self.skip_piece(input, pieces);
        }
        let (bytes, head) = match frame::bulk_head(input, RESP_BULK_BYTES_MAX) {
            Ok(found) => found,
            Err(fault) => return fault_step(input, 0, fault),
        };
        if pieces.skips_value || !(1..=KEY_BYTES_MAX).contains(&bytes) {
            let is_key = !std::mem::take(&mut pieces.skips_value);
            pieces.left -= 1;
            pieces.skip = bytes as u32 + 2;
            if is_key && pieces.each == Each::Set {
                pieces.skips_value = true;
                pieces.fault = Some(PieceFault::BadKey);
            }
            self.state = State::Pieces(pieces);
            return match pieces.each {
                Each::Get { .. } => Step::Refuse {
                    used: head,
                    line: self.version.null(),
                    then: After::Continue,
                },
                _ => Step::Swallowed { used: head },
            };
        }
        let end = head + bytes;
        let key = match input.get(head..end + 2) {
            Some([key @ .., b'\r', b'\n']) => key,
            Some(_) => return close(input, lines::BAD_BULK),
            None => {
                self.no_memory = false;
                return Step::need(end + 2);
            }
        };
        debug_assert!(is_key(key));
        pieces.left -= 1;
        let (verb, shows, end) = match pieces.each {
            Each::Get { array } => (Verb::Get, Shows::Element { array }, end + 2),
            Each::Delete => (Verb::Delete, Shows::Part, end + 2),
            Each::Look => (Verb::Get, Shows::Part, end + 2),
            Each::Set => match self.value_after(input, end + 2, key, pieces) {
                Ok((value, end)) => {
                    pieces.left -= 1;
                    pieces.taken = false;
                    let write = Write::of(value);
                    (Verb::Write(write), Shows::Part, end)
                }
                Err(step) => return step,
            },
        };
        let mut used = end;
        if pieces.left == 0 && pieces.has_sum() {
            // The last byte is left for the sum.
            (used, pieces.skip) = (end - 1, 1);
        }
        self.go_on(pieces);
        let form = Form {
            version: self.version,
            shows,
        };
        let form = crate::Form::Resp(form);
        let request = Request { key, verb, form };
        Step::Request { used, request }
    }

    /// The value that begins at `at`, and where it ends; or the step that there is instead.
    fn value_after<'a>(
        &mut self,
        input: &'a [u8],
        at: usize,
        key: &'a [u8],
        mut pieces: Pieces,
    ) -> Result<(&'a [u8], usize), Step<'a>> {
        let (bytes, head) = match frame::bulk_head(&input[at..], RESP_BULK_BYTES_MAX) {
            Ok(found) => found,
            Err(fault) => return Err(fault_step(input, at, fault)),
        };
        let begin = at + head;
        let left = match pieces.taken {
            true => 0,
            false => bytes,
        };
        let end = begin + left + 2;
        let fault = match input.get(begin..end) {
            _ if bytes > self.limits.value_bytes_max(key.len(), 0) => PieceFault::TooLarge,
            Some([value @ .., b'\r', b'\n']) => return Ok((value, end)),
            Some(_) => return Err(close(input, lines::BAD_BULK)),
            None if std::mem::take(&mut self.no_memory) => PieceFault::NoMemory,
            None => {
                let announced = Announced {
                    key,
                    has_base64_key: false,
                    value_at: begin,
                    value_bytes: bytes,
                };
                let announced = announced.large().filter(|_| !pieces.taken);
                return Err(Step::Need {
                    need: end,
                    announced,
                });
            }
        };
        pieces.left -= 1;
        pieces.skip = left as u32 + 2;
        pieces.fault = Some(fault);
        self.state = State::Pieces(pieces);
        Err(Step::Swallowed { used: begin })
    }

    /// Passes over an argument, or ends the command.
    fn skip_piece<'a>(&mut self, input: &'a [u8], mut pieces: Pieces) -> Step<'a> {
        let bytes = frame::bytes_of_argument(input, pieces.skip as usize);
        if bytes == 0 {
            return close(input, lines::BAD_BULK);
        }
        let is_last = pieces.left == 0 && pieces.has_sum();
        if is_last && pieces.skip == 1 {
            self.state = State::Start;
            let words = match (pieces.each, pieces.fault) {
                (_, Some(fault)) => Words::SumRefused(fault.line()),
                (Each::Set, _) => Words::Status,
                _ => Words::Count,
            };
            return Step::Admin {
                used: 1,
                admin: Admin::Control(Control::Sum, words.into()),
            };
        }
        let skipped = pieces.skip - u32::from(is_last);
        let used = bytes.min(skipped as usize);
        pieces.skip -= used as u32;
        self.go_on(pieces);
        Step::Swallowed { used }
    }

    fn go_on(&mut self, pieces: Pieces) {
        self.no_memory = false;
        self.state = match pieces.left == 0 && pieces.skip == 0 {
            true => State::Start,
            false => State::Pieces(pieces),
        };
    }
}

impl Pieces {
    /// Whether one reply for all keys comes last.
    fn has_sum(&self) -> bool {
        !matches!(self.each, Each::Get { .. })
    }
}

impl PieceFault {
    fn line(self) -> &'static str {
        match self {
            PieceFault::BadKey => lines::BAD_KEY,
            PieceFault::TooLarge => lines::TOO_LARGE,
            PieceFault::NoMemory => lines::OUT_OF_MEMORY,
        }
    }
}
