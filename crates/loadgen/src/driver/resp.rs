//! RESP2, as Redis and Valkey speak it: the commands that a load needs.

use glimmer_connect::Speech;

use super::{Kind, Meaning, Protocol, Step, Taken, Write, digits, line, line_with};
use crate::workload::{Key, value};

const NOTHING: &[u8] = b"$-1\r\n";
const OK: &[u8] = b"+OK\r\n";
const ONE: &[u8] = b":1\r\n";
const ZERO: &[u8] = b":0\r\n";
const OUT_OF_MEMORY: &[u8] = b"-OOM";
const TOO_LARGE: &[u8] = b"-ERR string exceeds maximum allowed size";

/// The protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resp;

/// Appends a key as a bulk string.
#[inline]
fn bulk_key(out: &mut Vec<u8>, key: Key) {
    out.push(b'$');
    digits::push(out, key.len());
    out.extend_from_slice(b"\r\n");
    key.write(out);
    out.extend_from_slice(b"\r\n");
}

impl Resp {
    #[inline]
    fn value(key: Key, input: &[u8]) -> Taken {
        let Some((value_bytes, length_digits)) = digits::read(&input[1..]) else {
            return Taken::more_of_line(input);
        };
        let value_at = 1 + length_digits + 2;
        let bytes = value_at + value_bytes + 2;
        if input.len() < bytes {
            return Taken::Incomplete { bytes };
        }
        let (value, end) = input[value_at..bytes].split_at(value_bytes);
        let right = input[value_at - 2..value_at] == *b"\r\n"
            && end == b"\r\n"
            && value::verify(value, key.number()).is_some();
        Taken::hit_if(right, bytes)
    }
}

impl Protocol for Resp {
    const HAS_HEAD: bool = true;
    const LOGIN: Option<Speech> = Some(Speech::Resp);

    #[inline]
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
        bulk_key(out, key);
    }

    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        out.push(b'*');
        digits::push(out, keys.len() + 1);
        out.extend_from_slice(b"\r\n$4\r\nMGET\r\n");
        keys.iter().for_each(|&key| bulk_key(out, key));
    }

    #[inline]
    fn set(&self, write: Write, out: &mut Vec<u8>) {
        let head: &[u8] = if write.ttl_s > 0 {
            b"*5\r\n$3\r\nSET\r\n"
        } else {
            b"*3\r\n$3\r\nSET\r\n"
        };
        out.extend_from_slice(head);
        bulk_key(out, write.key);
        out.push(b'$');
        digits::push(out, write.value_bytes);
        out.extend_from_slice(b"\r\n");
        write.append_value(out);
        out.extend_from_slice(b"\r\n");
        if write.ttl_s > 0 {
            let mut text = itoa::Buffer::new();
            let text = text.format(write.ttl_s);
            out.extend_from_slice(b"$2\r\nEX\r\n$");
            digits::push(out, text.len());
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
        bulk_key(out, key);
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        match step.kind {
            Kind::Get | Kind::Key => match input {
                [b'$', b'-', ..] => line(NOTHING, input, Meaning::Miss),
                [b'$', _, ..] => Resp::value(step.key, input),
                [b'$'] | [] => Taken::MORE,
                [..] => line(NOTHING, input, Meaning::Miss),
            },
            Kind::Set if input.starts_with(OUT_OF_MEMORY) => {
                line_with(OUT_OF_MEMORY, input, Meaning::Refused)
            }
            Kind::Set if input.starts_with(TOO_LARGE) => {
                line_with(TOO_LARGE, input, Meaning::TooLarge)
            }
            Kind::Set => line(OK, input, Meaning::Done),
            Kind::Delete if input.starts_with(b":0") => line(ZERO, input, Meaning::Miss),
            Kind::Delete => line(ONE, input, Meaning::Hit),
            Kind::Head => match (input, memchr::memchr(b'\n', input)) {
                ([b'*', rest @ ..], Some(end)) => match digits::read(rest) {
                    Some((count, digits))
                        if count as u64 == step.key.number()
                            && input[1 + digits..=end] == *b"\r\n" =>
                    {
                        Taken::whole(Meaning::Done, end + 1)
                    }
                    _ => Taken::Wrong,
                },
                (_, Some(_)) => Taken::Wrong,
                (_, None) => Taken::MORE,
            },
            Kind::End => Taken::whole(Meaning::Done, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::pending::tests::{
        check_every_prefix, check_wrong_bytes, key, step, with_value, written,
    };

    const RESP: Resp = Resp;

    fn reply(number: u64, bytes: usize) -> Vec<u8> {
        with_value(&format!("${bytes}\r\n"), number, bytes)
    }

    #[test]
    fn requests() {
        let out = written(|out| RESP.get(key(0xab), out));
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$16\r\n00000000000000ab\r\n");
        let out = written(|out| RESP.get_many(&[Key::new(1, 4), Key::new(2, 4)], out));
        assert_eq!(out, b"*3\r\n$4\r\nMGET\r\n$4\r\n0001\r\n$4\r\n0002\r\n");
        let write = Write {
            key: Key::new(1, 8),
            value_bytes: 9,
            version: 3,
            ttl_s: 0,
        };
        let out = written(|out| RESP.set(write, out));
        assert!(out.starts_with(b"*3\r\n$3\r\nSET\r\n$8\r\n00000001\r\n$9\r\n\x03\0\0"));
        let out = written(|out| RESP.set(Write { ttl_s: 60, ..write }, out));
        assert!(out.starts_with(b"*5") && out.ends_with(b"\r\n$2\r\nEX\r\n$2\r\n60\r\n"));
        let out = written(|out| RESP.delete(Key::new(1, 8), out));
        assert_eq!(out, b"*2\r\n$3\r\nDEL\r\n$8\r\n00000001\r\n");
    }

    #[test]
    fn replies() {
        for bytes in [0, 1, 64, 1000] {
            check_every_prefix(&RESP, step(Kind::Get), &reply(7, bytes), Meaning::Hit);
        }
        check_wrong_bytes(&RESP, step(Kind::Get), &reply(7, 64));
        for (kind, reply, meaning) in [
            (Kind::Get, &b"$-1\r\n"[..], Meaning::Miss),
            (Kind::Set, b"+OK\r\n", Meaning::Done),
            (Kind::Set, b"-OOM command not allowed\r\n", Meaning::Refused),
            (
                Kind::Set,
                b"-ERR string exceeds maximum allowed size (see -I)\r\n",
                Meaning::TooLarge,
            ),
            (Kind::Delete, b":1\r\n", Meaning::Hit),
            (Kind::Delete, b":0\r\n", Meaning::Miss),
            (Kind::Head, b"*7\r\n", Meaning::Done),
        ] {
            check_every_prefix(&RESP, step(kind), reply, meaning);
        }
        assert_eq!(RESP.take(step(Kind::Get), &reply(8, 64)), Taken::Wrong);
        for wrong in [&b"-ERR unknown\r\n"[..], b"*6\r\n", b"*x\r\n", b"+NO\r\n"] {
            for kind in [Kind::Get, Kind::Set, Kind::Delete, Kind::Head] {
                assert_eq!(RESP.take(step(kind), wrong), Taken::Wrong, "{kind:?}");
            }
        }
    }
}
