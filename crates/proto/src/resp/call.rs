//! A complete command, and the steps that it may come to.

use super::form::{Form, Shows, Version};
use super::frame::Arguments;
use super::lines;
use super::words::Words;
use crate::control::Control;
use crate::request::AddRule;
use crate::text::{Admin, After, Limits, Step};
use crate::{Request, Verb, integer};
use glimmer_base::limits::KEY_BYTES_MAX;

/// A complete command.
pub(super) struct Call<'c, 'a> {
    pub limits: Limits,
    /// The bytes of the command.
    pub whole: &'a [u8],
    /// The first of its arguments, its name among them.
    pub arguments: &'c Arguments<'a>,
    /// How many it has.
    pub count: u32,
    pub version: Version,
}

/// Whether a key may be an item's.
#[inline]
pub(super) fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// The name of a command's `HELP` in errors.
fn name_of_help(command: &str) -> &'static str {
    match command {
        "CLIENT" => "client|help",
        "COMMAND" => "command|help",
        "CONFIG" => "config|help",
        "LATENCY" => "latency|help",
        "MEMORY" => "memory|help",
        "OBJECT" => "object|help",
        "SCRIPT" => "script|help",
        "SLOWLOG" => "slowlog|help",
        _ => "help",
    }
}

impl<'a> Call<'_, 'a> {
    /// Whether all of its arguments are at hand.
    pub fn has_all(&self) -> bool {
        self.count as usize == self.arguments.len()
    }

    /// A request for the key, which is the first argument after the name.
    #[inline]
    pub fn request(&self, verb: Verb<'a>, shows: Shows) -> Step<'a> {
        self.request_for(self.arguments[1], verb, shows)
    }

    /// A request for this key, which is one of the arguments.
    #[inline]
    pub fn request_for(&self, key: &'a [u8], verb: Verb<'a>, shows: Shows) -> Step<'a> {
        if !is_key(key) {
            return self.refuse(lines::BAD_KEY);
        }
        let form = Form {
            version: self.version,
            shows,
        };
        let form = crate::Form::Resp(form);
        Step::Request {
            used: self.whole.len(),
            request: Request { key, verb, form },
        }
    }

    /// Answers with a line.
    pub fn refuse(&self, line: &'static str) -> Step<'a> {
        Step::Refuse {
            used: self.whole.len(),
            line,
            then: After::Continue,
        }
    }

    /// Closes the connection without an answer.
    pub fn close(&self) -> Step<'a> {
        Step::Refuse {
            used: self.whole.len(),
            line: "",
            then: After::Close,
        }
    }

    /// Answers with words that may repeat `text`.
    pub fn answer(&self, words: Words, text: &'a [u8]) -> Step<'a> {
        Step::Answer {
            used: self.whole.len(),
            words: words.into(),
            text,
            then: After::Continue,
        }
    }

    /// Answers a subcommand that this command does not have, or `HELP`.
    pub fn other_subcommand(&self, command: &'static str) -> Step<'a> {
        let subcommand = self.arguments[1];
        match subcommand.eq_ignore_ascii_case(b"HELP") {
            true if self.count == 2 => self.answer(Words::Help(command), &[]),
            true => self.answer(Words::WrongArity(name_of_help(command)), &[]),
            false => self.answer(Words::UnknownSubcommand(command), subcommand),
        }
    }

    /// Leaves the command to the server.
    pub fn control(&self, control: Control<'a>, words: Words) -> Step<'a> {
        Step::Admin {
            used: self.whole.len(),
            admin: Admin::Control(control, words.into()),
        }
    }

    /// Whether a value is not too large for an item.
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        value.len() <= self.limits.value_bytes_max(key.len(), 0)
    }

    /// Adds to the key's number.
    pub fn add(&self, delta: i64) -> Step<'a> {
        let rule = AddRule::Make;
        self.request(Verb::Add { delta, rule }, Shows::Number)
    }

    /// Adds what `delta` makes of the argument.
    pub fn add_argument(&self, delta: impl FnOnce(i64) -> Option<i64>) -> Step<'a> {
        let Some(number) = integer::signed_64(self.arguments[2]) else {
            return self.refuse(lines::NOT_AN_INTEGER);
        };
        match delta(number) {
            Some(delta) => self.add(delta),
            None => self.refuse(lines::DECREMENT_OVERFLOW),
        }
    }
}
