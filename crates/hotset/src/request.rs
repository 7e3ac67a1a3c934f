//! The requests that an accelerator answers, and their replies.
//!
//! Any doubt is a request for the server. A text has to be exactly `get K\r\n` or `gets K\r\n`. A
//! binary request has to be exactly as long as its key, with every field zero that a GET has no use
//! for.

use crate::layout::{Peek, Piece, Tally, dimensions::KEY_MAX};
use crate::lookup::Reader;
use crate::sums;

/// Bytes of a header of the binary protocol.
const BINARY_HEADER_BYTES: usize = 24;
const MAGIC_REQUEST: u8 = 0x80;
const MAGIC_REPLY: u8 = 0x81;
const GET: u8 = 0x00;
const GETQ: u8 = 0x09;
const GETK: u8 = 0x0c;
const GETKQ: u8 = 0x0d;
/// Bytes of the flags in a binary reply.
const EXTRAS_BYTES: usize = 4;

/// How a request wants to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, `get`.
    Get,
    /// Text, `gets`.
    Gets,
    /// Binary: GET, GETQ, GETK or GETKQ.
    Binary {
        /// The command.
        opcode: u8,
        /// Echoed.
        opaque: [u8; 4],
    },
}

/// A request that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// How it wants to be answered.
    pub form: Form,
    /// The key.
    pub key: &'a [u8],
}

impl<'a> Request<'a> {
    /// The request that these bytes are, all of them. `None`: the server has to look at it.
    pub fn parse(bytes: &'a [u8]) -> Option<Request<'a>> {
        if bytes.first() == Some(&MAGIC_REQUEST) {
            return Request::parse_binary(bytes);
        }
        let line = bytes.strip_suffix(b"\r\n")?;
        let (form, key) = match line.strip_prefix(b"get ") {
            Some(key) => (Form::Get, key),
            None => (Form::Gets, line.strip_prefix(b"gets ")?),
        };
        let is_plain = key.iter().all(|&byte| byte > b' ' && byte != 0x7F);
        ((1..=KEY_MAX).contains(&key.len()) && is_plain).then_some(Request { form, key })
    }

    fn parse_binary(bytes: &'a [u8]) -> Option<Request<'a>> {
        let (header, key) = bytes.split_first_chunk::<BINARY_HEADER_BYTES>()?;
        let [
            _,
            opcode,
            k0,
            k1,
            extras,
            kind,
            v0,
            v1,
            b0,
            b1,
            b2,
            b3,
            rest @ ..,
        ] = *header;
        let [o0, o1, o2, o3, cas @ ..] = rest;
        let is_a_get = matches!(opcode, GET | GETQ | GETK | GETKQ);
        let is_plain = [extras, kind, v0, v1] == [0; 4] && cas == [0; 8];
        let key_bytes = usize::from(u16::from_be_bytes([k0, k1]));
        let is_whole = key_bytes == key.len()
            && u32::from_be_bytes([b0, b1, b2, b3]) as usize == key_bytes
            && (1..=KEY_MAX).contains(&key_bytes);
        let form = Form::Binary {
            opcode,
            opaque: [o0, o1, o2, o3],
        };
        (is_a_get && is_plain && is_whole).then_some(Request { form, key })
    }
}

impl Form {
    /// What a hit is counted as.
    pub fn tally(self) -> Tally {
        match self {
            Form::Get => Tally::HitGet,
            Form::Gets => Tally::HitGets,
            Form::Binary { .. } => Tally::HitBinary,
        }
    }

    /// The pieces of the reply after its head, in their order.
    fn pieces(self) -> &'static [Piece] {
        match self {
            Form::Get => &[Piece::GetLine, Piece::Body],
            Form::Gets => &[Piece::GetsLine, Piece::Body],
            Form::Binary {
                opcode: GETK | GETKQ,
                ..
            } => &[Piece::Key, Piece::Value],
            Form::Binary { .. } => &[Piece::Value],
        }
    }
}

/// A reply that is about to be written from what a reader sees.
#[derive(Debug)]
pub struct Reply<'a> {
    peek: Peek<'a>,
    pieces: &'static [Piece],
    head: [u8; BINARY_HEADER_BYTES + EXTRAS_BYTES],
    head_bytes: usize,
    body_bytes: usize,
}

impl<'a> Reply<'a> {
    /// The reply in this form.
    pub fn new(form: Form, peek: &Peek<'a>) -> Reply<'a> {
        let pieces = form.pieces();
        let body_bytes = pieces.iter().map(|&piece| peek.bytes(piece)).sum();
        let mut reply = Reply {
            peek: *peek,
            pieces,
            head: [0; BINARY_HEADER_BYTES + EXTRAS_BYTES],
            head_bytes: 0,
            body_bytes,
        };
        if let Form::Binary { opcode, opaque } = form {
            let key_bytes = if pieces.contains(&Piece::Key) {
                peek.bytes(Piece::Key)
            } else {
                0
            };
            let head = &mut reply.head;
            head[0] = MAGIC_REPLY;
            head[1] = opcode;
            head[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
            head[4] = EXTRAS_BYTES as u8;
            head[8..12].copy_from_slice(&((EXTRAS_BYTES + body_bytes) as u32).to_be_bytes());
            head[12..16].copy_from_slice(&opaque);
            head[16..24].copy_from_slice(&peek.cas().to_be_bytes());
            head[24..28].copy_from_slice(&peek.flags().to_be_bytes());
            reply.head_bytes = head.len();
        }
        reply
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.head_bytes + self.body_bytes
    }

    /// Writes it, and returns its sum as if it began at an even offset. The sums of the pieces are
    /// not computed again.
    ///
    /// # Panics
    ///
    /// If the place is not as long as the reply.
    pub fn write(&self, place: &mut [u8]) -> u32 {
        assert_eq!(place.len(), self.bytes());
        let head = &self.head[..self.head_bytes];
        let (start, mut rest) = place.split_at_mut(head.len());
        start.copy_from_slice(head);
        let (mut sum, mut at) = (sums::of(head), head.len());
        for &piece in self.pieces {
            let (here, after) = rest.split_at_mut(self.peek.bytes(piece));
            self.peek.copy(piece, here);
            sum = sums::add(sum, sums::at(at, self.peek.sum(piece)));
            at += here.len();
            rest = after;
        }
        sum
    }
}

impl Reader {
    /// Answers a request at this time of CLOCK_MONOTONIC in nanoseconds, and appends the reply, of
    /// `bytes_max` bytes at most. The software model of the accelerator is this function.
    ///
    /// # Errors
    ///
    /// Why the server has to answer. Nothing has been appended then.
    pub fn answer(
        &self,
        request: &Request<'_>,
        now_ns: u64,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Tally> {
        let hit = self.find(request.key, now_ns)?;
        let reply = Reply::new(request.form, hit.peek());
        if reply.bytes() > bytes_max {
            self.tally(Tally::TooLong);
            return Err(Tally::TooLong);
        }
        let start = out.len();
        out.resize(start + reply.bytes(), 0);
        reply.write(&mut out[start..]);
        if hit.finish(request.form.tally()) {
            return Ok(());
        }
        out.truncate(start);
        Err(Tally::Torn)
    }
}
