//! Commands that give an item another key.

use super::call::{Call, is_key};
use super::lines;
use super::names::upper;
use super::words::Words;
use crate::control::{Control, Move};
use crate::integer;
use crate::text::Step;

/// `COPY from to [DB index] [REPLACE]`: there is one database.
pub(super) fn copy<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut replaces = false;
    let mut options = call.arguments.get(3..).unwrap_or_default();
    while let [option, rest @ ..] = options {
        let mut buffer = [0; 8];
        options = match (upper(option, &mut buffer), rest) {
            (b"REPLACE", rest) => {
                replaces = true;
                rest
            }
            (b"DB", &[index, ref rest @ ..]) => match integer::signed_64(index) {
                Some(0) => rest,
                Some(_) => return call.refuse(lines::BAD_INDEX),
                None => return call.refuse(lines::NOT_AN_INTEGER),
            },
            _ => return call.refuse(lines::SYNTAX),
        };
    }
    if call.arguments[1] == call.arguments[2] {
        return call.refuse(lines::SAME_KEY);
    }
    request(call, replaces, false, Words::Copied)
}

/// `RENAME from to` and `RENAMENX from to`.
pub(super) fn rename<'a>(call: &Call<'_, 'a>, replaces: bool, words: Words) -> Step<'a> {
    request(call, replaces, true, words)
}

fn request<'a>(call: &Call<'_, 'a>, replaces: bool, removes: bool, words: Words) -> Step<'a> {
    let (from, to) = (call.arguments[1], call.arguments[2]);
    if !is_key(from) || !is_key(to) {
        return call.refuse(lines::BAD_KEY);
    }
    let wanted = Move {
        from,
        to,
        replaces,
        removes,
    };
    call.control(Control::Move(wanted), words)
}
