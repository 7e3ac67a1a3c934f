//! The parser's steps for every kind of input. The replies to malformed commands are those of
//! memcached 1.6.45 for the same bytes; the row says so where ours differ.

mod admin;
mod change;
mod lines;
mod open_lines;
mod refusal;
mod retrieval;
mod storage;

use glimmer_proto::text::{Admin, After, Limits, Parser, Reply, Step, lines as reply};
use glimmer_proto::{Form, Refusal, Request, StoreMode, Verb};

/// The expected steps, without byte counts: these are verified by adding them up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Out<'a> {
    /// A request, and whether it is quiet.
    Do(&'a [u8], Verb<'a>, bool),
    /// A key of a retrieval: key, exptime of `gat`, `gets`, last.
    Key(&'a [u8], Option<i64>, bool, bool),
    Admin(Admin<'a>),
    Say(&'static str),
    Close,
}

/// All steps for the given bytes. Panics if bytes are left over.
fn steps(mut input: &[u8]) -> Vec<Out<'_>> {
    let mut parser = Parser::new(Limits::default());
    let mut out = Vec::new();
    while !input.is_empty() {
        let used = match parser.next(input) {
            Step::Need { need, .. } => panic!("wants {need} bytes, has {:?}", text(input)),
            Step::Swallowed { used } => used,
            Step::Answer { .. } | Step::Queue { .. } => panic!("the text protocol has lines"),
            Step::Admin { used, admin } => {
                out.push(Out::Admin(admin));
                used
            }
            Step::Request { used, request } => {
                out.push(out_of(request));
                used
            }
            Step::Refuse { used, line, then } => {
                if then == After::Close {
                    out.push(Out::Close);
                    return out;
                }
                out.push(Out::Say(line));
                used
            }
        };
        input = &input[used..];
    }
    out
}

fn out_of(request: Request<'_>) -> Out<'_> {
    let Form::Text(Reply { cas, last, quiet }) = request.form else {
        panic!("the line holds no meta command")
    };
    match request.verb {
        Verb::Get => Out::Key(request.key, None, cas, last),
        Verb::GetAndTouch { exptime } => Out::Key(request.key, Some(exptime), cas, last),
        verb => {
            assert!(
                last && !cas,
                "only retrievals have several keys and show uniques"
            );
            Out::Do(request.key, verb, quiet)
        }
    }
}

fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(120)
        .copied()
        .flat_map(std::ascii::escape_default)
        .map(char::from)
        .collect()
}

#[track_caller]
fn check(rows: &[(&[u8], &[Out<'_>])]) {
    for (input, expected) in rows {
        assert_eq!(steps(input), *expected, "for {:?}", text(input));
    }
}

fn get(key: &[u8]) -> Out<'_> {
    Out::Key(key, None, false, true)
}

fn store<'a>(mode: StoreMode, flags: u32, exptime: i64, value: &'a [u8]) -> Out<'a> {
    Out::Do(
        b"k",
        Verb::Store {
            mode,
            flags,
            exptime,
            value,
        },
        false,
    )
}

fn set<'a>(flags: u32, exptime: i64, value: &'a [u8]) -> Out<'a> {
    store(StoreMode::Set, flags, exptime, value)
}

fn quiet(out: Out<'_>) -> Out<'_> {
    match out {
        Out::Do(key, verb, false) => Out::Do(key, verb, true),
        other => panic!("{other:?} cannot be made quiet"),
    }
}

fn verb(verb: Verb<'static>) -> Out<'static> {
    Out::Do(b"k", verb, false)
}

const ERROR: Out<'static> = Out::Say(reply::ERROR);
const BAD_LINE: Out<'static> = Out::Say(reply::BAD_LINE);
const BAD_EXPTIME: Out<'static> = Out::Say(reply::BAD_EXPTIME);
const BAD_DELTA: Out<'static> = Out::Say(reply::BAD_DELTA);
const BAD_CHUNK: Out<'static> = Out::Say(reply::BAD_CHUNK);
const SILENCE: Out<'static> = Out::Say("");

/// A command line with a key of this length.
fn with_key(before: &str, key_bytes: usize, tail: &str) -> Vec<u8> {
    format!("{before}{}{tail}", "k".repeat(key_bytes)).into_bytes()
}
