//! memcached's classic text protocol: the commands that a load needs.

use glimmer_connect::Speech;

use super::{Kind, Meaning, Protocol, Step, Taken, Write, digits, line, line_with};
use crate::workload::{Key, value};

const VALUE: &[u8] = b"VALUE ";
/// Flags of zero, between key and length.
const FLAGS: &[u8] = b" 0 ";
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";
const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
const DELETED: &[u8] = b"DELETED\r\n";
const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory";
const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large";

/// The protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Text {
    /// Recognises `VALUE <key> 0 <length>\r\n<value>\r\n<rest>`.
    #[inline]
    fn value(key: Key, input: &[u8], rest: &[u8]) -> Taken {
        let length_at = VALUE.len() + key.len() + FLAGS.len();
        // At least two more bytes are needed: a digit and the line end.
        if input.len() < length_at + 3 {
            return Taken::MORE;
        }
        let Some((value_bytes, length_digits)) = digits::read(&input[length_at..]) else {
            return Taken::more_of_line(input);
        };
        let value_at = length_at + length_digits + 2;
        let bytes = value_at + value_bytes + 2 + rest.len();
        if input.len() < bytes {
            return Taken::Incomplete { bytes };
        }
        let value = &input[value_at..value_at + value_bytes];
        let right = input[..VALUE.len()] == *VALUE
            && key.matches(&input[VALUE.len()..VALUE.len() + key.len()])
            && input[VALUE.len() + key.len()..length_at] == *FLAGS
            && input[value_at - 2..value_at] == *b"\r\n"
            && input[value_at + value_bytes..bytes - rest.len()] == *b"\r\n"
            && input[bytes - rest.len()..bytes] == *rest
            && value::verify(value, key.number()).is_some();
        Taken::hit_if(right, bytes)
    }
}

impl Protocol for Text {
    const LOGIN: Option<Speech> = Some(Speech::Text);

    #[inline]
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"get ");
        key.write(out);
        out.extend_from_slice(b"\r\n");
    }

    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        out.extend_from_slice(b"get");
        for &key in keys {
            out.push(b' ');
            key.write(out);
        }
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn set(&self, write: Write, out: &mut Vec<u8>) {
        out.extend_from_slice(b"set ");
        write.key.write(out);
        out.extend_from_slice(FLAGS);
        digits::push(out, write.ttl_s);
        out.push(b' ');
        digits::push(out, write.value_bytes);
        out.extend_from_slice(b"\r\n");
        write.append_value(out);
        out.extend_from_slice(b"\r\n");
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"delete ");
        key.write(out);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        let first = input.first().copied();
        match step.kind {
            Kind::Get if first == Some(b'V') => Text::value(step.key, input, END),
            Kind::Get => line(END, input, Meaning::Miss),
            Kind::Set if first == Some(b'N') => line(NOT_STORED, input, Meaning::Refused),
            Kind::Set if input.starts_with(b"SE") => server_error(input),
            Kind::Set => line(STORED, input, Meaning::Done),
            Kind::Delete if first == Some(b'N') => line(NOT_FOUND, input, Meaning::Miss),
            Kind::Delete => line(DELETED, input, Meaning::Hit),
            Kind::End => line(END, input, Meaning::Done),
            Kind::Head => Taken::whole(Meaning::Done, 0),
            // A value of a different key, or the end, means that this key was not found.
            Kind::Key => match input.get(VALUE.len()..VALUE.len() + step.key.len() + 1) {
                _ if input.starts_with(END) => Taken::whole(Meaning::Miss, 0),
                Some(found) if input.starts_with(VALUE) => {
                    let ours =
                        found.last() == Some(&b' ') && step.key.matches(&found[..step.key.len()]);
                    if ours {
                        Text::value(step.key, input, b"")
                    } else {
                        Taken::whole(Meaning::Miss, 0)
                    }
                }
                None if input.starts_with(VALUE)
                    || VALUE.starts_with(input)
                    || !input.contains(&b'\n') =>
                {
                    Taken::MORE
                }
                _ => Taken::Wrong,
            },
        }
    }
}

/// Recognises why a server did not store a value.
#[inline]
pub fn server_error(input: &[u8]) -> Taken {
    match input.starts_with(TOO_LARGE) {
        true => line_with(TOO_LARGE, input, Meaning::TooLarge),
        false => line_with(OUT_OF_MEMORY, input, Meaning::Refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::pending::tests::{
        check_every_prefix, check_wrong_bytes, key, step, with_value, written,
    };

    const TEXT: Text = Text;

    fn reply(number: u64, bytes: usize) -> Vec<u8> {
        with_value(&format!("VALUE {number:016x} 0 {bytes}\r\n"), number, bytes)
    }

    #[test]
    fn requests() {
        let out = written(|out| TEXT.get(key(0xab), out));
        assert_eq!(out, b"get 00000000000000ab\r\n");
        let out = written(|out| TEXT.get_many(&[key(1), key(2)], out));
        assert_eq!(out, b"get 0000000000000001 0000000000000002\r\n");
        let write = Write {
            key: Key::new(1, 8),
            value_bytes: 9,
            version: 3,
            ttl_s: 60,
        };
        let out = written(|out| TEXT.set(write, out));
        assert!(out.starts_with(b"set 00000001 0 60 9\r\n\x03\0\0") && out.len() == 21 + 9 + 2);
        let out = written(|out| TEXT.delete(key(0xab), out));
        assert_eq!(out, b"delete 00000000000000ab\r\n");
    }

    #[test]
    fn replies_to_one_key() {
        for bytes in [0, 1, 8, 64, 1000] {
            let hit = [&reply(7, bytes)[..], END].concat();
            check_every_prefix(&TEXT, step(Kind::Get), &hit, Meaning::Hit);
        }
        check_wrong_bytes(&TEXT, step(Kind::Get), &[&reply(7, 64)[..], END].concat());
        for (kind, reply, meaning) in [
            (Kind::Get, &b"END\r\n"[..], Meaning::Miss),
            (Kind::Set, b"STORED\r\n", Meaning::Done),
            (Kind::Set, b"NOT_STORED\r\n", Meaning::Refused),
            (
                Kind::Set,
                b"SERVER_ERROR out of memory storing object\r\n",
                Meaning::Refused,
            ),
            (
                Kind::Set,
                b"SERVER_ERROR object too large for cache\r\n",
                Meaning::TooLarge,
            ),
            (Kind::Delete, b"DELETED\r\n", Meaning::Hit),
            (Kind::Delete, b"NOT_FOUND\r\n", Meaning::Miss),
        ] {
            check_every_prefix(&TEXT, step(kind), reply, meaning);
        }
        for kind in [Kind::Get, Kind::Set, Kind::Delete, Kind::Key, Kind::End] {
            for error in [&b"ERROR\r\n"[..], b"SERVER_ERROR over the limit\r\n"] {
                assert_eq!(TEXT.take(step(kind), error), Taken::Wrong, "{kind:?}");
            }
        }
        assert_eq!(
            TEXT.take(step(Kind::Get), b"SERVER_ERROR out of memory\r\n"),
            Taken::Wrong
        );
        assert_eq!(
            TEXT.take(
                Step {
                    kind: Kind::Get,
                    key: key(8)
                },
                &[&reply(7, 64)[..], END].concat()
            ),
            Taken::Wrong
        );
    }

    #[test]
    fn missing_keys_of_a_read_of_several() {
        let all = [&reply(2, 64)[..], END].concat();
        let mut input = &all[..];
        let mut meanings = vec![];
        for (kind, number) in [
            (Kind::Key, 1),
            (Kind::Key, 2),
            (Kind::Key, 3),
            (Kind::End, 0),
        ] {
            let taken = TEXT.take(
                Step {
                    kind,
                    key: key(number),
                },
                input,
            );
            let Taken::Whole { meaning, bytes } = taken else {
                panic!("{taken:?} at {number}")
            };
            input = &input[bytes..];
            meanings.push(meaning);
        }
        assert_eq!(
            meanings,
            [Meaning::Miss, Meaning::Hit, Meaning::Miss, Meaning::Done]
        );
        assert!(input.is_empty());
        for cut in 0..5 {
            assert_eq!(TEXT.take(step(Kind::Key), &END[..cut]), Taken::MORE);
        }
        // A key that has this key as a prefix is a different key.
        let longer = b"VALUE 000000010 0 1\r\n";
        let taken = TEXT.take(
            Step {
                kind: Kind::Key,
                key: Key::new(1, 8),
            },
            longer,
        );
        assert_eq!(taken, Taken::whole(Meaning::Miss, 0));
    }
}
