//! The most frequent form of `mg`; see `text::plain`.

use super::command::OPAQUE_BYTES_MAX;
use super::flags::{Flags, Set};
use crate::text::tokens;
use crate::{Form, Request, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// A key, and flags that change nothing and have no tokens except
/// the opaque. `rest` is the text after `mg `. `None` for any other line.
#[inline]
pub(crate) fn get(rest: &[u8]) -> Option<(usize, Request<'_>)> {
    // A line with only these flags is valid without parsing a number.
    const PLAIN: Set = Set::of(b"cfkmOqstv");
    let key_bytes = tokens::plain_len(&rest[..rest.len().min(KEY_BYTES_MAX + 1)]);
    if key_bytes == 0 || key_bytes > KEY_BYTES_MAX {
        return None;
    }
    let (key, line) = rest.split_at(key_bytes);
    let (mut at, mut seen) = (0, Set::default());
    while !line[at..].starts_with(tokens::LINE_END) {
        let [b' ', flag, tail @ ..] = &line[at..] else {
            return None;
        };
        if !flag.is_ascii_alphabetic() || !PLAIN.has(*flag) || !seen.insert(*flag) {
            return None;
        }
        let token_bytes = match flag {
            b'O' => tokens::plain_len(&tail[..tail.len().min(OPAQUE_BYTES_MAX)]),
            _ => 0,
        };
        if token_bytes == OPAQUE_BYTES_MAX {
            return None;
        }
        at += 2 + token_bytes;
    }
    let flags = Flags {
        text: line[..at].strip_prefix(b" ").unwrap_or_default(),
        base64_key: false,
    };
    let request = Request {
        key,
        verb: Verb::Get,
        form: Form::Meta(flags),
    };
    Some((
        "mg ".len() + key_bytes + at + tokens::LINE_END.len(),
        request,
    ))
}
