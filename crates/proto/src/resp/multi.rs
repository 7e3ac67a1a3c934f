//! Transactions: commands between `MULTI` and `EXEC`.
//!
//! A short transaction stays where it was received, and each of its commands is answered with
//! `QUEUED`. `EXEC` has the parser go back to the first of them and hand out one after the other,
//! as if they had just arrived, followed by the `EXEC` itself.
//!
//! The commands of a longer one leave the input: the parser hands their bytes to the caller as they
//! arrive ([`Step::Queue`]), a large value in many pieces. At `EXEC` the caller puts all of them in
//! front of what follows in the input ([`After::Replay`]). So no transaction has to be in the input
//! as a whole, and neither has a value in it.
//!
//! Either way the commands are executed in order by the ways of all commands. Those of other
//! clients may come in between.

use super::command;
use super::frame::{self, ARRAY, Arguments, Fault, Style};
use super::lines;
use super::names::{NAME_BYTES_MAX, arity, subcommands, upper};
use super::state::{Multi, Parser, State};
use super::words::Words;
use crate::control::Control;
use crate::text::{Admin, After, Step};
use glimmer_base::limits::RESP_QUEUE_BYTES_KEPT;

fn say(used: usize, line: &'static str) -> Step<'static> {
    Step::Refuse {
        used,
        line,
        then: After::Continue,
    }
}

impl Parser {
    /// `MULTI`.
    pub(super) fn begin_multi(&mut self, used: usize) -> Step<'static> {
        self.multi = Multi::Queueing { count: 0, at: 0 };
        say(used, lines::OK)
    }

    /// The next step between `MULTI` and `EXEC`, while the commands stay in the input.
    #[cold]
    pub(super) fn next_queued<'a>(
        &mut self,
        input: &'a [u8],
        count: u32,
        mut at: usize,
    ) -> Step<'a> {
        if self.no_memory {
            return self.leave_input(input, count, at);
        }
        // However much has arrived, a command that ends behind this leaves the input.
        let kept = &input[..input.len().min(self.kept_bytes_max())];
        let mut step = loop {
            match self.plain_step(&kept[at..]) {
                // An array of no arguments, which is passed over once more when it is executed.
                Step::Swallowed { used } => {
                    at += used;
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
                if *need > self.kept_bytes_max() && input.len() > at {
                    return self.leave_input(input, count, at);
                }
            }
            // Were it to stay among the others, it would be executed with them.
            (step, _) if changes_nothing(step) => return self.leave_input(input, count, at),
            (Step::Refuse { used, .. }, Multi::Queueing { count: now, .. }) if now > count => {
                let at = (at + *used) as u32;
                *used = 0;
                self.multi = Multi::Queueing { count: now, at };
            }
            (Step::Answer { .. }, Multi::Executing { .. }) => {}
            (
                Step::Refuse { used, .. }
                | Step::Answer { used, .. }
                | Step::Queue { used, .. }
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

    /// Bytes of a transaction that stays in the input, and of a step of one that does not: a place
    /// that the caller keeps them in has as many.
    pub(super) fn kept_bytes_max(&self) -> usize {
        RESP_QUEUE_BYTES_KEPT.min(self.limits.item_bytes_max / 2)
    }

    /// Has the commands of a transaction leave the input, of which `count` are in its first `at`
    /// bytes. The one that is arriving is looked at again from its beginning.
    fn leave_input<'a>(&mut self, input: &'a [u8], count: u32, at: usize) -> Step<'a> {
        self.no_memory = false;
        self.state = State::Start;
        self.multi = Multi::Apart { count };
        match at {
            0 => self.next_apart(input),
            _ => Step::Queue { used: at, line: "" },
        }
    }

    /// The next step between `MULTI` and `EXEC`, where the commands leave the input.
    #[cold]
    pub(super) fn next_apart<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if self.state == State::Start && input.first() == Some(&ARRAY) {
            match self.queued_name(input) {
                Ok(Some((name_end, arguments))) => {
                    return self.pass(input, name_end, 0, arguments);
                }
                Ok(None) => {}
                Err(need) => return Step::need(need),
            }
        }
        let mut step = self.plain_step(input);
        match &mut step {
            Step::Need { announced, .. } => *announced = None,
            Step::Queue { .. } | Step::Swallowed { .. } => {}
            step if changes_nothing(step) => {}
            _ if matches!(self.multi, Multi::Apart { .. } | Multi::NoMemory) => {
                self.multi = Multi::Spoilt;
            }
            _ => {}
        }
        step
    }

    /// What it comes to that these bytes of a command are passed over, up to its end if `is_end`.
    pub(super) fn passed(&mut self, used: usize, is_end: bool) -> Step<'static> {
        let count = match &mut self.multi {
            Multi::Apart { count } => count,
            Multi::NoMemory => {
                self.multi = Multi::Spoilt;
                return say(used, lines::OUT_OF_MEMORY);
            }
            _ => return Step::Swallowed { used },
        };
        *count += u32::from(is_end);
        let line = match is_end {
            true => lines::QUEUED,
            false => "",
        };
        Step::Queue { used, line }
    }

    /// Bytes that are passed over in one step.
    pub(super) fn passed_bytes_max(&self) -> usize {
        match self.multi {
            Multi::Apart { .. } => self.kept_bytes_max(),
            _ => usize::MAX,
        }
    }

    /// There is no memory for the bytes of the last step, whose reply is `line`: see
    /// [`crate::Parser::refuse_queue`].
    pub(super) fn refuse_queue(&mut self, line: &'static str) -> &'static str {
        // If no command was under way, all of these bytes are of commands that were answered.
        if self.state == State::Start && line.is_empty() {
            self.multi = Multi::NoMemory;
            return "";
        }
        self.multi = Multi::Spoilt;
        lines::OUT_OF_MEMORY
    }

    /// The next command is executed, or refused: one less is left, if a transaction is executed.
    pub(super) fn begin_queued(&mut self) {
        if let Multi::Executing { left, tail } = &mut self.multi {
            *left -= 1;
            if (*left, *tail) == (0, 0) {
                self.multi = Multi::Off;
            }
        }
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
            if name == b"EXEC" {
                self.multi = Multi::Off;
                return say(used, lines::EXEC_ARITY);
            }
            return answer(Words::WrongArity(lower), &[]);
        }
        if let Some(&subcommand) = arguments.get(1)
            && let Some(words) = self.subcommand_fault(name, subcommand, count)
        {
            return answer(words, subcommand);
        }
        match (name, self.multi) {
            (b"EXEC", Multi::Queueing { count: 0, .. } | Multi::Apart { count: 0 }) => {
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
            (b"EXEC", Multi::Apart { count }) => {
                self.multi = Multi::Executing {
                    left: count,
                    tail: 0,
                };
                Step::Answer {
                    used,
                    words: Words::Array(count).into(),
                    text: &[],
                    then: After::Replay,
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
            (_, Multi::Apart { .. } | Multi::NoMemory) => self.passed(used, true),
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

    /// The bytes up to the end of the name of the array at the front of the input, and the number
    /// of arguments that follow. None if the command is one that a transaction does not queue, or
    /// if this is no command. Fails with the number of bytes that will tell.
    fn queued_name(&self, input: &[u8]) -> Result<Option<(usize, u32)>, usize> {
        let (count, head) = match frame::length(input, "", "") {
            Ok((count, head)) => (u32::try_from(count).unwrap_or(0), head),
            Err(Fault::Short(need)) => return Err(need),
            Err(_) => return Ok(None),
        };
        if count == 0 {
            return Ok(None);
        }
        let Some((name, end)) = short_argument(input, head)? else {
            return Ok(None);
        };
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = upper(name, &mut buffer);
        let is_right = arity(name).is_some_and(|(least, most, _)| (least..=most).contains(&count));
        if !is_right || is_of_connection(name) {
            return Ok(None);
        }
        if count > 1 && !subcommands(name).is_empty() {
            let Some((subcommand, _)) = short_argument(input, end)? else {
                return Ok(None);
            };
            if self.subcommand_fault(name, subcommand, count).is_some() {
                return Ok(None);
            }
        }
        Ok(Some((end, count - 1)))
    }

    /// What is wrong with the subcommand of a command of `count` arguments, whatever they are:
    /// there is no such subcommand, or it has another number of them. None if the command has no
    /// subcommands.
    fn subcommand_fault(&self, name: &[u8], subcommand: &[u8], count: u32) -> Option<Words> {
        if subcommands(name).is_empty() {
            return None;
        }
        let mut arguments = Arguments::from_iter([name, subcommand]);
        while arguments.len() < count as usize && arguments.try_push(b"").is_ok() {}
        let mut parser = *self;
        let step = command::read(&mut parser, b"", &arguments, count, Style::Array);
        let Step::Answer {
            words: crate::Words::Resp(words),
            ..
        } = step
        else {
            return None;
        };
        matches!(words, Words::UnknownSubcommand(_) | Words::WrongArity(_)).then_some(words)
    }

    /// Whether no transaction is under way.
    pub(super) fn is_between_commands(&self) -> bool {
        self.state == State::Start && self.multi == Multi::Off
    }
}

/// The argument that begins at `at`, and where the next one does. None if it is longer than any
/// name, or if this is no argument. Fails with the number of bytes that will tell.
fn short_argument(input: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, usize> {
    match frame::bulk_head(&input[at..], NAME_BYTES_MAX) {
        Ok((bytes, head)) => {
            let end = at + head + bytes + 2;
            let argument = input.get(at + head..end).ok_or(end)?;
            let argument = argument.strip_suffix(b"\r\n").unwrap_or_default();
            Ok(Some((argument, end)))
        }
        Err(Fault::Short(need)) => Err(at + need),
        Err(_) => Ok(None),
    }
}

/// Whether a command was refused that leaves the transaction as it is, as in Redis.
fn changes_nothing(step: &Step<'_>) -> bool {
    matches!(
        step,
        Step::Refuse {
            line: lines::NESTED | lines::WATCH_INSIDE,
            ..
        }
    )
}

/// Whether a command is carried out or refused at once in a transaction.
fn is_of_connection(name: &[u8]) -> bool {
    matches!(
        name,
        b"EXEC" | b"DISCARD" | b"QUIT" | b"MULTI" | b"WATCH" | b"AUTH" | b"HELLO"
    )
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
