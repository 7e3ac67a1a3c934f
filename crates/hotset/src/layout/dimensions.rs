//! How long the parts of a slot are, and where its texts begin in them.
//!
//! ```text
//! line:  ··VALUE <key> <flags> <bytes> <cas>      the dots are two bytes of padding
//! body:  ······\r\n<value>\r\nEND\r\n             and six
//! ```
//!
//! The padding puts key and value at the beginning of a word.

use glimmer_base::limits::{HOT_VALUE_BYTES_MAX, KEY_BYTES_MAX};
use std::ops::Range;

/// Words of a slot before its line.
pub const HEAD_WORDS: usize = 10;
/// Words of the line: 8 bytes of padding and `VALUE `, and at most 287 bytes.
pub const LINE_WORDS: usize = if cfg!(loom) { 3 } else { 37 };
/// Words of the body: 8 bytes of padding and line end, a value, and 7 bytes after it.
pub const BODY_WORDS: usize = if cfg!(loom) { 2 } else { 177 };
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8 * (HEAD_WORDS + LINE_WORDS + BODY_WORDS);

/// Bytes of the line.
pub const LINE_BYTES: usize = 8 * LINE_WORDS;
/// Bytes of the body.
pub const BODY_BYTES: usize = 8 * BODY_WORDS;
/// Where the key begins in the line.
pub const KEY_AT: usize = 8;
/// Where the value begins in the body.
pub const VALUE_AT: usize = 8;

/// Longest key of a slot. Under loom it is a byte, so that there are few words to explore.
pub const KEY_MAX: usize = if cfg!(loom) { 1 } else { KEY_BYTES_MAX };
/// Longest value of a slot.
pub const VALUE_MAX: usize = if cfg!(loom) { 1 } else { HOT_VALUE_BYTES_MAX };

/// Where the line's text begins: `VALUE `.
pub const LINE_AT: usize = KEY_AT - VERB.len();
/// Where the body's text begins.
pub const BODY_AT: usize = VALUE_AT - CRLF.len();

/// What the line begins with.
pub const VERB: &[u8] = b"VALUE ";
/// What stands between line and value.
pub const CRLF: &[u8] = b"\r\n";
/// What follows the value.
pub const END: &[u8] = b"\r\nEND\r\n";

/// Bytes of the body's text around the value.
pub const AROUND_VALUE: usize = CRLF.len() + END.len();

const _: () =
    assert!(cfg!(loom) || KEY_AT + KEY_MAX + " 4294967295 1400 ".len() + 20 <= LINE_BYTES);
const _: () = assert!(VALUE_AT + VALUE_MAX + END.len() <= BODY_BYTES);
const _: () = assert!(
    KEY_AT.is_multiple_of(8) && VALUE_AT.is_multiple_of(8),
    "key and value begin a word"
);
const _: () = assert!(
    LINE_AT.is_multiple_of(2) && BODY_AT.is_multiple_of(2),
    "their sums are those of even offsets"
);

/// Where the body's text lies for a value of this many bytes.
pub fn body_text(value_bytes: usize) -> Range<usize> {
    BODY_AT..VALUE_AT + value_bytes + END.len()
}
