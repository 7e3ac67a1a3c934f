//! memcached's meta commands, as a client writes and reads them.

use super::Request;
use super::stream::{Codec, Reply, answered, value};
use super::text::{self, line};
use crate::history::{Action, Answer};

/// The meta commands.
pub struct Meta;

impl Codec for Meta {
    fn write(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        let key = request.keys.first().map_or("", |key| key);
        let quiet = if request.is_quiet { " q" } else { "" };
        let end = format!("O{number}{quiet}\r\n");
        let mut store = |value: &[u8], flags: &str| {
            let bytes = value.len();
            out.extend_from_slice(format!("ms {key} {bytes} {flags} c {end}").as_bytes());
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        let line = match &request.action {
            Action::Get => format!("mg {key} v c {end}"),
            Action::GetAndTouch(expiry_s) => format!("mg {key} v c T{expiry_s} {end}"),
            Action::Touch(expiry_s) => format!("mg {key} T{expiry_s} {end}"),
            Action::Set(value, expiry_s) => return store(value, &format!("T{expiry_s}")),
            Action::Add(value, expiry_s) => return store(value, &format!("ME T{expiry_s}")),
            Action::Replace(value, expiry_s) => return store(value, &format!("MR T{expiry_s}")),
            Action::Append(value) => return store(value, "MA"),
            Action::Cas(_, value) => return store(value, &format!("C{}", request.unique)),
            Action::Delete => format!("md {key} {end}"),
            Action::Increment(delta) => format!("ma {key} D{delta} v {end}"),
            Action::Count(delta) => format!("ma {key} D{delta} N0 J{delta} v {end}"),
            Action::Flush(after_s) => text::flush(*after_s),
            Action::Lose => unreachable!("no client asks the server to {}", request.action),
        };
        out.extend_from_slice(line.as_bytes());
    }

    fn usual_answer(&self, action: &Action) -> Option<Answer> {
        match action {
            Action::Get | Action::GetAndTouch(_) => Some(Answer::Value(None)),
            Action::Touch(_) => Some(Answer::Absent),
            Action::Increment(_) | Action::Count(_) | Action::Flush(_) => None,
            _ => Some(Answer::Done),
        }
    }

    fn write_fence(&self, _: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"mn\r\n");
    }

    fn read_fence(&self, _: u32, bytes: &[u8]) -> Result<Option<usize>, String> {
        match line(bytes) {
            None => Ok(None),
            Some("MN") => Ok(Some("MN\r\n".len())),
            Some(other) => Err(format!("mn was answered {other:?}")),
        }
    }

    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
        let Some(head) = line(bytes) else {
            return Ok(None);
        };
        let action = &request.action;
        let wrong = || format!("{action}, request {number}, was answered {head:?}");
        let mut words = head.split(' ');
        let code = words.next().unwrap_or_default();
        let length = match code {
            "VA" => words.next().and_then(|length| length.parse::<usize>().ok()),
            _ => None,
        };
        let flag = |flag| words.clone().find_map(|word| word.strip_prefix(flag));
        let opaque = flag('O').and_then(|opaque| opaque.parse::<u32>().ok());
        let is_of_another = match opaque {
            Some(opaque) => opaque != number,
            None => matches!(code, "MN" | "OK"),
        };
        if is_of_another
            && let Some(usual) = self.usual_answer(action)
            && request.is_quiet
        {
            return answered(0, usual);
        }
        let is_flush = matches!(action, Action::Flush(_));
        if opaque != Some(number) && !is_flush && code.len() == 2 {
            return Err(wrong());
        }
        let bytes_of_line = head.len() + 2;
        let answer = match (action, code) {
            (Action::Get | Action::GetAndTouch(_), "EN") => Answer::Value(None),
            (Action::Touch(_), "EN") | (_, "NF") => Answer::Absent,
            (Action::Flush(_), "OK") => Answer::Done,
            (Action::Add(..) | Action::Replace(..) | Action::Append(_), "NS") => Answer::NotStored,
            (Action::Cas(..), "EX") => Answer::Exists,
            (Action::Get | Action::Increment(_), "HD") => return Err(wrong()),
            (_, "HD") => Answer::Done,
            (_, "VA") => {
                let length = length.ok_or_else(wrong)?;
                let rest = &bytes[bytes_of_line..];
                if rest.len() < length + 2 {
                    return Ok(None);
                }
                if &rest[length..length + 2] != b"\r\n" {
                    return Err(format!("{}, whose value does not end there", wrong()));
                }
                let unique = flag('c').and_then(|unique| unique.parse().ok());
                let bytes = bytes_of_line + length + 2;
                return shown(action, &rest[..length], bytes, unique).ok_or_else(wrong);
            }
            _ if head.starts_with("SERVER_ERROR out of memory") => Answer::NoMemory,
            _ => return Err(wrong()),
        };
        answered(bytes_of_line, answer)
    }
}

/// The reply that shows a value, if it answers what was asked.
fn shown(
    action: &Action,
    shown: &[u8],
    bytes: usize,
    unique: Option<u64>,
) -> Option<Option<Reply>> {
    let (answer, uniques) = match action {
        Action::Get | Action::GetAndTouch(_) => (Answer::Value(Some(value(shown))), vec![unique?]),
        Action::Increment(_) | Action::Count(_) => {
            let number = std::str::from_utf8(shown).ok()?.parse().ok()?;
            (Answer::Number(number), Vec::new())
        }
        _ => return None,
    };
    Some(Some(Reply {
        bytes,
        answers: vec![answer],
        uniques,
    }))
}
