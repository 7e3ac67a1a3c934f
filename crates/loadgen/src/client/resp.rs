//! RESP2, as Redis and Valkey speak it, as far as a load needs it.

use std::io::Write;

use super::{Protocol, Step, Taken, line};
use crate::values::{self, VALUE_BYTES_MAX};

/// `$1024\r\n`, the longest head of a value.
const HEAD_MAX: usize = 7;
const NOTHING: &[u8] = b"$-1\r\n";
const OK: &[u8] = b"+OK\r\n";

/// The protocol for values of one length.
#[derive(Clone, Copy, Debug)]
pub struct Resp {
    value_bytes: usize,
    head: [u8; HEAD_MAX],
    head_bytes: usize,
}

impl Resp {
    /// For values of `value_bytes`, a multiple of 8 from 16 to 1024.
    pub fn new(value_bytes: usize) -> Resp {
        let line = format!("${value_bytes}\r\n");
        let mut head = [0; HEAD_MAX];
        head[..line.len()].copy_from_slice(line.as_bytes());
        Resp {
            value_bytes,
            head,
            head_bytes: line.len(),
        }
    }

    #[inline]
    fn value(&self, number: u32, input: &[u8]) -> Taken {
        let bytes = self.head_bytes + self.value_bytes + 2;
        if input.len() < bytes {
            return Taken::Incomplete;
        }
        let (head, tail) = input[..bytes].split_at(self.head_bytes);
        let (value, end) = tail.split_at(self.value_bytes);
        let right = *head == self.head[..self.head_bytes]
            && *end == *b"\r\n"
            && values::verify(value, number).is_some();
        if right {
            Taken::Hit { bytes }
        } else {
            Taken::Wrong
        }
    }
}

impl Protocol for Resp {
    #[inline]
    fn get(&self, number: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        let mut request = *b"*2\r\n$3\r\nGET\r\n$16\r\n0123456789abcdef\r\n";
        request[18..34].copy_from_slice(&values::key(number));
        out.extend_from_slice(&request);
        steps.extend([Step::Get(number)]);
    }

    #[inline]
    fn set(&self, number: u32, version: u32, out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        let mut value = [0; VALUE_BYTES_MAX];
        let value = &mut value[..self.value_bytes];
        values::fill(value, number, version);
        out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$16\r\n");
        out.extend_from_slice(&values::key(number));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.head[..self.head_bytes]);
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        steps.extend([Step::Set]);
    }

    fn multi_get(&self, numbers: &[u32], out: &mut Vec<u8>, steps: &mut impl Extend<Step>) {
        write!(out, "*{}\r\n$4\r\nMGET\r\n", numbers.len() + 1).expect("a vector grows");
        for &number in numbers {
            out.extend_from_slice(b"$16\r\n");
            out.extend_from_slice(&values::key(number));
            out.extend_from_slice(b"\r\n");
        }
        steps.extend([Step::Head(numbers.len() as u32)]);
        steps.extend(numbers.iter().map(|&number| Step::Key(number)));
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        match step {
            Step::Get(number) | Step::Key(number) => match input {
                [b'$', b'-', ..] => line(
                    NOTHING,
                    input,
                    Taken::Miss {
                        bytes: NOTHING.len(),
                    },
                ),
                [b'$', _, ..] => self.value(number, input),
                [b'$'] | [] => Taken::Incomplete,
                [..] => line(NOTHING, input, Taken::Wrong),
            },
            Step::Set => line(OK, input, Taken::Done { bytes: OK.len() }),
            Step::Head(count) => {
                let mut head = [0; 13];
                let mut rest = &mut head[..];
                write!(rest, "*{count}\r\n").expect("ten digits fit");
                let bytes = 13 - rest.len();
                line(&head[..bytes], input, Taken::Done { bytes })
            }
            Step::End => Taken::Done { bytes: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u32) -> Vec<u8> {
        let mut value = [0; 64];
        values::fill(&mut value, number, 3);
        [b"$64\r\n", &value[..], b"\r\n"].concat()
    }

    #[test]
    fn requests() {
        let (mut out, mut steps) = (vec![], vec![]);
        let resp = Resp::new(64);
        resp.get(0xab, &mut out, &mut steps);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$16\r\nglimmer:000000ab\r\n");
        out.clear();
        resp.multi_get(&[1, 2], &mut out, &mut steps);
        let expected =
            b"*3\r\n$4\r\nMGET\r\n$16\r\nglimmer:00000001\r\n$16\r\nglimmer:00000002\r\n";
        assert_eq!(out, expected);
        out.clear();
        resp.set(1, 9, &mut out, &mut steps);
        assert_eq!(
            &out[..41],
            b"*3\r\n$3\r\nSET\r\n$16\r\nglimmer:00000001\r\n$64\r\n"
        );
        assert_eq!(
            steps,
            [
                Step::Get(0xab),
                Step::Head(2),
                Step::Key(1),
                Step::Key(2),
                Step::Set
            ]
        );
    }

    #[test]
    fn every_prefix_of_a_reply_is_incomplete() {
        let resp = Resp::new(64);
        let hit = reply(7);
        for cut in 0..hit.len() {
            assert_eq!(
                resp.take(Step::Get(7), &hit[..cut]),
                Taken::Incomplete,
                "cut at {cut}"
            );
        }
        assert_eq!(
            resp.take(Step::Get(7), &hit),
            Taken::Hit { bytes: hit.len() }
        );
        for cut in 0..5 {
            assert_eq!(resp.take(Step::Get(7), &NOTHING[..cut]), Taken::Incomplete);
            assert_eq!(
                resp.take(Step::Head(50), &b"*50\r\n"[..cut]),
                Taken::Incomplete
            );
        }
        assert_eq!(resp.take(Step::Get(7), NOTHING), Taken::Miss { bytes: 5 });
        assert_eq!(
            resp.take(Step::Head(50), b"*50\r\n$"),
            Taken::Done { bytes: 5 }
        );
    }

    #[test]
    fn wrong_bytes_fail() {
        let resp = Resp::new(64);
        for byte in 0..reply(7).len() {
            let mut wrong = reply(7);
            wrong[byte] ^= 0x10;
            assert_eq!(resp.take(Step::Get(7), &wrong), Taken::Wrong, "byte {byte}");
        }
        assert_eq!(resp.take(Step::Get(8), &reply(7)), Taken::Wrong);
        assert_eq!(
            resp.take(Step::Set, b"-OOM command not allowed\r\n"),
            Taken::Wrong
        );
    }
}
