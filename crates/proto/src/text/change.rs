//! `delete`, `incr`, `decr`, `touch`: a line with a key and no value.

use super::parser::Line;
use super::step::Step;
use super::tokens::Words;
use super::{lines, number};
use crate::{Form, Request, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// What a command makes of its words, or the line that says what is wrong with them.
type ReadVerb = fn(&Words<'_>) -> Result<Verb<'static>, &'static str>;

/// Reads the line, or leaves it if it is another command's.
pub(super) fn read<'a>(line: &Line<'a>, words: &Words<'a>) -> Option<Step<'a>> {
    let (wanted, verb): (_, ReadVerb) = match words.at(0) {
        b"delete" => (2..=4, delete),
        b"incr" => (3..=4, |words| {
            Ok(Verb::Increment {
                delta: delta(words)?,
            })
        }),
        b"decr" => (3..=4, |words| {
            Ok(Verb::Decrement {
                delta: delta(words)?,
            })
        }),
        b"touch" => (3..=4, touch),
        _ => return None,
    };
    if !wanted.contains(&words.count()) {
        return Some(line.refuse(lines::ERROR));
    }
    // The name of the key cannot be the wish for no answer: `delete noreply` deletes.
    let quiet = words.count() > 2 && words.are_quiet();
    Some(match verb(words) {
        Err(reason) => line.refuse(lines::unless(quiet, reason)),
        Ok(verb) => {
            let form = Form::Text {
                cas: false,
                last: true,
                quiet,
            };
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

/// Old clients send a time of 0 behind the key; anything else there is an error, and it is noticed before the key's length.
fn delete(words: &Words<'_>) -> Result<Verb<'static>, &'static str> {
    let is_good = match words.count() {
        2 => true,
        3 => words.at(2) == b"0" || words.are_quiet(),
        _ => words.at(2) == b"0" && words.are_quiet(),
    };
    if !is_good {
        return Err(lines::BAD_DELETE);
    }
    check_key(words).map(|()| Verb::Delete)
}

fn delta(words: &Words<'_>) -> Result<u64, &'static str> {
    check_key(words)?;
    number::unsigned_64(words.at(2)).ok_or(lines::BAD_DELTA)
}

fn touch(words: &Words<'_>) -> Result<Verb<'static>, &'static str> {
    check_key(words)?;
    let exptime = number::signed_32(words.at(2)).ok_or(lines::BAD_EXPTIME)?;
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
