//! What each command makes of its arguments.

use super::call::Call;
use super::form::Shows;
use super::frame::{Arguments, Style};
use super::keys::keys;
use super::names::{NAME_BYTES_MAX, arity, upper};
use super::state::{Each, Parser};
use super::words::Words;
use super::{lines, moves, scan, scripts, session, set, string};
use crate::control::Control;
use crate::request::{Condition, ExpireWhen, Lifetime};
use crate::text::Step;
use crate::{Verb, foreign};

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
        b"EXISTS" | b"TOUCH" => Each::Look,
        b"MSET" if count.is_multiple_of(2) => return call.answer(Words::WrongArity("mset"), &[]),
        b"MSET" => Each::Set,
        b"HELLO" => {
            let (step, version) = session::hello(&call, parser.version);
            parser.version = version;
            return step;
        }
        b"MULTI" => return parser.begin_multi(whole.len()),
        b"CLIENT" => {
            let (step, caching) = session::client(&call, parser.caching);
            parser.caching = caching.after_client();
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
        b"EXPIRETIME" => call.request(Verb::Get, Shows::UnixSecond),
        b"PEXPIRETIME" => call.request(Verb::Get, Shows::UnixMillisecond),
        b"EXPIRE" => string::expire(call, "expire", 1000, false),
        b"PEXPIRE" => string::expire(call, "pexpire", 1, false),
        b"EXPIREAT" => string::expire(call, "expireat", 1000, true),
        b"PEXPIREAT" => string::expire(call, "pexpireat", 1, true),
        b"PERSIST" => {
            let (lifetime, when) = (Lifetime::Unlimited, ExpireWhen::Always);
            call.request(Verb::Expire { lifetime, when }, Shows::Flag)
        }
        b"GETEX" => string::get_and_expire(call),
        b"GETDEL" => call.request(Verb::Take, Shows::Value),
        b"DELIFEQ" => {
            let value = call.arguments[2];
            call.request(Verb::DeleteEqual { value }, Shows::Flag)
        }
        b"APPEND" => string::append(call),
        b"GETRANGE" | b"SUBSTR" => string::range(call),
        b"SETRANGE" => string::overlay(call),
        b"INCRBYFLOAT" => string::add_decimal(call),
        b"SETEX" => set::with_lifetime(call, "setex", 1000),
        b"PSETEX" => set::with_lifetime(call, "psetex", 1),
        b"SETNX" => set::plain(call, Condition::Absent, Shows::Flag),
        b"GETSET" => set::plain(call, Condition::Always, Shows::Value),
        b"PING" => session::ping(call),
        b"ECHO" => call.answer(Words::Text, call.arguments[1]),
        b"AUTH" => session::auth(call),
        b"SELECT" => session::select(call),
        b"COMMAND" => session::describe(call, "COMMAND"),
        b"CONFIG" => session::describe(call, "CONFIG"),
        b"INFO" => session::info(call),
        b"TIME" => call.control(Control::Time, Words::Time),
        b"DBSIZE" => call.control(Control::Size, Words::Number),
        b"EVAL" => scripts::eval(call),
        b"EVALSHA" => scripts::eval_digest(call),
        b"SCRIPT" => scripts::script(call),
        b"COPY" => moves::copy(call),
        b"RENAME" => moves::rename(call, true, Words::Renamed),
        b"RENAMENX" => moves::rename(call, false, Words::RenamedIfFree),
        b"RANDOMKEY" => call.control(Control::RandomKey, Words::RandomKey(call.version)),
        b"KEYS" => scan::keys(call),
        b"SCAN" => scan::scan(call),
        b"OBJECT" => string::object(call),
        b"MEMORY" => string::memory(call),
        b"SLOWLOG" => session::logs(call, "SLOWLOG"),
        b"LATENCY" => session::logs(call, "LATENCY"),
        b"FLUSHALL" | b"FLUSHDB" => session::flush(call),
        b"QUIT" => call.control(Control::Quit, Words::Status),
        b"EXEC" => call.refuse(lines::EXEC_ALONE),
        b"DISCARD" => call.refuse(lines::DISCARD_ALONE),
        b"WATCH" => call.refuse(lines::WATCH),
        b"UNWATCH" => call.refuse(lines::OK),
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
        b"SET" | b"SETEX" | b"PSETEX" | b"SETNX" | b"GETSET" | b"MSET" | b"APPEND" | b"SETRANGE"
    );
    let fits = |(least, most, _)| (least..=most).contains(&count);
    is_store && arity(name).is_some_and(fits)
}
