//! memcached's classic text protocol, as far as a load needs it.

use super::{Protocol, Step, Taken, line};
use crate::values::{self, KEY_BYTES, VALUE_BYTES_MAX};

/// Bytes between a value's key and its first byte, at most: ` 0 1024\r\n`.
const HEAD_REST_MAX: usize = 9;
const VALUE: &[u8] = b"VALUE ";
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";

/// The protocol for values of one length.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    value_bytes: usize,
    /// ` 0 64\r\n` for a value of 64 bytes: zero flags and the length, in a `VALUE` line.
    head_rest: [u8; HEAD_REST_MAX],
    head_rest_bytes: usize,
}

impl Text {
    /// For values of `value_bytes`, a multiple of 8 from 16 to 1024.
    pub fn new(value_bytes: usize) -> Text {
        let line = format!(" 0 {value_bytes}\r\n");
        let mut head_rest = [0; HEAD_REST_MAX];
        head_rest[..line.len()].copy_from_slice(line.as_bytes());
        Text {
            value_bytes,
            head_rest,
            head_rest_bytes: line.len(),
        }
    }

    /// Recognises `VALUE <key> 0 <length>\r\n<value>\r\n<rest>`.
    #[inline]
    fn value(&self, number: u32, input: &[u8], rest: &[u8]) -> Taken {
        let head_bytes = VALUE.len() + KEY_BYTES + self.head_rest_bytes;
        let bytes = head_bytes + self.value_bytes + 2 + rest.len();
        if input.len() < bytes {
            return Taken::Incomplete;
        }
        let (head, tail) = input[..bytes].split_at(head_bytes);
        let (value, end) = tail.split_at(self.value_bytes);
        let right = head[..VALUE.len()] == *VALUE
            && head[VALUE.len()..VALUE.len() + KEY_BYTES] == values::key(number)
            && head[VALUE.len() + KEY_BYTES..] == self.head_rest[..self.head_rest_bytes]
            && end[..2] == *b"\r\n"
            && end[2..] == *rest
            && values::verify(value, number).is_some();
        if right {
            Taken::Hit { bytes }
        } else {
            Taken::Wrong
        }
    }
}

impl Protocol for Text {
    #[inline]
    fn get(&self, number: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        let mut request = *b"get 0123456789abcdef\r\n";
        request[4..20].copy_from_slice(&values::key(number));
        out.extend_from_slice(&request);
        steps.extend([Step::Get(number)]);
    }

    #[inline]
    fn set(&self, number: u32, version: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        let mut value = [0; VALUE_BYTES_MAX];
        let value = &mut value[..self.value_bytes];
        values::fill(value, number, version);
        out.extend_from_slice(b"set ");
        out.extend_from_slice(&values::key(number));
        out.extend_from_slice(b" 0");
        out.extend_from_slice(&self.head_rest[..self.head_rest_bytes]);
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        steps.extend([Step::Set]);
    }

    fn multi_get(&self, numbers: &[u32], out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        out.extend_from_slice(b"get");
        for &number in numbers {
            out.push(b' ');
            out.extend_from_slice(&values::key(number));
        }
        out.extend_from_slice(b"\r\n");
        steps.extend(numbers.iter().map(|&number| Step::Key(number)));
        steps.extend([Step::End]);
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        match step {
            Step::Get(number) if input.first() == Some(&b'V') => self.value(number, input, END),
            Step::Get(_) => line(END, input, Taken::Miss { bytes: END.len() }),
            Step::Set => line(
                STORED,
                input,
                Taken::Done {
                    bytes: STORED.len(),
                },
            ),
            Step::End => line(END, input, Taken::Done { bytes: END.len() }),
            Step::Head(_) => Taken::Done { bytes: 0 },
            // A value of another key, or the end, says that this one was not found.
            Step::Key(number) => {
                let key = values::key(number);
                match input.get(VALUE.len()..VALUE.len() + KEY_BYTES) {
                    Some(found) if *found == key => self.value(number, input, b""),
                    Some(_) => Taken::Miss { bytes: 0 },
                    None if input.starts_with(END) => Taken::Miss { bytes: 0 },
                    None if input.starts_with(VALUE) || !input.contains(&b'\n') => {
                        Taken::Incomplete
                    }
                    None => Taken::Wrong,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u32, version: u32) -> Vec<u8> {
        let mut value = [0; 64];
        values::fill(&mut value, number, version);
        [
            b"VALUE ",
            &values::key(number)[..],
            b" 0 64\r\n",
            &value,
            b"\r\n",
        ]
        .concat()
    }

    #[test]
    fn requests() {
        let (mut out, mut steps) = (vec![], vec![]);
        let text = Text::new(64);
        text.get(0xab, &mut out, &mut steps);
        assert_eq!(out, b"get glimmer:000000ab\r\n");
        out.clear();
        text.multi_get(&[1, 2], &mut out, &mut steps);
        assert_eq!(out, b"get glimmer:00000001 glimmer:00000002\r\n");
        out.clear();
        text.set(1, 9, &mut out, &mut steps);
        assert_eq!(&out[..31], b"set glimmer:00000001 0 0 64\r\n\x09\0");
        assert_eq!(out.len(), 29 + 64 + 2);
        assert_eq!(
            steps,
            [
                Step::Get(0xab),
                Step::Key(1),
                Step::Key(2),
                Step::End,
                Step::Set
            ]
        );
    }

    #[test]
    fn every_prefix_of_a_reply_is_incomplete() {
        let text = Text::new(64);
        let hit = [&reply(7, 1)[..], b"END\r\n"].concat();
        for cut in 0..hit.len() {
            assert_eq!(
                text.take(Step::Get(7), &hit[..cut]),
                Taken::Incomplete,
                "cut at {cut}"
            );
        }
        assert_eq!(
            text.take(Step::Get(7), &hit),
            Taken::Hit { bytes: hit.len() }
        );
        for cut in 0..5 {
            assert_eq!(
                text.take(Step::Get(7), &b"END\r\n"[..cut]),
                Taken::Incomplete
            );
            assert_eq!(
                text.take(Step::Key(7), &b"END\r\n"[..cut]),
                Taken::Incomplete
            );
        }
        assert_eq!(
            text.take(Step::Get(7), b"END\r\nVALUE"),
            Taken::Miss { bytes: 5 }
        );
    }

    #[test]
    fn wrong_bytes_fail() {
        let text = Text::new(64);
        let hit = [&reply(7, 1)[..], b"END\r\n"].concat();
        for byte in 0..hit.len() {
            let mut wrong = hit.clone();
            wrong[byte] ^= 0x10;
            let taken = text.take(Step::Get(7), &wrong);
            // A wrong first byte makes it a line that may go on until its end is seen.
            assert!(matches!(taken, Taken::Wrong), "byte {byte}: {taken:?}");
        }
        assert_eq!(
            text.take(Step::Get(7), b"SERVER_ERROR out of memory\r\n"),
            Taken::Wrong
        );
        assert_eq!(
            text.take(Step::Set, b"SERVER_ERROR out of memory\r\n"),
            Taken::Wrong
        );
        assert_eq!(text.take(Step::Key(7), b"ERROR\r\n"), Taken::Wrong);
    }

    #[test]
    fn missing_keys_of_a_multi_get() {
        let text = Text::new(64);
        let mut input = &[&reply(2, 0)[..], b"END\r\n"].concat()[..];
        let mut takens = vec![];
        for step in [Step::Key(1), Step::Key(2), Step::Key(3), Step::End] {
            let taken = text.take(step, input);
            if let Taken::Hit { bytes } | Taken::Miss { bytes } | Taken::Done { bytes } = taken {
                input = &input[bytes..];
            }
            takens.push(taken);
        }
        let value_bytes = 29 + 64 + 2;
        let expected = [
            Taken::Miss { bytes: 0 },
            Taken::Hit { bytes: value_bytes },
            Taken::Miss { bytes: 0 },
            Taken::Done { bytes: 5 },
        ];
        assert_eq!(takens, expected);
    }
}
