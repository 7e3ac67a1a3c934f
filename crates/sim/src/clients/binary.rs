//! memcached's binary protocol, as a client writes and reads it.

use super::Request;
use super::stream::{Codec, Reply, answered, value};
use crate::history::{Action, Answer};

/// The binary protocol.
pub struct Binary;

const HEADER_BYTES: usize = 24;
/// What `INCREMENT` says instead of creating a number.
const NO_CREATION: u32 = u32::MAX;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const ADD: u8 = 0x02;
const REPLACE: u8 = 0x03;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const FLUSH: u8 = 0x08;
const APPEND: u8 = 0x0e;
const NOOP: u8 = 0x0a;
const TOUCH: u8 = 0x1c;
const GET_AND_TOUCH: u8 = 0x1d;

fn opcode(request: &Request) -> u8 {
    if request.is_quiet {
        return match &request.action {
            Action::Get => 0x09,
            Action::GetAndTouch(_) => 0x1e,
            Action::Add(..) => 0x12,
            Action::Replace(..) => 0x13,
            Action::Delete => 0x14,
            Action::Append(_) => 0x19,
            _ => 0x11,
        };
    }
    match &request.action {
        Action::Get => GET,
        Action::Set(..) | Action::Cas(..) => SET,
        Action::Add(..) => ADD,
        Action::Replace(..) => REPLACE,
        Action::Append(_) => APPEND,
        Action::Delete => DELETE,
        Action::Increment(_) | Action::Count(_) => INCREMENT,
        Action::Touch(_) => TOUCH,
        Action::GetAndTouch(_) => GET_AND_TOUCH,
        Action::Flush(_) => FLUSH,
        Action::Lose => unreachable!("no client asks the server to {}", request.action),
    }
}

/// What an increment says: by how much, and the number to create with its expiry time.
fn calculation(delta: u64, first: u64, expiry: u32) -> Vec<u8> {
    let numbers = [delta.to_be_bytes(), first.to_be_bytes()].concat();
    [&numbers[..], &expiry.to_be_bytes()].concat()
}

impl Codec for Binary {
    fn write(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        let key = request.keys.first().map_or(&b""[..], |key| key.as_bytes());
        let stored = |expiry_s: u32| [[0; 4], expiry_s.to_be_bytes()].concat();
        let (extras, value): (Vec<u8>, &[u8]) = match &request.action {
            Action::Set(value, expiry_s)
            | Action::Add(value, expiry_s)
            | Action::Replace(value, expiry_s) => (stored(*expiry_s), value),
            Action::Cas(_, value) => (stored(0), value),
            Action::Append(value) => (Vec::new(), value),
            Action::Increment(delta) => (calculation(*delta, 0, NO_CREATION), &[]),
            Action::Count(delta) => (calculation(*delta, *delta, 0), &[]),
            Action::Touch(expiry_s) | Action::GetAndTouch(expiry_s) => {
                (expiry_s.to_be_bytes().to_vec(), &[])
            }
            Action::Flush(after_s @ 1..) => (after_s.to_be_bytes().to_vec(), &[]),
            Action::Get | Action::Delete | Action::Flush(0) | Action::Lose => (Vec::new(), &[]),
        };
        let body = extras.len() + key.len() + value.len();
        out.extend_from_slice(&[0x80, opcode(request)]);
        out.extend_from_slice(&(key.len() as u16).to_be_bytes());
        out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
        out.extend_from_slice(&(body as u32).to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&request.unique.to_be_bytes());
        out.extend_from_slice(&extras);
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }

    fn usual_answer(&self, action: &Action) -> Option<Answer> {
        match action {
            Action::Get | Action::GetAndTouch(_) => Some(Answer::Value(None)),
            Action::Increment(_) | Action::Count(_) | Action::Flush(_) | Action::Touch(_) => None,
            _ => Some(Answer::Done),
        }
    }

    fn write_fence(&self, number: u32, out: &mut Vec<u8>) {
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (0x80, NOOP);
        header[12..16].copy_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&header);
    }

    fn read_fence(&self, number: u32, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let mut right = [0; HEADER_BYTES];
        (right[0], right[1]) = (0x81, NOOP);
        right[12..16].copy_from_slice(&number.to_be_bytes());
        match *header == right {
            true => Ok(Some(HEADER_BYTES)),
            false => Err(format!("noop {number} was answered {header:02x?}")),
        }
    }

    fn read(&self, request: &Request, number: u32, bytes: &[u8]) -> Result<Option<Reply>, String> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|next| header[at + next]));
        let length = HEADER_BYTES + word(8) as usize;
        let action = &request.action;
        if header[0] == 0x81
            && word(12) != number
            && request.is_quiet
            && let Some(usual) = self.usual_answer(action)
        {
            return answered(0, usual);
        }
        if header[0] != 0x81 || header[1] != opcode(request) || word(12) != number {
            return Err(format!(
                "{action}, request {number}, was answered {header:02x?}"
            ));
        }
        if bytes.len() < length {
            return Ok(None);
        }
        let extras = usize::from(header[4]);
        let body = &bytes[HEADER_BYTES + extras..length];
        let status = u16::from_be_bytes([header[6], header[7]]);
        let answer = match (action, status) {
            (Action::Get | Action::GetAndTouch(_), 0) => {
                let unique = u64::from_be_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| header[16 + at]));
                return Ok(Some(Reply {
                    bytes: length,
                    answers: vec![Answer::Value(Some(value(body)))],
                    uniques: vec![unique],
                }));
            }
            (Action::Get | Action::GetAndTouch(_), 1) => Answer::Value(None),
            (Action::Increment(_) | Action::Count(_), 0) => {
                let number = body.try_into().map(u64::from_be_bytes);
                Answer::Number(number.map_err(|_| format!("a number of {} bytes", body.len()))?)
            }
            (_, 0) => Answer::Done,
            (_, 1) => Answer::Absent,
            (_, 2) => Answer::Exists,
            (_, 5) => Answer::NotStored,
            (_, 0x82) => Answer::NoMemory,
            (_, status) => return Err(format!("{action} was answered with status {status:#x}")),
        };
        answered(length, answer)
    }
}
