//! A command that is an array of bulk strings: what is complete, and what is refused.

use super::announce;
use super::frame::{self, Arguments, Fault, Style};
use super::lines;
use super::parser::{close, fault_step};
use super::pieces;
use super::set;
use super::state::{Each, Multi, Parser, State};
use crate::text::{After, Step};
use glimmer_base::limits::{
    DRAFT_BYTES_MIN, LINE_BYTES_MAX, RESP_ARGUMENTS_MAX, RESP_BULK_BYTES_MAX, RESP_WHOLE_BYTES_MAX,
};

impl Parser {
    pub(super) fn begin_array<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
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

    pub(super) fn array<'a>(
        &mut self,
        input: &'a [u8],
        count: u32,
        seen: u32,
        at: usize,
    ) -> Step<'a> {
        let mut arguments = Arguments::new();
        if seen > 0 {
            let Ok((_, head)) = frame::length(input, "", "") else {
                return close(input, lines::BAD_ARRAY);
            };
            collect(&input[head..], seen, &mut arguments);
        }
        self.rest_of_array(input, count, (seen, at), &mut arguments, None)
    }

    /// The array from its beginning, without the argument that was taken. It has few arguments.
    #[cold]
    pub(super) fn array_around<'a>(&mut self, input: &'a [u8], nth: u8) -> Step<'a> {
        match frame::length(input, lines::LONG_ARRAY, lines::BAD_ARRAY) {
            Ok((count, head)) => {
                let arguments = &mut Arguments::new();
                self.rest_of_array(input, count as u32, (0, head), arguments, Some(nth))
            }
            Err(fault) => fault_step(input, 0, fault),
        }
    }

    /// The array from the argument on that is `next`: its number, and where it begins.
    #[inline(always)]
    fn rest_of_array<'a>(
        &mut self,
        input: &'a [u8],
        count: u32,
        next: (u32, usize),
        arguments: &mut Arguments<'a>,
        taken: Option<u8>,
    ) -> Step<'a> {
        let (mut seen, mut at) = next;
        let mut taken_bytes = 0;
        while seen < count {
            let fault = match frame::bulk_head(&input[at..], RESP_BULK_BYTES_MAX) {
                Ok((bytes, head)) => {
                    let begin = at + head;
                    if begin + bytes > RESP_WHOLE_BYTES_MAX
                        && taken.is_none()
                        && let Some(each) = self.in_pieces(arguments, count)
                    {
                        return self.leave_for_pieces(input, count, each);
                    }
                    if begin + taken_bytes + bytes > self.command_bytes_max() {
                        let left = count - seen - 1;
                        return self.refuse(begin, bytes + 2, left, lines::TOO_LARGE);
                    }
                    let mut end = begin + bytes;
                    if taken.map(u32::from) == Some(seen) {
                        (taken_bytes, end) = (bytes, begin);
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
                            let (left, arguments) = (end - begin + 2, count - seen - 1);
                            return self.refuse(begin, left, arguments, lines::OUT_OF_MEMORY);
                        }
                        None => {
                            let announced = match taken {
                                None if bytes >= DRAFT_BYTES_MIN && self.executes() => {
                                    announce::next_value(
                                        self.limits,
                                        arguments,
                                        count,
                                        begin,
                                        bytes,
                                    )
                                }
                                _ => None,
                            };
                            self.wait(count, seen, at, taken);
                            let need = end + 2;
                            return Step::Need { need, announced };
                        }
                    }
                }
                Err(Fault::Short(_)) if std::mem::take(&mut self.no_memory) => {
                    return self.refuse(at, 0, count - seen, lines::OUT_OF_MEMORY);
                }
                Err(fault) => fault,
            };
            self.wait(count, seen, at, taken);
            return fault_step(input, at, fault);
        }
        self.no_memory = false;
        self.state = State::Start;
        if taken.is_some() && set::compares(arguments) {
            return Step::Refuse {
                used: at,
                line: lines::TOO_LARGE_TO_COMPARE,
                then: After::Continue,
            };
        }
        self.complete(&input[..at], arguments, count, Style::Array)
    }

    /// Has the next call go on at this argument.
    #[inline(always)]
    fn wait(&mut self, count: u32, seen: u32, at: usize, taken: Option<u8>) {
        if taken.is_none() {
            let at = at as u32;
            self.state = State::Array { count, seen, at };
        }
    }

    /// Whether a command is executed when it is complete.
    fn executes(&self) -> bool {
        matches!(self.multi, Multi::Off | Multi::Executing { .. })
    }

    /// Bytes of a command at most: a largest item and its key. What is longer than a transaction
    /// that stays in the input leaves it.
    fn command_bytes_max(&self) -> usize {
        match self.multi {
            Multi::Queueing { .. } => usize::MAX,
            _ => self.limits.item_bytes_max + LINE_BYTES_MAX,
        }
    }

    /// What is done with each key of the command, if it is executed in pieces.
    #[cold]
    fn in_pieces(&self, arguments: &Arguments<'_>, count: u32) -> Option<Each> {
        match self.executes() {
            true => pieces::of(arguments, count),
            // It is to be kept.
            false => None,
        }
    }

    /// Goes back to after the name of a command, and hands out its keys from there.
    fn leave_for_pieces<'a>(&mut self, input: &'a [u8], count: u32, each: Each) -> Step<'a> {
        let name = frame::length(input, "", "").and_then(|(_, head)| {
            let (bytes, name_head) = frame::bulk_head(&input[head..], RESP_BULK_BYTES_MAX)?;
            Ok(head + name_head + bytes + 2)
        });
        match name {
            Ok(begin) => self.begin_pieces(begin, count, each),
            Err(fault) => fault_step(input, 0, fault),
        }
    }

    /// Refuses a command and has the rest of it skipped: this many bytes of an argument, from
    /// `begin` on, and this many arguments more.
    fn refuse(
        &mut self,
        begin: usize,
        bytes: usize,
        arguments: u32,
        line: &'static str,
    ) -> Step<'static> {
        self.no_memory = false;
        self.begin_queued();
        self.state = State::Pass {
            bytes: bytes as u32,
            arguments,
        };
        Step::Refuse {
            used: begin,
            line,
            then: After::Continue,
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
