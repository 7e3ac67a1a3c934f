//! `delete`, `incr`, `decr`, `touch`: a line with a key and no value.

use super::Reply;
use super::line::Line;
use super::step::Step;
use super::tokens::Words;
use super::{lines, number};
use crate::{Form, Request, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// Parses the words of a command. The error is the error line.
type ReadVerb = fn(&Words<'_>) -> Result<Verb<'static>, &'static str>;

/// Parses the line; `None` if it is a different command.
pub(super) fn read<'a>(line: &Line<'a>, name: &[u8], words: &Words<'a>) -> Option<Step<'a>> {
    let (wanted, verb): (_, ReadVerb) = match name {
        b"delete" => (2, |words| check_key(words).map(|()| Verb::Delete)),
        b"incr" => (3, |words| {
            Ok(Verb::Increment {
                delta: delta(words)?,
            })
        }),
        b"decr" => (3, |words| {
            Ok(Verb::Decrement {
                delta: delta(words)?,
            })
        }),
        b"touch" => (3, touch),
        _ => return None,
    };
    if words.count() < wanted {
        return Some(line.refuse(lines::BAD_LINE));
    }
    let quiet = words.are_quiet();
    Some(match verb(words) {
        Err(reason) => line.refuse(lines::unless(quiet, reason)),
        Ok(verb) => {
            let form = Form::Text(Reply::to_one(quiet));
            Step::Request {
                used: line.used,
                request: Request {
                    key: words.at(1),
                    verb,
                    form,
                },
            }
        }
    })
}

fn delta(words: &Words<'_>) -> Result<u64, &'static str> {
    check_key(words)?;
    number::digits_64(words.at(2)).ok_or(lines::BAD_DELTA)
}

fn touch(words: &Words<'_>) -> Result<Verb<'static>, &'static str> {
    check_key(words)?;
    let exptime = number::signed_digits_32(words.at(2)).ok_or(lines::BAD_EXPTIME)?;
    Ok(Verb::Touch {
        exptime: exptime.into(),
    })
}

fn check_key(words: &Words<'_>) -> Result<(), &'static str> {
    if words.at(1).len() > KEY_BYTES_MAX {
        Err(lines::BAD_LINE)
    } else {
        Ok(())
    }
}
