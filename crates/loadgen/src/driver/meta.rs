//! memcached's meta commands: `mg`, `ms`, `md`, `mn`.

use glimmer_connect::Speech;

use super::{Kind, Meaning, Protocol, Step, Taken, Write, digits, line, text::server_error};
use crate::workload::{Key, value};

const VA: &[u8] = b"VA ";
const EN: &[u8] = b"EN\r\n";
const HD: &[u8] = b"HD\r\n";
const NS: &[u8] = b"NS\r\n";
const NF: &[u8] = b"NF\r\n";
const MN: &[u8] = b"MN\r\n";

/// The protocol. A read of several keys consists of quiet reads, `mg <key> v k q`, and a final
/// `mn`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta;

impl Meta {
    /// Recognises `VA <length>\r\n<value>\r\n`, with `k<key>` after the length if `named` is set. A
    /// value of a different key means a miss.
    #[inline]
    fn value(key: Key, named: bool, input: &[u8]) -> Taken {
        let Some(end) = memchr::memchr(b'\n', input) else {
            return Taken::MORE;
        };
        let head = input[..end]
            .strip_suffix(b"\r")
            .and_then(|head| head.strip_prefix(VA));
        let Some((head, (value_bytes, length_digits))) =
            head.and_then(|head| Some((head, digits::read(&input[VA.len()..])?)))
        else {
            return Taken::Wrong;
        };
        match &head[length_digits..] {
            [] if !named => {}
            [b' ', b'k', found @ ..] if named => {
                if !key.matches(found) {
                    return if Key::parse(found).is_some() {
                        Taken::whole(Meaning::Miss, 0)
                    } else {
                        Taken::Wrong
                    };
                }
            }
            _ => return Taken::Wrong,
        }
        let bytes = end + 1 + value_bytes + 2;
        if input.len() < bytes {
            return Taken::Incomplete { bytes };
        }
        let (value, line_end) = input[end + 1..bytes].split_at(value_bytes);
        let right = line_end == b"\r\n" && value::verify(value, key.number()).is_some();
        Taken::hit_if(right, bytes)
    }
}

impl Protocol for Meta {
    const LOGIN: Option<Speech> = Some(Speech::Text);

    #[inline]
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"mg ");
        key.write(out);
        out.extend_from_slice(b" v\r\n");
    }

    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        for &key in keys {
            out.extend_from_slice(b"mg ");
            key.write(out);
            out.extend_from_slice(b" v k q\r\n");
        }
        out.extend_from_slice(b"mn\r\n");
    }

    #[inline]
    fn set(&self, write: Write, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ms ");
        write.key.write(out);
        out.push(b' ');
        digits::push(out, write.value_bytes);
        if write.ttl_s > 0 {
            out.extend_from_slice(b" T");
            digits::push(out, write.ttl_s);
        }
        out.extend_from_slice(b"\r\n");
        write.append_value(out);
        out.extend_from_slice(b"\r\n");
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        out.extend_from_slice(b"md ");
        key.write(out);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn take(&self, step: Step, input: &[u8]) -> Taken {
        let first = input.first().copied();
        match step.kind {
            Kind::Get if first == Some(b'V') => Meta::value(step.key, false, input),
            Kind::Get => line(EN, input, Meaning::Miss),
            Kind::Set if first == Some(b'N') => line(NS, input, Meaning::Refused),
            Kind::Set if first == Some(b'S') => server_error(input),
            Kind::Set => line(HD, input, Meaning::Done),
            Kind::Delete if first == Some(b'N') => line(NF, input, Meaning::Miss),
            Kind::Delete => line(HD, input, Meaning::Hit),
            Kind::Key if first == Some(b'V') => Meta::value(step.key, true, input),
            // A quiet read has no reply if there is no item.
            Kind::Key if input.starts_with(MN) => Taken::whole(Meaning::Miss, 0),
            Kind::Key if MN.starts_with(input) => Taken::MORE,
            Kind::Key => Taken::Wrong,
            Kind::End => line(MN, input, Meaning::Done),
            Kind::Head => Taken::whole(Meaning::Done, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::pending::tests::{
        check_every_prefix, check_wrong_bytes, key, step, with_value, written,
    };

    const META: Meta = Meta;

    #[test]
    fn requests() {
        let out = written(|out| META.get(key(0xab), out));
        assert_eq!(out, b"mg 00000000000000ab v\r\n");
        let out = written(|out| META.get_many(&[Key::new(1, 4), Key::new(2, 4)], out));
        assert_eq!(out, b"mg 0001 v k q\r\nmg 0002 v k q\r\nmn\r\n");
        let write = Write {
            key: Key::new(1, 8),
            value_bytes: 9,
            version: 3,
            ttl_s: 60,
        };
        let out = written(|out| META.set(write, out));
        assert!(out.starts_with(b"ms 00000001 9 T60\r\n\x03\0\0"));
        let out = written(|out| META.set(Write { ttl_s: 0, ..write }, out));
        assert!(out.starts_with(b"ms 00000001 9\r\n"));
    }

    #[test]
    fn replies() {
        for bytes in [0, 1, 64, 1000] {
            let hit = with_value(&format!("VA {bytes}\r\n"), 7, bytes);
            check_every_prefix(&META, step(Kind::Get), &hit, Meaning::Hit);
            let hit = with_value(&format!("VA {bytes} k{:016x}\r\n", 7), 7, bytes);
            check_every_prefix(&META, step(Kind::Key), &hit, Meaning::Hit);
        }
        check_wrong_bytes(&META, step(Kind::Get), &with_value("VA 64\r\n", 7, 64));
        for (kind, reply, meaning) in [
            (Kind::Get, &b"EN\r\n"[..], Meaning::Miss),
            (Kind::Set, b"HD\r\n", Meaning::Done),
            (Kind::Set, b"NS\r\n", Meaning::Refused),
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
            (Kind::Delete, b"HD\r\n", Meaning::Hit),
            (Kind::Delete, b"NF\r\n", Meaning::Miss),
            (Kind::End, b"MN\r\n", Meaning::Done),
        ] {
            check_every_prefix(&META, step(kind), reply, meaning);
        }
        let other = with_value(&format!("VA 64 k{:016x}\r\n", 8), 8, 64);
        assert_eq!(
            META.take(step(Kind::Key), &other),
            Taken::whole(Meaning::Miss, 0)
        );
        assert_eq!(
            META.take(step(Kind::Key), b"MN\r\n"),
            Taken::whole(Meaning::Miss, 0)
        );
        assert_eq!(
            META.take(step(Kind::Get), b"CLIENT_ERROR bad\r\n"),
            Taken::Wrong
        );
    }
}
