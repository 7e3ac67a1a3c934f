//! The protocol of `mtd`, Masstree's server: arrays of MessagePack, over TCP.

use std::io::{self, Read};

use anyhow::{Context, Result, ensure};

use super::{Kind, Meaning, Protocol, Step, Taken, Write};
use crate::workload::{Key, value};

/// The first byte of an array, whose low bits are its length.
const ARRAY: u8 = 0x90;
/// The server returns this number. Replies come in order, so all requests have the same.
const SEQUENCE: u8 = 0;

/// Commands. The reply to a command has the number that follows.
const GET: u8 = 2;
const REPLACE: u8 = 8;
const REMOVE: u8 = 10;
const HANDSHAKE: u8 = 14;

const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;
/// Results of a replace: the key is new, or it has a new value.
const INSERTED: u8 = 1;
const UPDATED: u8 = 2;

/// Strings: the first byte of short ones, whose low bits are the length, and those before a length
/// of one, two and four bytes.
const SHORT: u8 = 0xa0;
const SHORT_BYTES_MAX: usize = 31;
const BYTE: u8 = 0xd9;
const HALF: u8 = 0xda;
const WORD: u8 = 0xdb;

/// Bytes before the third part of a reply.
const REPLY_HEAD_BYTES: usize = 3;
/// What a connection begins with. It asks for no certain thread.
const HELLO: [u8; 3] = [ARRAY | 2, SEQUENCE, HANDSHAKE];
/// One byte is enough for the numbers of threads below this.
const THREADS_MAX: u8 = 0x80;

/// Length of the longest value in bytes: the server's lengths have 16 bits.
pub const MASSTREE_VALUE_BYTES_MAX: u32 = u16::MAX as u32;

/// The protocol. It has no times to live.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masstree;

/// Appends the head of a string of this length.
#[inline]
fn head(out: &mut Vec<u8>, bytes: usize) {
    match bytes {
        0..=SHORT_BYTES_MAX => out.push(SHORT | bytes as u8),
        0x20..=0xff => out.extend_from_slice(&[BYTE, bytes as u8]),
        0x100..=0xffff => {
            out.push(HALF);
            out.extend_from_slice(&(bytes as u16).to_be_bytes());
        }
        _ => {
            out.push(WORD);
            out.extend_from_slice(&(bytes as u32).to_be_bytes());
        }
    }
}

/// A string's length, and the length of its head. `Err` if there is less than the head, or no
/// string.
#[inline]
fn string(input: &[u8]) -> Result<(usize, usize), Taken> {
    match *input {
        [first, ..] if first & 0xe0 == SHORT => Ok((usize::from(first & 0x1f), 1)),
        [BYTE, bytes, ..] => Ok((usize::from(bytes), 2)),
        [HALF, a, b, ..] => Ok((usize::from(u16::from_be_bytes([a, b])), 3)),
        [WORD, a, b, c, d, ..] => Ok((u32::from_be_bytes([a, b, c, d]) as usize, 5)),
        [] | [BYTE | HALF | WORD, ..] => Err(Taken::MORE),
        [..] => Err(Taken::Wrong),
    }
}

/// Appends a command and its key.
#[inline]
fn command(out: &mut Vec<u8>, length: u8, command: u8, key: Key) {
    out.extend_from_slice(&[ARRAY | length, SEQUENCE, command]);
    head(out, key.len());
    key.write(out);
}

/// The value of a key. Of a key that it does not have, the server returns the key itself.
#[inline]
fn found(key: Key, input: &[u8]) -> Taken {
    let (length, head) = match string(&input[REPLY_HEAD_BYTES..]) {
        Ok(string) => string,
        Err(taken) => return taken,
    };
    let at = REPLY_HEAD_BYTES + head;
    let bytes = at + length;
    match input.get(at..bytes) {
        None => Taken::Incomplete { bytes },
        Some(string) if value::verify(string, key.number()).is_some() => {
            Taken::whole(Meaning::Hit, bytes)
        }
        Some(string) if key.matches(string) => Taken::whole(Meaning::Miss, bytes),
        Some(_) => Taken::Wrong,
    }
}

impl Protocol for Masstree {
    const HAS_HEAD: bool = true;

    #[inline]
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        command(out, 3, GET, key);
    }

    /// The protocol has no read of several keys: these are several reads.
    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        keys.iter().for_each(|&key| self.get(key, out));
    }

    #[inline]
    fn set(&self, write: Write, out: &mut Vec<u8>) {
        command(out, 4, REPLACE, write.key);
        head(out, write.value_bytes as usize);
        write.append_value(out);
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        command(out, 3, REMOVE, key);
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        let command = match step.kind {
            Kind::Get | Kind::Key => GET,
            Kind::Set => REPLACE,
            Kind::Delete => REMOVE,
            Kind::Head | Kind::End => return Taken::whole(Meaning::Done, 0),
        };
        let begin = [ARRAY | 3, SEQUENCE, command + 1];
        let arrived = &input[..input.len().min(REPLY_HEAD_BYTES)];
        if !begin.starts_with(arrived) {
            return Taken::Wrong;
        }
        match (step.kind, input.get(REPLY_HEAD_BYTES)) {
            (_, None) => Taken::Incomplete {
                bytes: REPLY_HEAD_BYTES + 1,
            },
            (Kind::Set, Some(&(INSERTED | UPDATED))) => Taken::whole(Meaning::Done, 4),
            (Kind::Delete, Some(&TRUE)) => Taken::whole(Meaning::Hit, 4),
            (Kind::Delete, Some(&FALSE)) => Taken::whole(Meaning::Miss, 4),
            (Kind::Set | Kind::Delete, Some(_)) => Taken::Wrong,
            (_, Some(_)) => found(step.key, input),
        }
    }

    /// The server assigns the connection to a thread before it reads requests.
    fn begin(stream: &mut (impl Read + io::Write)) -> Result<()> {
        const LOST: &str = "the server is no mtd: it does not greet";
        stream.write_all(&HELLO).context(LOST)?;
        let mut reply = [0; 6];
        stream.read_exact(&mut reply).context(LOST)?;
        let [length, sequence, answer, accepts, thread, head] = reply;
        let greets = [length, sequence, answer, accepts]
            == [ARRAY | 5, SEQUENCE, HANDSHAKE + 1, TRUE]
            && thread < THREADS_MAX
            && head & 0xe0 == SHORT;
        ensure!(greets, "{LOST}: {}", reply.escape_ascii());
        // The name of what it keeps its values in.
        let mut name = [0; SHORT_BYTES_MAX];
        let bytes = usize::from(head & 0x1f);
        stream.read_exact(&mut name[..bytes]).context(LOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::pending::tests::{
        check_every_prefix, check_wrong_bytes, key, step, written,
    };

    const MASSTREE: Masstree = Masstree;

    /// The reply to a read of key 7.
    fn reply(number: u64, bytes: usize) -> Vec<u8> {
        let mut out = vec![0x93, 0, 3];
        head(&mut out, bytes);
        value::append(&mut out, bytes, number, 1);
        out
    }

    #[test]
    fn requests() {
        let out = written(|out| MASSTREE.get(key(0xab), out));
        assert_eq!(out, b"\x93\0\x02\xb000000000000000ab");
        let both = [Key::new(1, 4), Key::new(2, 4)];
        let out = written(|out| MASSTREE.get_many(&both, out));
        assert_eq!(out, b"\x93\0\x02\xa40001\x93\0\x02\xa40002");
        let out = written(|out| MASSTREE.delete(Key::new(1, 8), out));
        assert_eq!(out, b"\x93\0\x0a\xa800000001");
        for (value_bytes, head) in [
            (9, &b"\xa9"[..]),
            (31, b"\xbf"),
            (32, b"\xd9\x20"),
            (256, b"\xda\x01\0"),
            (65_536, b"\xdb\0\x01\0\0"),
        ] {
            let write = Write {
                key: Key::new(1, 8),
                value_bytes,
                version: 3,
                ttl_s: 0,
            };
            let out = written(|out| MASSTREE.set(write, out));
            let begin = [b"\x94\0\x08\xa800000001", head].concat();
            assert!(out.starts_with(&begin), "{value_bytes}");
            assert_eq!(out.len(), begin.len() + value_bytes as usize);
        }
    }

    #[test]
    fn replies() {
        for bytes in [0, 1, 31, 32, 300, 70_000] {
            check_every_prefix(&MASSTREE, step(Kind::Get), &reply(7, bytes), Meaning::Hit);
        }
        check_wrong_bytes(&MASSTREE, step(Kind::Get), &reply(7, 64));
        for (kind, reply, meaning) in [
            (
                Kind::Get,
                &b"\x93\0\x03\xb00000000000000007"[..],
                Meaning::Miss,
            ),
            (Kind::Set, b"\x93\0\x09\x01", Meaning::Done),
            (Kind::Set, b"\x93\0\x09\x02", Meaning::Done),
            (Kind::Delete, b"\x93\0\x0b\xc3", Meaning::Hit),
            (Kind::Delete, b"\x93\0\x0b\xc2", Meaning::Miss),
        ] {
            check_every_prefix(&MASSTREE, step(kind), reply, meaning);
        }
        assert_eq!(MASSTREE.take(step(Kind::Get), &reply(8, 64)), Taken::Wrong);
        // An outcome that no replace has, and the reply to another command.
        for wrong in [&b"\x93\0\x09\0"[..], b"\x92\0\xff", b"\x93\0\x05\xa0"] {
            for kind in [Kind::Get, Kind::Set, Kind::Delete] {
                assert_eq!(MASSTREE.take(step(kind), wrong), Taken::Wrong, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_connection_begins_with_a_handshake() {
        /// What a server says, and what is said to it.
        struct Server(io::Cursor<Vec<u8>>, Vec<u8>);
        impl Read for Server {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0.read(into)
            }
        }
        impl io::Write for Server {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let begin = |said: &[u8]| {
            let mut server = Server(io::Cursor::new(said.to_vec()), Vec::new());
            let begun = Masstree::begin(&mut server);
            assert_eq!(server.1, b"\x92\0\x0e");
            begun.map(|()| server.0.position())
        };
        let reply = b"\x95\0\x0f\xc3\x01\xa3bag";
        assert_eq!(begin(reply).unwrap(), reply.len() as u64);
        for wrong in [&b"ERROR\r\n"[..], b"\x94\0\x0f\xc2\xa0", &reply[..8], b""] {
            let error = begin(wrong).unwrap_err().to_string();
            assert!(error.contains("no mtd"), "{error}");
        }
    }
}
