//! What leaves with one call.

use arrayvec::ArrayVec;
use glimmer_base::limits::PACKET_BATCH_MAX;
use std::net::SocketAddr;

use super::{PacketSender, Transmitted};

/// Bytes of a segment batch at most: what a datagram that is not cut up may have.
pub const SEGMENTED_BYTES_MAX: usize = 65_507;
/// Datagrams of a segment batch that is sent, at most: Linux's bound.
pub const SEGMENTS_MAX: usize = 64;

/// Datagrams to one peer: one of any length, or several of one length one after the other (a
/// segment batch).
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Where they go.
    pub to: SocketAddr,
    /// The first bytes of a datagram that is alone, where a protocol frames it; none before the
    /// datagrams of a segment batch. It is short, so it is a value and need not be borrowed.
    pub header: Option<[u8; 8]>,
    /// The rest of it; or all datagrams, one directly after the other.
    pub payload: &'a [u8],
    /// Bytes of each datagram; the last may be shorter. At least as long as all bytes together
    /// where there is one datagram.
    pub segment_bytes: usize,
}

impl<'a> Message<'a> {
    /// One datagram.
    #[inline]
    pub fn alone(to: SocketAddr, payload: &'a [u8]) -> Message<'a> {
        Message::segments(to, payload, payload.len())
    }

    /// One datagram that begins with a header.
    #[inline]
    pub fn framed(to: SocketAddr, header: [u8; 8], payload: &'a [u8]) -> Message<'a> {
        Message {
            to,
            header: Some(header),
            payload,
            segment_bytes: header.len() + payload.len(),
        }
    }

    /// Datagrams of `segment_bytes` bytes each, at least one; the last may be shorter.
    #[inline]
    pub fn segments(to: SocketAddr, payload: &'a [u8], segment_bytes: usize) -> Message<'a> {
        Message {
            to,
            header: None,
            payload,
            segment_bytes,
        }
    }

    /// What comes before the payload.
    #[inline]
    pub fn header(&self) -> &[u8] {
        self.header.as_ref().map_or(&[], |header| header)
    }

    /// Bytes of all its datagrams.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.header().len() + self.payload.len()
    }

    /// Whether it has more than one datagram.
    #[inline]
    pub fn is_segmented(&self) -> bool {
        self.bytes() > self.segment_bytes
    }

    /// How many datagrams it has; an empty one counts.
    #[inline]
    pub fn datagrams(&self) -> usize {
        match self.is_segmented() {
            true => self.bytes().div_ceil(self.segment_bytes),
            false => 1,
        }
    }

    /// Its datagrams, each by itself.
    pub fn apart(&self) -> impl Iterator<Item = Message<'a>> {
        let Message {
            to,
            payload,
            segment_bytes,
            ..
        } = *self;
        let whole = (!self.is_segmented()).then_some(*self);
        let segments = match whole {
            Some(_) => [].chunks(1),
            None => payload.chunks(segment_bytes),
        };
        let segment = move |bytes| Message::alone(to, bytes);
        whole.into_iter().chain(segments.map(segment))
    }
}

/// Messages that leave together, at most [`PACKET_BATCH_MAX`] with each call of the sender. They
/// are borrowed, so that collecting them copies nothing, and allocates nothing.
pub struct TxBatch<'a, 's, S: PacketSender + ?Sized> {
    messages: ArrayVec<Message<'a>, PACKET_BATCH_MAX>,
    sender: &'s mut S,
    transmitted: Transmitted,
}

impl<'a, 's, S: PacketSender + ?Sized> TxBatch<'a, 's, S> {
    /// An empty batch for this sender.
    #[inline]
    pub fn new(sender: &'s mut S) -> Self {
        TxBatch {
            messages: ArrayVec::new(),
            sender,
            transmitted: Transmitted::default(),
        }
    }

    /// Adds a message, in as many as one of them may not be longer than the kernel takes. Sends
    /// what is there when the batch is full. Once the sender takes no more, the rest is lost
    /// without another attempt.
    #[inline]
    pub fn push(&mut self, message: Message<'a>) {
        if !message.is_segmented() {
            return self.add(message);
        }
        let size = message.segment_bytes;
        let datagrams = SEGMENTS_MAX.min(SEGMENTED_BYTES_MAX / size).max(1);
        for payload in message.payload.chunks(datagrams * size) {
            self.add(Message::segments(message.to, payload, size));
        }
    }

    #[inline]
    fn add(&mut self, message: Message<'a>) {
        if self.transmitted.is_full {
            self.transmitted.lost += message.datagrams() as u64;
            return;
        }
        self.messages.push(message);
        if self.messages.is_full() {
            self.flush();
        }
    }

    /// Sends what is there.
    fn flush(&mut self) {
        let transmitted = self.sender.send(&self.messages);
        self.transmitted.add(transmitted);
        self.messages.clear();
    }

    /// Sends the rest. Returns what became of everything.
    #[inline]
    pub fn finish(mut self) -> Transmitted {
        if !self.messages.is_empty() {
            self.flush();
        }
        self.transmitted
    }
}

#[cfg(test)]
#[path = "tx_tests.rs"]
mod tests;
