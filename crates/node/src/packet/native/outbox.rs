//! Outgoing replies.
//!
//! A reply that is no longer than its request's datagram is written over it. The received segment
//! batch is then sent back with the replies, so nothing is longer than the request that it answers.
//! Longer replies are sent separately, in one segment batch per peer and per 64 bytes of length,
//! padded to equal length. Their clients have validated their addresses.

use super::context::RequestContext;
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_base::short;
use glimmer_proto::native::fragment::{self, Fragment};
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Kind, ReplyHeader};
use glimmer_transport::packet::{
    Message, PacketSender, RxBatch, SEGMENTED_BYTES_MAX, SEGMENTS_MAX, Transmitted, TxBatch,
};
use std::net::SocketAddr;

/// Separate replies are sent together if their lengths differ by less than this.
const CLASS_BYTES: usize = 64;
const CLASSES: usize = DATAGRAM_BYTES_MAX.div_ceil(CLASS_BYTES);
/// Bytes of separate replies after which they are sent.
const BESIDE_BYTES_HIGH: usize = 512 << 10;

/// The senders of replies, and the results so far.
pub struct Sending<'s> {
    sender: &'s mut dyn PacketSender,
    pub transmitted: Transmitted,
}

impl<'s> Sending<'s> {
    pub fn new(sender: &'s mut dyn PacketSender) -> Sending<'s> {
        Sending {
            sender,
            transmitted: Transmitted::default(),
        }
    }
}

/// The replies written over a segment batch.
#[derive(Clone, Copy, Default)]
struct Written {
    /// The end of the last reply.
    end: usize,
    /// The start of the next reply.
    next: usize,
}

/// Replies to one segment batch that are sent separately.
struct Run {
    segment_batch: usize,
    class: usize,
    start: usize,
    end: usize,
}

/// A window of a message.
pub struct Piece<'a> {
    /// Bytes of the whole message.
    pub message_bytes: u32,
    /// Its digest.
    pub digest: u64,
    /// The position of the window in the message, at the start of a fragment.
    pub first: usize,
    /// The window.
    pub bytes: &'a [u8],
}

/// The replies to one burst.
pub struct Outbox {
    written: [Written; PACKET_BATCH_MAX],
    /// Replies by class, each padded to the longest of its class.
    beside: [Vec<u8>; CLASSES],
    runs: Vec<Run>,
    /// The last run of each class.
    open: [Option<usize>; CLASSES],
    beside_bytes: usize,
    fragments: Vec<u8>,
    /// Replies written over their requests, since the start.
    pub in_place: u64,
    /// Replies sent separately, since the start.
    pub aside: u64,
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            written: [Written::default(); PACKET_BATCH_MAX],
            beside: [const { Vec::new() }; CLASSES],
            runs: Vec::new(),
            open: [None; CLASSES],
            beside_bytes: 0,
            fragments: Vec::new(),
            in_place: 0,
            aside: 0,
        }
    }

    /// Queues a reply of at most [`DATAGRAM_BYTES_MAX`] bytes, including its header. Returns false
    /// if it is longer than its request and the client has not validated its address.
    #[inline(always)]
    pub fn put(
        &mut self,
        received: &mut RxBatch,
        context: &RequestContext,
        head: &ReplyHeader,
        rest: &[u8],
        sending: &mut Sending<'_>,
    ) -> bool {
        let (index, bytes) = (
            context.spot.segment_batch(),
            ReplyHeader::BYTES + rest.len(),
        );
        debug_assert!(bytes <= DATAGRAM_BYTES_MAX, "{bytes} bytes of a reply");
        if bytes <= context.bytes as usize {
            // Never beyond the datagrams that have been read: each earlier one has at most one
            // reply.
            let written = &mut self.written[index];
            let start = written.next;
            let end = start + bytes;
            let target = &mut received.bytes_mut(index)[start..end];
            if let Some((first, others)) = target.split_first_chunk_mut() {
                head.write(first);
                short::copy(others, rest);
            }
            *written = Written {
                end,
                next: start + received.segment_bytes(index),
            };
            self.in_place += 1;
            return true;
        }
        if context.is_proven {
            self.put_beside(received, index, &head.bytes(), rest, sending);
        }
        context.is_proven
    }

    #[inline(never)]
    fn put_beside(
        &mut self,
        received: &RxBatch,
        index: usize,
        head: &[u8; ReplyHeader::BYTES],
        rest: &[u8],
        sending: &mut Sending<'_>,
    ) {
        if self.beside_bytes >= BESIDE_BYTES_HIGH {
            self.leave_beside(received, sending);
        }
        let class = (head.len() + rest.len() - 1) / CLASS_BYTES;
        let buffer = &mut self.beside[class];
        let start = buffer.len();
        buffer.extend_from_slice(head);
        buffer.extend_from_slice(rest);
        buffer.resize(start + class_bytes(class), 0);
        let end = buffer.len();
        match self.open[class].map(|run| &mut self.runs[run]) {
            Some(run) if run.segment_batch == index => run.end = end,
            _ => {
                self.open[class] = Some(self.runs.len());
                self.runs.push(Run {
                    segment_batch: index,
                    class,
                    start,
                    end,
                });
            }
        }
        self.beside_bytes += end - start;
        self.aside += 1;
    }

    /// Sends a window of a message that is longer than a datagram, in fragments.
    pub fn send_fragments(
        &mut self,
        peer: SocketAddr,
        header: &ReplyHeader,
        piece: &Piece<'_>,
        sending: &mut Sending<'_>,
    ) {
        let header = ReplyHeader {
            kind: Kind::FragmentReply,
            ..*header
        };
        self.fragments.clear();
        let offsets = (piece.first..).step_by(fragment::DATA_BYTES);
        for (offset, data) in offsets.zip(piece.bytes.chunks(fragment::DATA_BYTES)) {
            self.fragments.extend_from_slice(&header.bytes());
            let fragment = Fragment {
                message_bytes: piece.message_bytes,
                offset: offset as u32,
                digest: piece.digest,
                data,
            };
            fragment.write(&mut self.fragments);
        }
        let message = Message::segments(peer, &self.fragments, FRAGMENT_BYTES);
        (sending.transmitted).add(sending.sender.send(&[message]));
    }

    /// Sends everything. The received datagrams are overwritten and sent back, and cannot be read
    /// any more.
    pub fn leave(&mut self, received: &mut RxBatch, sending: &mut Sending<'_>) {
        for (index, written) in self.written[..received.count()].iter_mut().enumerate() {
            received.truncate(index, written.end);
            *written = Written::default();
        }
        (sending.transmitted).add(sending.sender.send_back(received));
        self.leave_beside(received, sending);
    }

    fn leave_beside(&mut self, received: &RxBatch, sending: &mut Sending<'_>) {
        if self.runs.is_empty() {
            return;
        }
        let mut out = TxBatch::new(&mut *sending.sender);
        for run in &self.runs {
            let bytes = &self.beside[run.class][run.start..run.end];
            let peer = received.peer(run.segment_batch);
            out.push(Message::segments(peer, bytes, class_bytes(run.class)));
        }
        (sending.transmitted).add(out.finish());
        self.runs.clear();
        self.open = [None; CLASSES];
        self.beside.iter_mut().for_each(Vec::clear);
        self.beside_bytes = 0;
    }
}

/// Bytes of a fragment of a reply, unless it is its message's last.
const FRAGMENT_BYTES: usize = ReplyHeader::BYTES + fragment::HEAD_BYTES + fragment::DATA_BYTES;

fn class_bytes(class: usize) -> usize {
    ((class + 1) * CLASS_BYTES).min(DATAGRAM_BYTES_MAX)
}

const _: () = assert!(
    fragment::WINDOW <= SEGMENTS_MAX && fragment::WINDOW * FRAGMENT_BYTES <= SEGMENTED_BYTES_MAX,
    "a window of fragments is one segment batch"
);
