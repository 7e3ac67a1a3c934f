//! memcached's text protocol, as a client writes and reads it.

use super::Request;
use super::stream::{Codec, Reply, answered, value};
use crate::history::{Action, Answer};

/// The text protocol.
pub struct Text;

impl Codec for Text {
    fn write(&self, request: &Request, _: u32, out: &mut Vec<u8>) {
        let key = request.keys.first().map_or("", |key| key);
        let mut store = |verb: &str, value: &[u8], expiry_s: u32, unique: &str| {
            let bytes = value.len();
            let line = format!("{verb} {key} 0 {expiry_s} {bytes}{unique}\r\n");
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        let line = match &request.action {
            Action::Get => format!("gets {}\r\n", request.keys.join(" ")),
            Action::Set(value, expiry_s) => return store("set", value, *expiry_s, ""),
            Action::Add(value, expiry_s) => return store("add", value, *expiry_s, ""),
            Action::Replace(value, expiry_s) => return store("replace", value, *expiry_s, ""),
            Action::Append(value) => return store("append", value, 0, ""),
            Action::Cas(_, value) => {
                return store("cas", value, 0, &format!(" {}", request.unique));
            }
            Action::Delete => format!("delete {key}\r\n"),
            Action::Increment(delta) => format!("incr {key} {delta}\r\n"),
            Action::Touch(expiry_s) => format!("touch {key} {expiry_s}\r\n"),
            Action::GetAndTouch(expiry_s) => format!("gats {expiry_s} {key}\r\n"),
            Action::Count(_) | Action::Lose => {
                unreachable!("the text protocol has no {}", request.action)
            }
            Action::Flush(after_s) => flush(*after_s),
        };
        out.extend_from_slice(line.as_bytes());
    }

    fn read(&self, request: &Request, _: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
        let Some(line) = line(bytes) else {
            return Ok(None);
        };
        if matches!(request.action, Action::Get | Action::GetAndTouch(_)) {
            return read_values(request, bytes);
        }
        let answer = match (&request.action, line) {
            (_, "STORED" | "DELETED" | "TOUCHED" | "OK") => Answer::Done,
            (Action::Cas(..), "EXISTS") => Answer::Exists,
            (_, "NOT_FOUND") => Answer::Absent,
            (_, "NOT_STORED") => Answer::NotStored,
            (_, line) if line.starts_with("SERVER_ERROR out of memory") => Answer::NoMemory,
            (Action::Increment(_), number) if number.parse::<u64>().is_ok() => {
                Answer::Number(number.parse().unwrap_or_default())
            }
            (action, line) => return Err(format!("{action} was answered {line:?}")),
        };
        answered(line.len() + 2, answer)
    }
}

/// Writes `flush_all`.
pub fn flush(after_s: u32) -> String {
    match after_s {
        0 => "flush_all\r\n".into(),
        _ => format!("flush_all {after_s}\r\n"),
    }
}

/// The first line, if it is complete.
pub fn line(bytes: &[u8]) -> Option<&str> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some(std::str::from_utf8(&bytes[..end]).unwrap_or("<no text>"))
}

/// `VALUE <key> <flags> <bytes> <unique>`, the value, and in the end `END`. Values come in the
/// order of the keys.
fn read_values(request: &Request, bytes: &[u8]) -> Result<Option<Reply>, String> {
    let mut reply = Reply {
        bytes: 0,
        answers: vec![Answer::Value(None); request.keys.len()],
        uniques: vec![0; request.keys.len()],
    };
    let mut next = 0;
    loop {
        let Some(head) = line(&bytes[reply.bytes..]) else {
            return Ok(None);
        };
        reply.bytes += head.len() + 2;
        let is_alone = matches!(request.action, Action::GetAndTouch(_)) && request.keys.len() == 1;
        if is_alone && head.starts_with("SERVER_ERROR out of memory") {
            reply.answers = vec![Answer::NoMemory];
            return Ok(Some(reply));
        }
        if head == "END" {
            return Ok(Some(reply));
        }
        let wrong = || format!("get {} was answered {head:?}", request.keys.join(" "));
        let fields: Vec<&str> = head.split(' ').collect();
        let ["VALUE", key, "0", length, unique] = fields[..] else {
            return Err(wrong());
        };
        let index = request.keys[next..].iter().position(|asked| asked == key);
        let index = next + index.ok_or_else(wrong)?;
        let length: usize = length.parse().map_err(|_| wrong())?;
        let rest = &bytes[reply.bytes..];
        if rest.len() < length + 2 {
            return Ok(None);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(format!("{}, whose value does not end there", wrong()));
        }
        reply.answers[index] = Answer::Value(Some(value(&rest[..length])));
        reply.uniques[index] = unique.parse().map_err(|_| wrong())?;
        reply.bytes += length + 2;
        next = index + 1;
    }
}
