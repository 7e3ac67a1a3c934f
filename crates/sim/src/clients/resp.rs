//! RESP, the protocol of Redis, as a client writes and reads it. Some requests are transactions of
//! one command, or of two: before the request, a long string that is sent back has the transaction
//! leave the server's receive buffer.

use super::Request;
use super::stream::{Codec, Reply, answered, value};
use super::text::line;
use crate::history::{Action, Answer};

/// RESP.
pub struct Resp;

/// One request in this many is a transaction. Every second transaction is a long one.
const TRANSACTIONS_SHARE: u32 = 4;

/// The bytes of a string that make a transaction long.
const LONG_BYTES: usize = 20_000;

/// The bytes of the string that is sent back in the transaction that a request is, which is this
/// number of its connection. None if it is no transaction.
fn echo_bytes(number: u32) -> Option<usize> {
    match number % (2 * TRANSACTIONS_SHARE) {
        0 => Some(LONG_BYTES),
        TRANSACTIONS_SHARE => Some(0),
        _ => None,
    }
}

fn write_words(words: &[Vec<u8>], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// How far the replies of a transaction have been read.
enum Opening {
    /// The reply to its request begins at this byte.
    At(usize),
    /// It was given up, and its replies end at this byte.
    GivenUp(usize),
}

/// Reads the replies of a transaction up to that to its request. None if they are not complete.
fn read_opening(echo_bytes: usize, bytes: &[u8]) -> Result<Option<Opening>, String> {
    let mut at = 0;
    let mut next = || {
        let head = line(&bytes[at..])?;
        at += head.len() + 2;
        Some(head)
    };
    let commands = if echo_bytes > 0 { 2 } else { 1 };
    let mut refusals = 0;
    for nth in 0..=commands {
        let Some(head) = next() else {
            return Ok(None);
        };
        match head {
            "+OK" if nth == 0 => {}
            "+QUEUED" if nth > 0 => {}
            head if nth > 0 && head.starts_with("-OOM") => refusals += 1,
            head => return Err(format!("command {nth} of a transaction: {head:?}")),
        }
    }
    let Some(head) = next() else {
        return Ok(None);
    };
    // The `EXEC` itself may be what there was no memory for.
    if refusals <= 1 && head.starts_with("-EXECABORT") {
        return Ok(Some(Opening::GivenUp(at)));
    }
    if refusals > 0 || head != format!("*{commands}") {
        return Err(format!(
            "after {refusals} refusals, EXEC was answered {head:?}"
        ));
    }
    if echo_bytes > 0 {
        let Some(head) = next() else {
            return Ok(None);
        };
        if head != format!("${echo_bytes}") {
            return Err(format!("a string that is sent back was answered {head:?}"));
        }
        at += echo_bytes + 2;
        if bytes.len() < at {
            return Ok(None);
        }
    }
    Ok(Some(Opening::At(at)))
}

impl Codec for Resp {
    fn write(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        let key = request.keys.first().map_or(&b""[..], |key| key.as_bytes());
        let numeral = |number: u64| number.to_string().into_bytes();
        let set = |value: &[u8], expiry_s: u32, condition: Option<&str>| {
            let mut words = vec![b"SET".to_vec(), key.to_vec(), value.to_vec()];
            // Both ways to say it have to mean the same.
            let (unit, expiry) = match number % 2 {
                0 => ("EX", u64::from(expiry_s)),
                _ => ("PX", u64::from(expiry_s) * 1000),
            };
            if expiry > 0 {
                words.extend([unit.into(), numeral(expiry)]);
            }
            words.extend(condition.map(Into::into));
            words
        };
        let of_key = |verb: &str, more: Option<Vec<u8>>| {
            let words = [verb.into(), key.to_vec()];
            words.into_iter().chain(more).collect()
        };
        let words: Vec<Vec<u8>> = match &request.action {
            Action::Get if request.keys.len() > 1 => {
                let keys = request.keys.iter().map(|key| key.clone().into_bytes());
                std::iter::once(b"MGET".to_vec()).chain(keys).collect()
            }
            Action::Set(value, expiry_s) => set(value, *expiry_s, None),
            Action::Add(value, expiry_s) => set(value, *expiry_s, Some("NX")),
            Action::Replace(value, expiry_s) => set(value, *expiry_s, Some("XX")),
            Action::Delete => of_key("DEL", None),
            Action::Count(1) => of_key("INCR", None),
            Action::Count(delta) => of_key("INCRBY", Some(numeral(*delta))),
            Action::Touch(expiry_s) => of_key("EXPIRE", Some(numeral((*expiry_s).into()))),
            Action::Flush(_) => vec![b"FLUSHALL".to_vec()],
            Action::Get => of_key("GET", None),
            other => unreachable!("RESP has no {other}"),
        };
        let Some(echo_bytes) = echo_bytes(number) else {
            return write_words(&words, out);
        };
        write_words(&[b"MULTI".to_vec()], out);
        if echo_bytes > 0 {
            write_words(&[b"ECHO".to_vec(), vec![b'e'; echo_bytes]], out);
        }
        write_words(&words, out);
        write_words(&[b"EXEC".to_vec()], out);
    }

    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
        let Some(echo_bytes) = echo_bytes(number) else {
            return read_reply(request, number, bytes);
        };
        match read_opening(echo_bytes, bytes)? {
            None => Ok(None),
            Some(Opening::At(at)) => {
                let reply = read_reply(request, number, &bytes[at..])?;
                Ok(reply.map(|reply| Reply {
                    bytes: at + reply.bytes,
                    ..reply
                }))
            }
            Some(Opening::GivenUp(bytes)) => Ok(Some(Reply {
                bytes,
                answers: vec![Answer::NoMemory; request.keys.len().max(1)],
                uniques: Vec::new(),
            })),
        }
    }
}

/// Reads the reply to a request that is this number of its connection.
fn read_reply(request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
    let Some(head) = line(bytes) else {
        return Ok(None);
    };
    let action = &request.action;
    let wrong = || format!("{action}, request {number}, was answered {head:?}");
    let after = head.len() + 2;
    let count = head.get(1..).and_then(|rest| rest.parse::<i64>().ok());
    let answer = match (action, head.as_bytes().first(), count) {
        (Action::Get, Some(b'*'), Some(count)) if count == request.keys.len() as i64 => {
            return strings(count as usize, after, bytes).map_err(|()| wrong());
        }
        (Action::Get, Some(b'$'), _) if request.keys.len() == 1 => {
            return strings(1, 0, bytes).map_err(|()| wrong());
        }
        (Action::Add(..) | Action::Replace(..), Some(b'$'), Some(-1)) => Answer::NotStored,
        (Action::Set(..) | Action::Add(..) | Action::Replace(..), Some(b'+'), _)
        | (Action::Flush(_), Some(b'+'), _)
        | (Action::Delete | Action::Touch(_), Some(b':'), Some(1)) => Answer::Done,
        (Action::Delete | Action::Touch(_), Some(b':'), Some(0)) => Answer::Absent,
        (Action::Count(_), Some(b':'), Some(number)) => Answer::Number(number as u64),
        (_, Some(b'-'), _) if head.starts_with("-OOM") => Answer::NoMemory,
        _ => return Err(wrong()),
    };
    answered(after, answer)
}
/// Reads this many strings, each of which may be missing.
fn strings(count: usize, mut at: usize, bytes: &[u8]) -> Result<Option<Reply>, ()> {
    let mut answers = Vec::with_capacity(count);
    while answers.len() < count {
        let Some(head) = line(&bytes[at..]) else {
            return Ok(None);
        };
        at += head.len() + 2;
        let length = head.strip_prefix('$').ok_or(())?;
        if length == "-1" {
            answers.push(Answer::Value(None));
            continue;
        }
        let length: usize = length.parse().map_err(|_| ())?;
        let Some(string) = bytes.get(at..at + length + 2) else {
            return Ok(None);
        };
        let (string, end) = string.split_at(length);
        if end != b"\r\n" {
            return Err(());
        }
        answers.push(Answer::Value(Some(value(string))));
        at += length + 2;
    }
    Ok(Some(Reply {
        bytes: at,
        answers,
        uniques: Vec::new(),
    }))
}
