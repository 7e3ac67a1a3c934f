//! `get`, `gets`, `gat`, `gats`: any number of keys, one per step.

use super::Reply;
use super::parser::{Line, Parser, State};
use super::step::Step;
use super::{lines, number, tokens};
use crate::{Form, Request, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// A valid line with keys that are yet to be returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Bytes of the line's text from the next key on.
    text: u32,
    /// Bytes between the end of the text and the next line.
    end: u32,
    exptime: Option<i32>,
    cas: bool,
}

/// Parses the common case: `get ` or `gets `, one key, then the line end. `None` for any other
/// line.
#[inline]
pub(super) fn plain_get<'a>(name: &'static str, rest: &'a [u8]) -> Option<Step<'a>> {
    // At most one byte more than a key is searched, so that a long line that arrives byte by byte
    // is not searched again and again.
    let key_bytes = tokens::plain_len(&rest[..rest.len().min(KEY_BYTES_MAX + 1)]);
    if !rest[key_bytes..].starts_with(b"\r\n") || key_bytes == 0 || key_bytes > KEY_BYTES_MAX {
        return None;
    }
    let key = &rest[..key_bytes];
    let form = Form::Text(Reply {
        cas: name == "gets ",
        last: true,
        quiet: false,
    });
    let request = Request {
        key,
        verb: Verb::Get,
        form,
    };
    Some(Step::Request {
        used: name.len() + key_bytes + "\r\n".len(),
        request,
    })
}

/// Parses `get` and `gets`; `rest` is the text after the name.
pub(super) fn start<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    rest: &'a [u8],
    cas: bool,
) -> Step<'a> {
    let keys = tokens::without_leading_spaces(rest);
    if keys.is_empty() {
        return line.refuse(lines::BAD_LINE);
    }
    hand_out(parser, line, keys, None, cas)
}

/// Parses `gat` and `gats`; `rest` is the text after the name.
pub(super) fn start_touching<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    rest: &'a [u8],
    cas: bool,
) -> Step<'a> {
    let Some((word, rest)) = tokens::first(rest) else {
        return line.refuse(lines::BAD_LINE);
    };
    let keys = tokens::without_leading_spaces(rest);
    if keys.is_empty() {
        return line.refuse(lines::BAD_LINE);
    }
    let Some(exptime) = number::signed_digits_32(word) else {
        return line.refuse(lines::BAD_EXPTIME);
    };
    hand_out(parser, line, keys, Some(exptime), cas)
}

/// Starts to return `keys`, of which there is at least one.
fn hand_out<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    keys: &'a [u8],
    exptime: Option<i32>,
    cas: bool,
) -> Step<'a> {
    if has_long_key(keys) {
        return line.refuse(lines::BAD_LINE);
    }
    // The keys are the end of the line's text.
    let start = line.text.len() - keys.len();
    let keys = Keys {
        text: keys.len() as u32,
        end: (line.used - line.text.len()) as u32,
        exptime,
        cas,
    };
    let (step, state) = keys.next(&line.input[start..]);
    parser.state = state;
    match step {
        Step::Request { used, request } => Step::Request {
            used: start + used,
            request,
        },
        other => other,
    }
}

fn has_long_key(keys: &[u8]) -> bool {
    let mut start = 0;
    for space in memchr::memchr_iter(b' ', keys) {
        if space - start > KEY_BYTES_MAX {
            return true;
        }
        start = space + 1;
    }
    keys.len() - start > KEY_BYTES_MAX
}

impl Keys {
    /// The next key, and the parser's state after it.
    #[inline]
    pub fn next(self, input: &[u8]) -> (Step<'_>, State) {
        let line_bytes = (self.text + self.end) as usize;
        if input.len() < line_bytes {
            return (Step::Need { need: line_bytes }, State::Keys(self));
        }
        let text = &input[..self.text as usize];
        let (key, tail) = text.split_at(tokens::word_len(text));
        let next = tokens::without_leading_spaces(tail);
        let last = next.is_empty();
        let (used, state) = if last {
            (line_bytes, State::START)
        } else {
            let keys = Keys {
                text: next.len() as u32,
                ..self
            };
            (text.len() - next.len(), State::Keys(keys))
        };
        let verb = match self.exptime {
            None => Verb::Get,
            Some(exptime) => Verb::GetAndTouch {
                exptime: exptime.into(),
            },
        };
        let form = Form::Text(Reply {
            cas: self.cas,
            last,
            quiet: false,
        });
        (
            Step::Request {
                used,
                request: Request { key, verb, form },
            },
            state,
        )
    }
}
