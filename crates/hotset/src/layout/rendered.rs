//! An item as a slot holds it: the pieces of every reply, and their partial checksums.
//!
//! A reply to `get` is the line up to the number of bytes, and the body. A reply to `gets` is the
//! whole line, and the body. A binary reply takes the key out of the line and the value out of the
//! body. See [`dimensions`](super::dimensions).

use super::dimensions::{
    BODY_BYTES, CRLF, END, KEY_MAX, LINE_AT, LINE_BYTES, VALUE_AT, VALUE_MAX, VERB, body_text,
};
use crate::sums;

/// An item that is to be brought into the accelerator.
#[derive(Clone, Copy, Debug)]
pub struct HotItem<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// Its CAS unique.
    pub cas: u64,
    /// From when on it is not answered, in nanoseconds of CLOCK_MONOTONIC. See
    /// [`deadline_ns`](crate::Timeline::deadline_ns).
    pub deadline_ns: u64,
}

/// Why an item does not qualify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key is empty or too long.
    Key,
    /// The value is empty. In the paper's circuit a value of length zero is a miss (§IV-A1).
    Empty,
    /// The value is too long.
    TooLong,
}

impl HotItem<'_> {
    /// Whether the item fits into a slot.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn check(&self) -> Result<(), Refused> {
        match (self.key.len(), self.value.len()) {
            (1..=KEY_MAX, 1..=VALUE_MAX) => Ok(()),
            (1..=KEY_MAX, 0) => Err(Refused::Empty),
            (1..=KEY_MAX, _) => Err(Refused::TooLong),
            _ => Err(Refused::Key),
        }
    }
}

/// The pieces of an item's replies.
pub(super) struct Rendered {
    pub line: [u8; LINE_BYTES],
    pub body: [u8; BODY_BYTES],
    pub get_line_bytes: u16,
    pub gets_line_bytes: u16,
    pub sum_key: u32,
    pub sum_get_line: u32,
    pub sum_gets_line: u32,
    pub sum_value: u32,
    pub sum_body: u32,
}

impl Rendered {
    /// Renders an item that qualifies.
    pub fn of(item: &HotItem<'_>) -> Rendered {
        let mut line = [0; LINE_BYTES];
        let mut digits = itoa::Buffer::new();
        let mut end = LINE_AT;
        let mut append = |bytes: &[u8]| {
            line[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
            end
        };
        append(VERB);
        append(item.key);
        append(b" ");
        append(digits.format(item.flags).as_bytes());
        append(b" ");
        let get_end = append(digits.format(item.value.len()).as_bytes());
        append(b" ");
        let gets_end = append(digits.format(item.cas).as_bytes());

        let mut body = [0; BODY_BYTES];
        let text = body_text(item.value.len());
        body[text.start..VALUE_AT].copy_from_slice(CRLF);
        body[VALUE_AT..VALUE_AT + item.value.len()].copy_from_slice(item.value);
        body[VALUE_AT + item.value.len()..text.end].copy_from_slice(END);

        let sum_value = sums::of(item.value);
        let around = sums::add(sums::of(CRLF), sums::at(item.value.len(), sums::of(END)));
        Rendered {
            get_line_bytes: (get_end - LINE_AT) as u16,
            gets_line_bytes: (gets_end - LINE_AT) as u16,
            sum_key: sums::of(item.key),
            sum_get_line: sums::of(&line[LINE_AT..get_end]),
            sum_gets_line: sums::of(&line[LINE_AT..gets_end]),
            sum_value,
            sum_body: sums::add(sum_value, around),
            line,
            body,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_make_memcacheds_replies() {
        let rendered = Rendered::of(&HotItem {
            key: b"greeting",
            value: b"hello",
            flags: 7,
            cas: 12,
            deadline_ns: 0,
        });
        let line = &rendered.line[LINE_AT..];
        let body = &rendered.body[body_text(5)];
        let get = [&line[..rendered.get_line_bytes.into()], body].concat();
        assert_eq!(get, b"VALUE greeting 7 5\r\nhello\r\nEND\r\n");
        let gets = [&line[..rendered.gets_line_bytes.into()], body].concat();
        assert_eq!(gets, b"VALUE greeting 7 5 12\r\nhello\r\nEND\r\n");
    }

    #[test]
    fn the_largest_item_fits_and_its_sums_are_right() {
        let (key, value) = ([b'k'; KEY_MAX], [0xA5; VALUE_MAX]);
        for value_bytes in [1, 2, VALUE_MAX - 1, VALUE_MAX] {
            let rendered = Rendered::of(&HotItem {
                key: &key,
                value: &value[..value_bytes],
                flags: u32::MAX,
                cas: u64::MAX,
                deadline_ns: 0,
            });
            assert_eq!(
                rendered.sum_body,
                sums::of(&rendered.body[body_text(value_bytes)])
            );
            let gets_end = LINE_AT + usize::from(rendered.gets_line_bytes);
            assert!(rendered.line[LINE_AT..gets_end].ends_with(b" 18446744073709551615"));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let item = |key, value| HotItem {
            key,
            value,
            flags: 0,
            cas: 0,
            deadline_ns: 0,
        };
        let long = [b'x'; VALUE_MAX + 1];
        assert_eq!(item(b"k", b"v").check(), Ok(()));
        assert_eq!(item(b"", b"v").check(), Err(Refused::Key));
        assert_eq!(item(&long[..KEY_MAX + 1], b"v").check(), Err(Refused::Key));
        assert_eq!(item(b"k", b"").check(), Err(Refused::Empty));
        assert_eq!(item(b"k", &long).check(), Err(Refused::TooLong));
    }
}
