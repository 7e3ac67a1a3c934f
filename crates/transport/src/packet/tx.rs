//! Messages sent with one call.

use arrayvec::ArrayVec;
use glimmer_base::limits::PACKET_BATCH_MAX;
use std::net::SocketAddr;

use super::{PacketSender, Transmitted};

/// Longest segment batch in bytes: the longest datagram before segmentation.
pub const SEGMENTED_BYTES_MAX: usize = 65_507;
/// Maximum number of datagrams in a segment batch that is sent: Linux's limit.
pub const SEGMENTS_MAX: usize = 64;

/// Datagrams to one peer: one of any length, or several of equal length, one after the other (a
/// segment batch).
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The destination.
    pub to: SocketAddr,
    /// The first bytes of a single datagram, if its protocol frames it; empty for a segment batch.
    /// It is short, so it is a value and need not be borrowed.
    pub header: Option<[u8; 8]>,
    /// The rest of the datagram; or all datagrams of a segment batch.
    pub payload: &'a [u8],
    /// Length of each datagram in bytes; the last may be shorter. For a single datagram, at least
    /// its whole length.
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

    /// The number of datagrams. An empty datagram counts.
    #[inline]
    pub fn datagrams(&self) -> usize {
        match self.is_segmented() {
            true => self.bytes().div_ceil(self.segment_bytes),
            false => 1,
        }
    }

    /// Its datagrams as separate messages.
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

/// Messages that are sent together, at most [`PACKET_BATCH_MAX`] per call of the sender. They are
/// borrowed, so collecting them neither copies nor allocates.
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

    /// Adds a message, split if it is longer than the kernel accepts. Sends the batch when it is
    /// full. Once the sender is full, the remaining messages are lost without another attempt.
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

    /// Sends the batch.
    fn flush(&mut self) {
        let transmitted = self.sender.send(&self.messages);
        self.transmitted.add(transmitted);
        self.messages.clear();
    }

    /// Sends the rest. Returns the result for all messages.
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
