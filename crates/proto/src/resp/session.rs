//! Commands of the connection, most of which the parser answers by itself.

use super::caching;
use super::call::Call;
use super::form::Version;
use super::lines;
use super::names::upper;
use super::state::Caching;
use super::words::{DEFAULT_USER, Words};
use crate::control::{Control, Credentials};
use crate::integer;
use crate::sections::Sections;
use crate::text::Step;

/// `PING [text]`. As in Redis, its arguments are counted when it is executed.
pub(super) fn ping<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    match call.arguments[1..] {
        [] => call.refuse(lines::PONG),
        [text] => call.answer(Words::Text, text),
        _ => call.refuse(lines::PING_ARITY),
    }
}

/// `AUTH [user] password`.
pub(super) fn auth<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let (user, password, words) = match call.arguments[1..] {
        [password] => (DEFAULT_USER, password, Words::Status),
        [user, password] => (user, password, Words::Login),
        _ => return call.answer(Words::BadAuth, &[]),
    };
    call.control(Control::Login(Some(Credentials { user, password })), words)
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`. Also returns the version from here on.
pub(super) fn hello<'a>(call: &Call<'_, 'a>, before: Version) -> (Step<'a>, Version) {
    let same = |step| (step, before);
    let version = match call.arguments.get(1).map(|text| integer::signed_64(text)) {
        None => before,
        Some(Some(2)) => Version::Two,
        Some(Some(3)) => Version::Three,
        Some(Some(_)) => return same(call.refuse(lines::NO_PROTO)),
        Some(None) => return same(call.refuse(lines::BAD_PROTO)),
    };
    let mut credentials = None;
    let mut options = call.arguments.get(2..).unwrap_or_default();
    while let [option, rest @ ..] = options {
        let mut buffer = [0; 8];
        options = match (upper(option, &mut buffer), rest) {
            (b"AUTH", &[user, password, ref rest @ ..]) => {
                credentials = Some(Credentials { user, password });
                rest
            }
            (b"SETNAME", [_, rest @ ..]) => rest,
            _ => return same(call.answer(Words::BadHelloOption, option)),
        };
    }
    let words = Words::Hello(version);
    let control = match credentials {
        Some(_) => Control::Login(credentials),
        None => Control::ConnectionId,
    };
    (call.control(control, words), version)
}

/// `SELECT index`: there is one database.
pub(super) fn select<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    call.refuse(match integer::signed_64(call.arguments[1]) {
        Some(0) => lines::OK,
        Some(_) => lines::BAD_INDEX,
        None => lines::NOT_AN_INTEGER,
    })
}

/// `CLIENT subcommand ...`: names are taken and forgotten. Also returns whether the client keeps
/// what it reads from here on.
pub(super) fn client<'a>(call: &Call<'_, 'a>, before: Caching) -> (Step<'a>, Caching) {
    let mut buffer = [0; 8];
    let step = match (upper(call.arguments[1], &mut buffer), call.count) {
        (b"TRACKING", 3..) => return caching::tracking(call, before),
        (b"CACHING", 3) => return caching::caching(call, before),
        (b"LIST", 2) => call.control(Control::Clients, Words::Words(call.version)),
        // Nothing is evicted from clients, and reads are counted as ever.
        (b"NO-EVICT" | b"NO-TOUCH", 3) => call.refuse(lines::OK),
        (b"SETINFO", 4) | (b"SETNAME", 3) => call.refuse(lines::OK),
        (b"GETNAME", 2) => call.refuse(call.version.null()),
        (b"ID", 2) => call.control(Control::ConnectionId, Words::ConnectionId),
        // It shows all of them, whatever their types and numbers.
        (b"LIST", _) => call.refuse(lines::SYNTAX),
        (b"TRACKING", _) => call.answer(Words::WrongArity("client|tracking"), &[]),
        (b"CACHING", _) => call.answer(Words::WrongArity("client|caching"), &[]),
        (b"NO-EVICT", _) => call.answer(Words::WrongArity("client|no-evict"), &[]),
        (b"NO-TOUCH", _) => call.answer(Words::WrongArity("client|no-touch"), &[]),
        (b"SETINFO", _) => call.answer(Words::WrongArity("client|setinfo"), &[]),
        (b"SETNAME", _) => call.answer(Words::WrongArity("client|setname"), &[]),
        (b"GETNAME", _) => call.answer(Words::WrongArity("client|getname"), &[]),
        (b"ID", _) => call.answer(Words::WrongArity("client|id"), &[]),
        _ => call.other_subcommand("CLIENT"),
    };
    (step, before)
}

/// `INFO [section ...]`.
pub(super) fn info<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let sections = Sections::of(&call.arguments[1..]);
    call.control(Control::Info(sections), Words::Info(call.version))
}

/// `SLOWLOG` and `LATENCY`, in which nothing is ever written here.
pub(super) fn logs<'a>(call: &Call<'_, 'a>, command: &'static str) -> Step<'a> {
    let mut buffer = [0; 12];
    match (command, upper(call.arguments[1], &mut buffer), call.count) {
        ("SLOWLOG", b"LEN", 2) => call.refuse(lines::ZERO),
        ("SLOWLOG", b"GET", _) | ("LATENCY", b"LATEST", 2) => call.answer(Words::EmptyArray, &[]),
        ("SLOWLOG", b"RESET", 2) => call.refuse(lines::OK),
        ("LATENCY", b"HISTOGRAM", _) => call.answer(Words::EmptyMap(call.version), &[]),
        // That many kinds of events are forgotten.
        ("LATENCY", b"RESET", _) => call.refuse(lines::ZERO),
        ("SLOWLOG", b"LEN", _) => call.answer(Words::WrongArity("slowlog|len"), &[]),
        ("SLOWLOG", b"RESET", _) => call.answer(Words::WrongArity("slowlog|reset"), &[]),
        ("LATENCY", b"LATEST", _) => call.answer(Words::WrongArity("latency|latest"), &[]),
        _ => call.other_subcommand(command),
    }
}

/// `FLUSHALL` and `FLUSHDB`. Nothing takes long, so `ASYNC` and `SYNC` are the same.
pub(super) fn flush<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut buffer = [0; 8];
    let how = call.arguments.get(1).copied().unwrap_or_default();
    match (call.count, upper(how, &mut buffer)) {
        (1, _) | (2, b"ASYNC" | b"SYNC") => {
            call.control(Control::Flush { exptime: 0 }, Words::Status)
        }
        _ => call.refuse(lines::SYNTAX),
    }
}

/// `COMMAND` and `CONFIG`: clients ask and can do without the answer.
pub(super) fn describe<'a>(call: &Call<'_, 'a>, command: &'static str) -> Step<'a> {
    let mut buffer = [0; 8];
    let subcommand = call.arguments.get(1).copied().unwrap_or_default();
    match (command, upper(subcommand, &mut buffer)) {
        ("COMMAND", _) if call.count == 1 => call.answer(Words::EmptyArray, &[]),
        ("COMMAND", b"COUNT") if call.count == 2 => call.answer(Words::CommandCount, &[]),
        ("COMMAND", b"COUNT") => call.answer(Words::WrongArity("command|count"), &[]),
        ("COMMAND", b"INFO" | b"LIST") => call.answer(Words::EmptyArray, &[]),
        ("CONFIG", b"GET") if call.count == 2 => call.answer(Words::WrongArity("config|get"), &[]),
        ("CONFIG", b"GET") => call.answer(Words::Settings(call.version), call.whole),
        ("COMMAND", b"DOCS") => call.answer(Words::EmptyMap(call.version), &[]),
        _ => call.other_subcommand(command),
    }
}
