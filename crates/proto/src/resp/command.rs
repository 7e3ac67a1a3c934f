//! What each command makes of its arguments.

use super::call::{Call, is_key, upper};
use super::form::{Form, Shows};
use super::frame::{self, Arguments, Style};
use super::state::{Each, Keys, Parser, State};
use super::words::Words;
use super::{lines, session, set};
use crate::control::Control;
use crate::request::{Condition, Lifetime, Write};
use crate::text::{Admin, After, Step};
use crate::{Request, Verb, foreign};

/// Bytes of the longest name.
const NAME_BYTES_MAX: usize = 12;

/// Reads a complete command.
#[inline]
pub(super) fn read<'a>(
    parser: &mut Parser,
    whole: &'a [u8],
    arguments: &Arguments<'a>,
    count: u32,
    style: Style,
) -> Step<'a> {
    let call = Call {
        limits: parser.limits,
        whole,
        arguments,
        count,
        version: parser.version,
    };
    let mut buffer = [0; NAME_BYTES_MAX];
    let name = upper(arguments[0], &mut buffer);
    if let Some((least, most, lower)) = arity(name)
        && !(least..=most).contains(&count)
    {
        return call.answer(Words::WrongArity(lower), &[]);
    }
    let each = match name {
        b"GET" => return call.request(Verb::Get, Shows::Value),
        b"SET" if count as usize > arguments.len() => return call.refuse(lines::SYNTAX),
        b"SET" => return set::set(&call),
        b"DEL" | b"UNLINK" if count == 2 => return call.request(Verb::Delete, Shows::Flag),
        b"EXISTS" if count == 2 => return call.request(Verb::Get, Shows::Flag),
        b"MGET" => Each::Get {
            array: Some(count - 1),
        },
        b"DEL" | b"UNLINK" => Each::Delete,
        b"EXISTS" => Each::Look,
        b"MSET" if count.is_multiple_of(2) => return call.answer(Words::WrongArity("mset"), &[]),
        b"MSET" => Each::Set,
        b"HELLO" => {
            let (step, version) = session::hello(&call, parser.version);
            parser.version = version;
            return step;
        }
        name => return other(&call, name),
    };
    keys(parser, whole, arguments[0], count - 1, style, each)
}

/// The commands that are less frequent.
#[inline(never)]
fn other<'a>(call: &Call<'_, 'a>, name: &[u8]) -> Step<'a> {
    match name {
        b"INCR" => call.add(1),
        b"DECR" => call.add(-1),
        b"INCRBY" => call.add_argument(Some),
        b"DECRBY" => call.add_argument(i64::checked_neg),
        b"TTL" => call.request(Verb::Get, Shows::Seconds),
        b"PTTL" => call.request(Verb::Get, Shows::Milliseconds),
        b"STRLEN" => call.request(Verb::Get, Shows::Length),
        b"TYPE" => call.request(Verb::Get, Shows::Type),
        b"EXPIRE" => call.expire("expire", 1000, false),
        b"PEXPIRE" => call.expire("pexpire", 1, false),
        b"EXPIREAT" => call.expire("expireat", 1000, true),
        b"PEXPIREAT" => call.expire("pexpireat", 1, true),
        b"PERSIST" => {
            let lifetime = Lifetime::Unlimited;
            call.request(Verb::Expire { lifetime }, Shows::Flag)
        }
        b"SETEX" => set::with_lifetime(call, "setex", 1000),
        b"PSETEX" => set::with_lifetime(call, "psetex", 1),
        b"SETNX" => set::plain(call, Condition::Absent, Shows::Flag),
        b"GETSET" => set::plain(call, Condition::Always, Shows::Value),
        b"PING" => session::ping(call),
        b"ECHO" => call.answer(Words::Text, call.arguments[1]),
        b"AUTH" => session::auth(call),
        b"SELECT" => session::select(call),
        b"CLIENT" => session::client(call),
        b"COMMAND" => session::describe(call, "COMMAND"),
        b"CONFIG" => session::describe(call, "CONFIG"),
        b"INFO" => call.control(Control::Stats(b""), Words::Info),
        b"FLUSHALL" | b"FLUSHDB" => session::flush(call),
        b"QUIT" => call.control(Control::Quit, Words::Status),
        b"POST" => call.close(),
        _ if foreign::is_foreign(call.arguments[0]) => call.close(),
        _ => call.answer(Words::UnknownCommand, call.whole),
    }
}

/// Whether a command of `count` arguments stores a value, and has as many as it needs.
pub(super) fn stores(name: &[u8], count: u32) -> bool {
    let mut buffer = [0; NAME_BYTES_MAX];
    let name = upper(name, &mut buffer);
    let is_store = matches!(
        name,
        b"SET" | b"SETEX" | b"PSETEX" | b"SETNX" | b"GETSET" | b"MSET"
    );
    let fits = |(least, most, _)| (least..=most).contains(&count);
    is_store && arity(name).is_some_and(fits)
}

/// How many arguments a command has, its name among them, and its name as errors show it.
#[inline]
fn arity(name: &[u8]) -> Option<(u32, u32, &'static str)> {
    const MANY: u32 = u32::MAX;
    Some(match name {
        b"GET" => (2, 2, "get"),
        b"SET" => (3, MANY, "set"),
        b"DEL" => (2, MANY, "del"),
        b"UNLINK" => (2, MANY, "unlink"),
        b"EXISTS" => (2, MANY, "exists"),
        b"MGET" => (2, MANY, "mget"),
        b"MSET" => (3, MANY, "mset"),
        b"INCR" => (2, 2, "incr"),
        b"DECR" => (2, 2, "decr"),
        b"INCRBY" => (3, 3, "incrby"),
        b"DECRBY" => (3, 3, "decrby"),
        b"TTL" => (2, 2, "ttl"),
        b"PTTL" => (2, 2, "pttl"),
        b"STRLEN" => (2, 2, "strlen"),
        b"TYPE" => (2, 2, "type"),
        b"EXPIRE" => (3, MANY, "expire"),
        b"PEXPIRE" => (3, MANY, "pexpire"),
        b"EXPIREAT" => (3, MANY, "expireat"),
        b"PEXPIREAT" => (3, MANY, "pexpireat"),
        b"PERSIST" => (2, 2, "persist"),
        b"SETEX" => (4, 4, "setex"),
        b"PSETEX" => (4, 4, "psetex"),
        b"SETNX" => (3, 3, "setnx"),
        b"GETSET" => (3, 3, "getset"),
        b"PING" => (1, 2, "ping"),
        b"ECHO" => (2, 2, "echo"),
        b"AUTH" => (2, MANY, "auth"),
        b"SELECT" => (2, 2, "select"),
        b"CLIENT" => (2, MANY, "client"),
        b"CONFIG" => (2, MANY, "config"),
        _ => return None,
    })
}

/// Begins to hand out the keys of a command with several, unless one of them is bad.
fn keys<'a>(
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
                verb = Verb::Write(Write {
                    value,
                    condition: Condition::Always,
                    lifetime: Lifetime::Unlimited,
                    shows_old: false,
                });
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
