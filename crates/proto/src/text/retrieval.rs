//! `get`, `gets`, `gat`, `gats`: any number of keys, one per step.

use super::Reply;
use super::line::Line;
use super::parser::{Parser, State};
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
    /// A key of the same command came before.
    follows: bool,
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
        follows: false,
    };
    let (used, request, state) = (keys.next(&line.input[start..])).expect("the line is complete");
    parser.state = state;
    Step::Request {
        used: start + used,
        request,
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
    /// Bytes of the line from the next key on.
    pub fn line_bytes(&self) -> usize {
        (self.text + self.end) as usize
    }

    /// The request for the next key, the bytes it uses, and the parser's state after it. `None` if
    /// the line is not complete.
    #[inline(always)]
    pub fn next(self, input: &[u8]) -> Option<(usize, Request<'_>, State)> {
        let line_bytes = self.line_bytes();
        if input.len() < line_bytes {
            return None;
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
                follows: true,
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
            quiet: self.follows || !last,
        });
        Some((used, Request { key, verb, form }, state))
    }
}
