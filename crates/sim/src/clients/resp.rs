//! RESP, the protocol of Redis, as a client writes and reads it.

use super::Request;
use super::stream::{Codec, Reply, answered, value};
use super::text::line;
use crate::history::{Action, Answer};

/// RESP.
pub struct Resp;

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
        out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(&word);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
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
