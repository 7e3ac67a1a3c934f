//! Transactions: commands between `MULTI` and `EXEC`.
//!
//! The commands of a transaction stay where they were received, and each is answered with `QUEUED`.
//! `EXEC` has the parser go back to the first of them and hand out one after the other, as if they
//! had just arrived, followed by the `EXEC` itself. So a transaction is one piece of input that
//! takes memory as a large value does, and its commands are executed in order by the ways of all
//! commands. Those of other clients may come in between.

use super::frame::{self, ARRAY, Arguments};
use super::lines;
use super::names::{NAME_BYTES_MAX, arity, upper};
use super::state::{Multi, Parser, State};
use super::words::Words;
use crate::control::Control;
use crate::text::{Admin, After, Step};
use glimmer_base::limits::RESP_QUEUE_BYTES_MAX;

/// `MULTI`.
pub(super) fn begin(parser: &mut Parser, used: usize) -> Step<'static> {
    parser.multi = Multi::Queueing { count: 0, at: 0 };
    say(used, lines::OK)
}

fn say(used: usize, line: &'static str) -> Step<'static> {
    Step::Refuse {
        used,
        line,
        then: After::Continue,
    }
}

impl Parser {
    /// The next step between `MULTI` and `EXEC`.
    #[cold]
    pub(super) fn next_queued<'a>(
        &mut self,
        input: &'a [u8],
        count: u32,
        mut at: usize,
    ) -> Step<'a> {
        if self.no_memory && at > 0 {
            // The command that is arriving, if one is, is refused as well.
            self.multi = Multi::Spoilt;
            return Step::Swallowed { used: at };
        }
        let mut step = loop {
            let rest = input.get(at..).unwrap_or_default();
            if rest.is_empty() {
                return Step::need(at + 1);
            }
            match self.plain_step(rest) {
                // An array of no arguments, which is passed over once more when it is executed.
                Step::Swallowed { used } if matches!(self.multi, Multi::Queueing { .. }) => {
                    at += used;
                    if at > RESP_QUEUE_BYTES_MAX {
                        self.multi = Multi::Spoilt;
                        return Step::Swallowed { used: at };
                    }
                    self.multi = Multi::Queueing {
                        count,
                        at: at as u32,
                    };
                }
                step => break step,
            }
        };
        match (&mut step, self.multi) {
            (Step::Need { need, announced }, _) => {
                *need += at;
                *announced = None;
            }
            // It is in the queue, unless that is too long now.
            (Step::Refuse { used, line, .. }, Multi::Queueing { count: now, .. })
                if now > count =>
            {
                let end = at + *used;
                if end > RESP_QUEUE_BYTES_MAX {
                    (*used, *line) = (end, lines::LONG_QUEUE);
                    self.multi = Multi::Spoilt;
                } else {
                    *used = 0;
                    let at = end as u32;
                    self.multi = Multi::Queueing { count: now, at };
                }
            }
            (Step::Answer { .. }, Multi::Executing { .. }) => {}
            (
                Step::Refuse { used, .. }
                | Step::Answer { used, .. }
                | Step::Swallowed { used }
                | Step::Admin { used, .. }
                | Step::Request { used, .. },
                multi,
            ) => {
                *used += at;
                if matches!(multi, Multi::Queueing { .. }) {
                    self.multi = Multi::Spoilt;
                }
            }
        }
        step
    }

    /// A complete command between `MULTI` and `EXEC`: of `count` arguments, in these bytes.
    #[cold]
    pub(super) fn queue<'a>(
        &mut self,
        whole: &'a [u8],
        arguments: &Arguments<'a>,
        count: u32,
    ) -> Step<'a> {
        let used = whole.len();
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = upper(arguments[0], &mut buffer);
        let answer = |words: Words, text| Step::Answer {
            used,
            words: words.into(),
            text,
            then: After::Continue,
        };
        let Some((least, most, lower)) = arity(name) else {
            return answer(Words::UnknownCommand, whole);
        };
        if !(least..=most).contains(&count) {
            return answer(Words::WrongArity(lower), &[]);
        }
        match (name, self.multi) {
            (b"EXEC", Multi::Queueing { count: 0, .. }) => {
                self.multi = Multi::Off;
                answer(Words::Array(0), &[])
            }
            (b"EXEC", Multi::Queueing { count, .. }) => {
                self.multi = Multi::Executing {
                    left: count,
                    tail: used as u32,
                };
                Step::Answer {
                    used: 0,
                    words: Words::Array(count).into(),
                    text: &[],
                    then: After::Continue,
                }
            }
            (b"EXEC", _) => {
                self.multi = Multi::Off;
                say(used, lines::EXEC_ABORT)
            }
            (b"DISCARD", _) => {
                self.multi = Multi::Off;
                say(used, lines::OK)
            }
            (b"QUIT", _) => Step::Admin {
                used,
                admin: Admin::Control(Control::Quit, Words::Status.into()),
            },
            (b"MULTI", _) => say(used, lines::NESTED),
            (b"WATCH", _) => say(used, lines::WATCH_INSIDE),
            (b"AUTH" | b"HELLO", _) => say(used, lines::NOT_IN_MULTI),
            (_, Multi::Queueing { count, at }) => {
                self.multi = Multi::Queueing {
                    count: count + 1,
                    at,
                };
                say(used, lines::QUEUED)
            }
            _ => say(used, lines::QUEUED),
        }
    }

    /// The next step while a transaction is executed, if no command of it is left: the `EXEC` has
    /// been answered by what came before. Arrays of no arguments and empty lines may precede it.
    #[cold]
    pub(super) fn end_of_queue<'a>(&mut self, input: &'a [u8], tail: usize) -> Step<'a> {
        if let Some(used) = nothing(input) {
            return Step::Swallowed { used };
        }
        match tail <= input.len() {
            true => {
                self.multi = Multi::Off;
                Step::Swallowed { used: tail }
            }
            false => Step::need(tail),
        }
    }

    /// Whether no transaction is under way.
    pub(super) fn is_between_commands(&self) -> bool {
        self.state == State::Start && self.multi == Multi::Off
    }
}

/// The bytes of an array of no arguments, or of an empty line, if one is at the front of the input.
fn nothing(input: &[u8]) -> Option<usize> {
    if input.first() == Some(&ARRAY) {
        let (count, head) = frame::length(input, "", "").ok()?;
        return (count <= 0).then_some(head);
    }
    let newline = memchr::memchr(b'\n', input)?;
    matches!(frame::word(&input[..newline]), Ok(None)).then_some(newline + 1)
}
