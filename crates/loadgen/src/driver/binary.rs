//! memcached's binary protocol.

use glimmer_connect::Speech;

use super::{Kind, Meaning, Protocol, Step, Taken, Write};
use crate::workload::{Key, value};

const HEADER_BYTES: usize = 24;
const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const DELETE: u8 = 0x04;
const NOOP: u8 = 0x0a;
const GETKQ: u8 = 0x0d;

const FOUND: u16 = 0x00;
const NOT_FOUND: u16 = 0x01;
const TOO_LARGE: u16 = 0x03;
const NOT_STORED: u16 = 0x05;
const OUT_OF_MEMORY: u16 = 0x82;

/// Flags and expiry of a set.
const SET_EXTRAS_BYTES: usize = 8;
const GET_EXTRAS_BYTES: usize = 4;

/// The protocol. A read of several keys consists of quiet reads (`GETKQ`) and a final `NOOP`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binary;

/// The fields of a response's header.
struct Header {
    opcode: u8,
    key_bytes: usize,
    extras_bytes: usize,
    status: u16,
    body_bytes: usize,
    opaque: u32,
}

impl Header {
    fn read(input: &[u8]) -> Header {
        let half = |at: usize| u16::from_be_bytes([input[at], input[at + 1]]);
        let word = |at: usize| {
            u32::from_be_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]])
        };
        Header {
            opcode: input[1],
            key_bytes: usize::from(half(2)),
            extras_bytes: usize::from(input[4]),
            status: half(6),
            body_bytes: word(8) as usize,
            opaque: word(12),
        }
    }
}

/// The opaque value that links a request to its response.
fn opaque(key: Key) -> u32 {
    key.number() as u32
}

#[inline]
fn header(
    out: &mut Vec<u8>,
    opcode: u8,
    key: Option<Key>,
    extras_bytes: usize,
    value_bytes: usize,
) {
    let key_bytes = key.map_or(0, Key::len);
    let body_bytes = (key_bytes + extras_bytes + value_bytes) as u32;
    let mut header = [0; HEADER_BYTES];
    header[0] = REQUEST;
    header[1] = opcode;
    header[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
    header[4] = extras_bytes as u8;
    header[8..12].copy_from_slice(&body_bytes.to_be_bytes());
    header[12..16].copy_from_slice(&key.map_or(0, opaque).to_be_bytes());
    out.extend_from_slice(&header);
}

#[inline]
fn key_alone(out: &mut Vec<u8>, opcode: u8, key: Key) {
    header(out, opcode, Some(key), 0, 0);
    key.write(out);
}

impl Protocol for Binary {
    const LOGIN: Option<Speech> = Some(Speech::Binary);

    #[inline]
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        key_alone(out, GET, key);
    }

    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        keys.iter().for_each(|&key| key_alone(out, GETKQ, key));
        header(out, NOOP, None, 0, 0);
    }

    #[inline]
    fn set(&self, write: Write, out: &mut Vec<u8>) {
        header(
            out,
            SET,
            Some(write.key),
            SET_EXTRAS_BYTES,
            write.value_bytes as usize,
        );
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&write.ttl_s.to_be_bytes());
        write.key.write(out);
        write.append_value(out);
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        key_alone(out, DELETE, key);
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        if input.len() < HEADER_BYTES {
            return match input.first() {
                Some(&magic) if magic != RESPONSE => Taken::Wrong,
                _ => Taken::Incomplete {
                    bytes: HEADER_BYTES,
                },
            };
        }
        if input[0] != RESPONSE {
            return Taken::Wrong;
        }
        let header = Header::read(input);
        // A quiet read has no response if there is no item: the next response belongs to another
        // read.
        let skipped = step.kind == Kind::Key
            && (header.opcode == NOOP
                || header.opcode == GETKQ && header.opaque != opaque(step.key));
        if skipped {
            return Taken::whole(Meaning::Miss, 0);
        }
        let bytes = HEADER_BYTES + header.body_bytes;
        if input.len() < bytes {
            return Taken::Incomplete { bytes };
        }
        let opcode = match step.kind {
            Kind::Get => GET,
            Kind::Set => SET,
            Kind::Delete => DELETE,
            Kind::Key => GETKQ,
            Kind::Head | Kind::End => NOOP,
        };
        let echoed = step.kind == Kind::End || header.opaque == opaque(step.key);
        if header.opcode != opcode
            || !echoed
            || header.key_bytes + header.extras_bytes > header.body_bytes
        {
            return Taken::Wrong;
        }
        let meaning = match (step.kind, header.status) {
            (Kind::Get | Kind::Key, FOUND) => {
                let body = &input[HEADER_BYTES..bytes];
                let (extras, rest) = body.split_at(header.extras_bytes);
                let (key, value) = rest.split_at(header.key_bytes);
                let key_is_right = if step.kind == Kind::Key {
                    step.key.matches(key)
                } else {
                    key.is_empty()
                };
                let right = extras == [0; GET_EXTRAS_BYTES]
                    && key_is_right
                    && value::verify(value, step.key.number()).is_some();
                if !right {
                    return Taken::Wrong;
                }
                Meaning::Hit
            }
            (Kind::Get | Kind::Key | Kind::Delete, NOT_FOUND) => Meaning::Miss,
            (Kind::Delete, FOUND) => Meaning::Hit,
            (Kind::Set | Kind::End, FOUND) => Meaning::Done,
            (Kind::Set, NOT_STORED | OUT_OF_MEMORY) => Meaning::Refused,
            (Kind::Set, TOO_LARGE) => Meaning::TooLarge,
            _ => return Taken::Wrong,
        };
        Taken::whole(meaning, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::pending::tests::{check_every_prefix, key, step, written};

    const BINARY: Binary = Binary;

    fn response(
        opcode: u8,
        status: u16,
        number: u64,
        named: bool,
        bytes: Option<usize>,
    ) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(bytes) = bytes {
            body.extend_from_slice(&[0; 4]);
            if named {
                key(number).write(&mut body);
            }
            value::append(&mut body, bytes, number, 1);
        }
        let mut out = vec![0; HEADER_BYTES];
        (out[0], out[1]) = (RESPONSE, opcode);
        out[3] = if named { 16 } else { 0 };
        out[4] = if bytes.is_some() { 4 } else { 0 };
        out[6..8].copy_from_slice(&status.to_be_bytes());
        out[8..12].copy_from_slice(&(body.len() as u32).to_be_bytes());
        out[12..16].copy_from_slice(&(number as u32).to_be_bytes());
        [out, body].concat()
    }

    #[test]
    fn requests() {
        let out = written(|out| BINARY.get(key(0xab), out));
        assert_eq!(
            out,
            [
                &[
                    0x80, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0xab, 0, 0, 0, 0, 0, 0, 0, 0
                ][..],
                b"00000000000000ab"
            ]
            .concat()
        );
        let out = written(|out| BINARY.get_many(&[key(1), key(2)], out));
        assert_eq!(
            (out.len(), out[1], out[40 + 1], out[80 + 1]),
            (104, GETKQ, GETKQ, NOOP)
        );
        let write = Write {
            key: Key::new(1, 8),
            value_bytes: 9,
            version: 3,
            ttl_s: 60,
        };
        let out = written(|out| BINARY.set(write, out));
        assert_eq!(
            (out.len(), out[11], &out[24..40]),
            (24 + 25, 25, &b"\0\0\0\0\0\0\0\x3c00000001"[..])
        );
    }

    #[test]
    fn replies() {
        for bytes in [0, 1, 64, 1000] {
            check_every_prefix(
                &BINARY,
                step(Kind::Get),
                &response(GET, 0, 7, false, Some(bytes)),
                Meaning::Hit,
            );
            check_every_prefix(
                &BINARY,
                step(Kind::Key),
                &response(GETKQ, 0, 7, true, Some(bytes)),
                Meaning::Hit,
            );
        }
        for (kind, opcode, status, meaning) in [
            (Kind::Get, GET, NOT_FOUND, Meaning::Miss),
            (Kind::Set, SET, FOUND, Meaning::Done),
            (Kind::Set, SET, OUT_OF_MEMORY, Meaning::Refused),
            (Kind::Set, SET, TOO_LARGE, Meaning::TooLarge),
            (Kind::Delete, DELETE, FOUND, Meaning::Hit),
            (Kind::Delete, DELETE, NOT_FOUND, Meaning::Miss),
            (Kind::End, NOOP, FOUND, Meaning::Done),
        ] {
            check_every_prefix(
                &BINARY,
                step(kind),
                &response(opcode, status, 7, false, None),
                meaning,
            );
        }
        // The load generator ignores the header's reserved bytes and CAS unique.
        let hit = response(GET, 0, 7, false, Some(64));
        let body: Vec<usize> = (HEADER_BYTES..hit.len())
            .chain([0, 1, 6, 7, 12, 13, 14, 15])
            .collect();
        for byte in body {
            let mut wrong = hit.clone();
            wrong[byte] ^= 0x10;
            assert_eq!(
                BINARY.take(step(Kind::Get), &wrong),
                Taken::Wrong,
                "byte {byte}"
            );
        }
        assert_eq!(
            BINARY.take(step(Kind::Key), &response(GETKQ, 0, 8, true, Some(64))),
            Taken::whole(Meaning::Miss, 0)
        );
        assert_eq!(
            BINARY.take(step(Kind::Key), &response(NOOP, 0, 0, false, None)),
            Taken::whole(Meaning::Miss, 0)
        );
        assert_eq!(BINARY.take(step(Kind::Get), b"ERROR\r\n"), Taken::Wrong);
    }
}
