//! Datagrams of memcached's UDP protocol that are answered from the accelerator's slots: those with
//! one text `get` or `gets` of one key, or one binary GET, GETQ, GETK or GETKQ. All others go on to
//! the parser unchanged, and so do reads of keys that are in no slot.

use std::ops::Range;

use glimmer_base::limits::HOT_OFFERS_MAX;
use glimmer_base::{Keyhash, Moment, Seed};
use glimmer_hotset::layout::{Piece, Tally};
use glimmer_hotset::{Reader, SampledRead, Sampler};
use glimmer_proto::Accepts;
use glimmer_proto::binary::{Header, MAGIC_REPLY, MAGIC_REQUEST, opcode};
use glimmer_proto::udp::PAYLOAD_BYTES;

use super::pending::ReplyTo;
use crate::hot::Accelerator;

/// Bytes of the header of a binary packet.
const BINARY_HEADER_BYTES: usize = 24;
/// Bytes of the flags in a binary reply.
const FLAGS_BYTES: usize = 4;

/// What a lone read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked<'a> {
    Get(&'a [u8]),
    Gets(&'a [u8]),
    Binary(Header, &'a [u8]),
}

/// A worker's reader of the slots, and the replies of a burst.
pub(crate) struct Accelerated {
    reader: Reader,
    sampler: Sampler,
    /// Keys that were sampled, one after the other, with their ends.
    keys: Vec<u8>,
    samples: Vec<(Keyhash, Range<usize>)>,
    /// Replies, one after the other.
    bytes: Vec<u8>,
    replies: Vec<(ReplyTo, Range<usize>)>,
}

impl Accelerated {
    pub fn new(accelerator: &Accelerator, worker: usize) -> Accelerated {
        Accelerated {
            reader: accelerator.reader(worker),
            sampler: Sampler::new(accelerator.sample_every(), 1 + worker as u64),
            keys: Vec::new(),
            samples: Vec::new(),
            bytes: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Looks a request up. Returns whether it is answered.
    pub fn answer(
        &mut self,
        to: ReplyTo,
        request: &[u8],
        (accepts, seed): (Accepts, Seed),
        now: Moment,
    ) -> bool {
        let Some(asked) = lone_read(request, accepts) else {
            self.reader.tally(Tally::Request);
            return false;
        };
        let start = self.bytes.len();
        if self.write(asked, Accelerator::now_ns(now)) {
            self.replies.push((to, start..self.bytes.len()));
            return true;
        }
        self.bytes.truncate(start);
        if self.sampler.takes() && self.samples.len() < HOT_OFFERS_MAX {
            let (Asked::Get(key) | Asked::Gets(key) | Asked::Binary(_, key)) = asked;
            let start = self.keys.len();
            self.keys.extend_from_slice(key);
            let hash = seed.keyhash(key);
            self.samples.push((hash, start..self.keys.len()));
        }
        false
    }

    /// Appends the reply from a slot, if the slot has it and has not changed meanwhile.
    fn write(&mut self, asked: Asked<'_>, now_ns: u64) -> bool {
        let out = &mut self.bytes;
        let (Asked::Get(key) | Asked::Gets(key) | Asked::Binary(_, key)) = asked;
        let Ok(hit) = self.reader.find(key, now_ns) else {
            return false;
        };
        let peek = hit.peek();
        let start = out.len();
        let (pieces, tally) = match asked {
            Asked::Get(_) => ([Piece::GetLine, Piece::Body], Tally::HitGet),
            Asked::Gets(_) => ([Piece::GetsLine, Piece::Body], Tally::HitGets),
            Asked::Binary(header, key) => {
                let shown = if opcode::shows_key(header.opcode) {
                    key
                } else {
                    b""
                };
                let body_bytes = FLAGS_BYTES + shown.len() + peek.bytes(Piece::Value);
                out.extend_from_slice(&[MAGIC_REPLY, header.opcode]);
                out.extend_from_slice(&(shown.len() as u16).to_be_bytes());
                out.extend_from_slice(&[FLAGS_BYTES as u8, 0, 0, 0]);
                out.extend_from_slice(&(body_bytes as u32).to_be_bytes());
                out.extend_from_slice(&header.opaque);
                out.extend_from_slice(&peek.cas().to_be_bytes());
                out.extend_from_slice(&peek.flags().to_be_bytes());
                out.extend_from_slice(shown);
                ([Piece::Value, Piece::Value], Tally::HitBinary)
            }
        };
        let pieces = match tally {
            Tally::HitBinary => &pieces[..1],
            _ => &pieces[..],
        };
        for &piece in pieces {
            let at = out.len();
            out.resize(at + peek.bytes(piece), 0);
            peek.copy(piece, &mut out[at..]);
        }
        if out.len() - start > PAYLOAD_BYTES {
            self.reader.tally(Tally::TooLong);
            return false;
        }
        hit.finish(tally)
    }

    /// Number of replies.
    pub fn count(&self) -> usize {
        self.replies.len()
    }

    /// The replies, each for one datagram.
    pub fn replies(&self) -> impl Iterator<Item = (&ReplyTo, &[u8])> {
        let replies = self.replies.iter();
        replies.map(|(to, range)| (to, &self.bytes[range.clone()]))
    }

    /// Bytes of the replies.
    pub fn reply_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The replies are sent.
    pub fn clear_replies(&mut self) {
        self.replies.clear();
        self.bytes.clear();
    }

    /// Whether reads were sampled.
    pub fn has_samples(&self) -> bool {
        !self.samples.is_empty()
    }

    /// The reads that were sampled. How long their values are is not known.
    pub fn samples(&self) -> impl Iterator<Item = SampledRead<'_>> {
        let samples = self.samples.iter();
        samples.map(|(keyhash, range)| SampledRead {
            keyhash: *keyhash,
            key: &self.keys[range.clone()],
            value_bytes: 1,
        })
    }

    /// The samples have been handed in.
    pub fn clear_samples(&mut self) {
        self.samples.clear();
        self.keys.clear();
    }
}

/// What a datagram asks for that holds one read and nothing else.
fn lone_read(request: &[u8], accepts: Accepts) -> Option<Asked<'_>> {
    let is_accepted = |protocol| accepts == Accepts::Any || accepts == protocol;
    if request.first() == Some(&MAGIC_REQUEST) {
        return lone_binary(request).filter(|_| is_accepted(Accepts::Binary));
    }
    if !is_accepted(Accepts::Text) {
        return None;
    }
    let line = request.strip_suffix(b"\r\n")?;
    let (key, asked): (_, fn(_) -> _) = match line {
        [b'g', b'e', b't', b' ', key @ ..] => (key, Asked::Get),
        [b'g', b'e', b't', b's', b' ', key @ ..] => (key, Asked::Gets),
        _ => return None,
    };
    let is_plain = (1..=250).contains(&key.len()) && key.iter().all(|byte| *byte > b' ');
    is_plain.then(|| asked(key))
}

fn lone_binary(packet: &[u8]) -> Option<Asked<'_>> {
    let (header, key) = packet.split_first_chunk::<BINARY_HEADER_BYTES>()?;
    let &[_, code, key_high, key_low, extras, data_type, ..] = header;
    let is_read = matches!(
        code,
        opcode::GET | opcode::GETQ | opcode::GETK | opcode::GETKQ
    );
    let key_bytes = usize::from(u16::from_be_bytes([key_high, key_low]));
    let body_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    let is_whole = key_bytes == key.len() && body_bytes == key.len() && extras == 0;
    let is_plain = is_read && is_whole && data_type == 0 && (1..=250).contains(&key_bytes);
    let opaque = [header[12], header[13], header[14], header[15]];
    let header = Header {
        opcode: code,
        opaque,
    };
    is_plain.then_some(Asked::Binary(header, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_reads_of_one_key() {
        let text = |request: &'static [u8]| lone_read(request, Accepts::Any);
        assert_eq!(text(b"get k\r\n"), Some(Asked::Get(b"k")));
        assert_eq!(text(b"gets kk\r\n"), Some(Asked::Gets(b"kk")));
        let others: [&[u8]; 9] = [
            b"get k l\r\n",
            b"get  k\r\n",
            b"get k\n",
            b"get \r\n",
            b"get k\r\nget l\r\n",
            b"mget k\r\n",
            b"gat 0 k\r\n",
            b"get k\0\r\n",
            b"get k",
        ];
        for other in others {
            assert_eq!(
                lone_read(other, Accepts::Any),
                None,
                "{}",
                other.escape_ascii()
            );
        }
        assert_eq!(lone_read(b"get k\r\n", Accepts::Binary), None);
        let mut packet = vec![0x80, opcode::GETK, 0, 1];
        packet.extend([0; 20]);
        packet[11] = 1;
        packet.push(b'k');
        let header = Header {
            opcode: opcode::GETK,
            opaque: [0; 4],
        };
        assert_eq!(
            lone_read(&packet, Accepts::Any),
            Some(Asked::Binary(header, b"k"))
        );
        assert_eq!(lone_read(&packet, Accepts::Text), None);
        packet.push(0x80);
        assert_eq!(lone_read(&packet, Accepts::Any), None);
    }
}
