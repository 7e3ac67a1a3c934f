//! Commands with several keys, which are handed out one after the other.

use super::call::is_key;
use super::form::{Form, Shows};
use super::frame::{self, Style};
use super::lines;
use super::state::{Each, Keys, Parser, State};
use super::words::Words;
use crate::control::Control;
use crate::request::Write;
use crate::text::{Admin, After, Step};
use crate::{Request, Verb};

/// Begins to hand out the keys of a command with several, unless one of them is bad.
pub(super) fn keys<'a>(
    parser: &mut Parser,
    whole: &'a [u8],
    name: &[u8],
    count: u32,
    style: Style,
    each: Each,
) -> Step<'a> {
    let refuse = |line| Step::Refuse {
        used: whole.len(),
        line,
        then: After::Continue,
    };
    // Where the arguments begin: after the name, which lies in the command.
    let mut begin = name.as_ptr().addr() - whole.as_ptr().addr() + name.len();
    begin += match style {
        Style::Array => "\r\n".len(),
        // The quote that may close it.
        Style::Inline => usize::from(matches!(whole.get(begin), Some(b'"' | b'\''))),
    };
    let mut rest = &whole[begin..];
    let mut key = None;
    for _ in 0..count {
        let Some((argument, used)) = frame::next_argument(rest, style) else {
            return refuse(lines::SYNTAX);
        };
        rest = &rest[used..];
        match (each, key.take()) {
            (Each::Set, Some(key)) => {
                if argument.len() > parser.limits.value_bytes_max(key, 0) {
                    return refuse(lines::TOO_LARGE);
                }
            }
            _ if !is_key(argument) => return refuse(lines::BAD_KEY),
            _ => key = Some(argument.len()),
        }
    }
    let keys = Keys {
        rest: (whole.len() - begin) as u32,
        left: count,
        style,
        each,
    };
    match parser.next_key(&whole[begin..], keys) {
        Step::Request { used, request } => Step::Request {
            used: begin + used,
            request,
        },
        step => step,
    }
}

impl Parser {
    /// The next key of a command, or what the command comes to.
    pub(super) fn next_key<'a>(&mut self, input: &'a [u8], keys: Keys) -> Step<'a> {
        let rest = keys.rest as usize;
        let Some(command) = input.get(..rest) else {
            return Step::need(rest);
        };
        if keys.left == 0 {
            self.state = State::Start;
            let words = match keys.each {
                Each::Set => Words::Status,
                _ => Words::Count,
            };
            return Step::Admin {
                used: rest,
                admin: Admin::Control(Control::Sum, words.into()),
            };
        }
        let next = |from: usize| {
            let argument = frame::next_argument(&command[from..], keys.style);
            argument.map_or((&[][..], rest), |(argument, used)| (argument, from + used))
        };
        let (key, mut used) = next(0);
        let (mut verb, mut shows, mut arguments) = (Verb::Get, Shows::Part, 1);
        let mut each = keys.each;
        match keys.each {
            Each::Get { array } => {
                shows = Shows::Element { array };
                each = Each::Get { array: None };
            }
            Each::Delete => verb = Verb::Delete,
            Each::Look => {}
            Each::Set => {
                let value;
                (value, used) = next(used);
                arguments = 2;
                verb = Verb::Write(Write::of(value));
            }
        }
        let left = keys.left - arguments;
        self.state = match (left, shows) {
            (0, Shows::Element { .. }) => {
                used = rest;
                State::Start
            }
            _ => {
                // The last byte is left for the sum.
                used = used.min(rest - 1);
                State::Keys(Keys {
                    rest: (rest - used) as u32,
                    left,
                    each,
                    ..keys
                })
            }
        };
        let form = Form {
            version: self.version,
            shows,
        };
        let form = crate::Form::Resp(form);
        Step::Request {
            used,
            request: Request { key, verb, form },
        }
    }
}
