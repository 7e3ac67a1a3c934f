//! Lines of `get`, `gets`, `gat` and `gats` that are too long to be parsed as a whole: their keys
//! are handed out as they arrive, and the parser keeps nothing of the line.
//!
//! What is wrong with a key is therefore found after the keys before it were answered. The values
//! of those are followed by the line that refuses the command, and the rest of the line is skipped.

use super::Reply;
use super::step::{After, Step};
use super::{lines, number, tokens};
use crate::{Form, Request, Verb};
use glimmer_base::limits::{KEY_BYTES_MAX, LINE_BYTES_MAX};

/// Where in such a line the parser is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenLine {
    /// Between two keys.
    Keys(Keys),
    /// In what is left of a line that was refused.
    Refused,
}

/// What was said before the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    exptime: Option<i32>,
    cas: bool,
    /// A key of the line came before.
    follows: bool,
}

/// A step, and where in the line the parser is after it; `None`: at the next line.
type Stepped<'a> = (Step<'a>, Option<OpenLine>);

/// Begins a line of a retrieval that is longer than [`LINE_BYTES_MAX`].
#[cold]
pub(super) fn begin(input: &[u8]) -> Stepped<'static> {
    // However much has arrived, the same bytes are looked at.
    let text = &input[..LINE_BYTES_MAX];
    let (name, rest) = text.split_at(tokens::word_len(text));
    let cas = name.ends_with(b"s");
    let (exptime, rest) = match name {
        b"get" | b"gets" => (None, rest),
        b"gat" | b"gats" => {
            let Some((word, rest)) = tokens::first(rest) else {
                return refuse(text.len(), lines::BAD_LINE);
            };
            let Some(exptime) = number::signed_digits_32(word) else {
                return refuse(text.len(), lines::BAD_EXPTIME);
            };
            (Some(exptime), rest)
        }
        // As in memcached, a space in front makes the line one of no command.
        _ => return refuse(text.len(), lines::ERROR),
    };
    let keys = Keys {
        exptime,
        cas,
        follows: false,
    };
    let used = text.len() - rest.len();
    (Step::Swallowed { used }, Some(OpenLine::Keys(keys)))
}

/// Refuses the line, of which this many bytes are used, and skips its rest.
fn refuse(used: usize, line: &'static str) -> Stepped<'static> {
    let then = After::Continue;
    (Step::Refuse { used, line, then }, Some(OpenLine::Refused))
}

impl OpenLine {
    /// The next key, or the end of the line.
    pub fn next(self, input: &[u8]) -> Stepped<'_> {
        match self {
            OpenLine::Keys(keys) => keys.next(input),
            OpenLine::Refused => self.skip(input),
        }
    }

    /// Skips what there is of a line that was refused.
    #[cold]
    fn skip(self, input: &[u8]) -> Stepped<'static> {
        if input.is_empty() {
            return (Step::need(1), Some(self));
        }
        match memchr::memchr(b'\n', input) {
            Some(newline) => (Step::Swallowed { used: newline + 1 }, None),
            None => (Step::Swallowed { used: input.len() }, Some(self)),
        }
    }
}

impl Keys {
    fn next(self, input: &[u8]) -> Stepped<'_> {
        let stays = Some(OpenLine::Keys(self));
        if input.starts_with(b" ") {
            let rest = tokens::without_leading_spaces(input);
            let used = input.len() - rest.len();
            return (Step::Swallowed { used }, stays);
        }
        // A key of the greatest length, and a line end.
        let most = KEY_BYTES_MAX + tokens::LINE_END.len();
        let word = &input[..input.len().min(most)];
        let Some(end) = memchr::memchr2(b' ', b'\n', word) else {
            return match word.len() < most {
                true => (Step::need(input.len() + 1), stays),
                false => refuse(word.len(), lines::BAD_LINE),
            };
        };
        let used = end + 1;
        let is_last = word[end] == b'\n';
        let key = match is_last {
            true => word[..end].strip_suffix(b"\r").unwrap_or(&word[..end]),
            false => &word[..end],
        };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            // Only the end of the line comes without a key before it.
            let line = match key.is_empty() && self.follows {
                true => lines::END,
                false => lines::BAD_LINE,
            };
            let (step, refused) = refuse(used, line);
            return (step, refused.filter(|_| !is_last));
        }
        let verb = match self.exptime {
            None => Verb::Get,
            Some(exptime) => Verb::GetAndTouch {
                exptime: exptime.into(),
            },
        };
        let form = Form::Text(Reply {
            cas: self.cas,
            last: is_last,
            quiet: self.follows || !is_last,
        });
        let request = Request { key, verb, form };
        let next = OpenLine::Keys(Keys {
            follows: true,
            ..self
        });
        (Step::Request { used, request }, (!is_last).then_some(next))
    }
}
