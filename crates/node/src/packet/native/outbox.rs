//! Replies on their way out.
//!
//! A reply that is no longer than the datagram that asked for it is written over it: the train that
//! was received leaves as the train that answers, and nothing is longer than what it answers.
//! Longer ones go beside, in one train for each peer and each 64 bytes of length, padded to the
//! same length; their clients have shown that they own their addresses.

use super::context::RequestContext;
use arrayvec::ArrayVec;
use glimmer_base::short;
use glimmer_proto::native::fragment::{self, Fragment};
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Kind, ReplyHeader};
use glimmer_transport::udp::{
    DATAGRAMS_MAX, Peer, TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX, Train, Trains,
};

/// Replies beside their requests go with others that differ from them by less.
const CLASS_BYTES: usize = 64;
const CLASSES: usize = DATAGRAM_BYTES_MAX.div_ceil(CLASS_BYTES);
/// Replies beside their requests leave once there are so many bytes of them.
const BESIDE_BYTES_HIGH: usize = 512 << 10;

/// Takes trains to their peers.
pub type Send<'a> = dyn FnMut(&[Train<'_>]) + 'a;

/// What has been written over a train.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Where the last reply ends.
    end: usize,
    /// Where the next one begins.
    next: usize,
}

/// Replies to one train that go beside it.
struct Run {
    train: usize,
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
    /// Where in it the window begins: where a fragment does.
    pub first: usize,
    /// The window.
    pub bytes: &'a [u8],
}

/// The replies to the trains of one system call.
pub struct Outbox {
    written: [Written; DATAGRAMS_MAX],
    /// By class: replies, each padded to the longest of its class.
    beside: [Vec<u8>; CLASSES],
    runs: Vec<Run>,
    /// The last run of each class.
    open: [Option<usize>; CLASSES],
    beside_bytes: usize,
    fragments: Vec<u8>,
    /// Replies over their requests, since the start.
    pub in_place: u64,
    /// Replies beside them.
    pub aside: u64,
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            written: [Written::default(); DATAGRAMS_MAX],
            beside: [const { Vec::new() }; CLASSES],
            runs: Vec::new(),
            open: [None; CLASSES],
            beside_bytes: 0,
            fragments: Vec::new(),
            in_place: 0,
            aside: 0,
        }
    }

    /// Puts a reply of at most [`DATAGRAM_BYTES_MAX`] bytes, its header among them, on its way.
    /// False: it is longer than its request, and the client has not shown that it owns its address.
    #[inline(always)]
    pub fn put(
        &mut self,
        trains: &mut Trains,
        context: &RequestContext,
        head: &ReplyHeader,
        rest: &[u8],
        send: &mut Send<'_>,
    ) -> bool {
        let (train, bytes) = (context.spot.train(), ReplyHeader::BYTES + rest.len());
        debug_assert!(bytes <= DATAGRAM_BYTES_MAX, "{bytes} bytes of a reply");
        if bytes <= context.bytes as usize {
            // Never behind the datagrams that have been read: each of those before this one has
            // left at most one reply.
            let written = &mut self.written[train];
            let start = written.next;
            let end = start + bytes;
            let target = &mut trains.bytes_mut(train)[start..end];
            if let Some((first, others)) = target.split_first_chunk_mut() {
                head.write(first);
                short::copy(others, rest);
            }
            *written = Written {
                end,
                next: start + trains.stride(train),
            };
            self.in_place += 1;
            return true;
        }
        if context.is_proven {
            self.put_beside(trains, train, &head.bytes(), rest, send);
        }
        context.is_proven
    }

    #[inline(never)]
    fn put_beside(
        &mut self,
        trains: &Trains,
        train: usize,
        head: &[u8; ReplyHeader::BYTES],
        rest: &[u8],
        send: &mut Send<'_>,
    ) {
        if self.beside_bytes >= BESIDE_BYTES_HIGH {
            self.leave_beside(trains, send);
        }
        let class = (head.len() + rest.len() - 1) / CLASS_BYTES;
        let buffer = &mut self.beside[class];
        let start = buffer.len();
        buffer.extend_from_slice(head);
        buffer.extend_from_slice(rest);
        buffer.resize(start + class_bytes(class), 0);
        let end = buffer.len();
        match self.open[class].map(|run| &mut self.runs[run]) {
            Some(run) if run.train == train => run.end = end,
            _ => {
                self.open[class] = Some(self.runs.len());
                self.runs.push(Run {
                    train,
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
        peer: &Peer,
        header: &ReplyHeader,
        piece: &Piece<'_>,
        send: &mut Send<'_>,
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
        send(&[Train {
            peer,
            bytes: &self.fragments,
            stride: FRAGMENT_BYTES,
        }]);
    }

    /// Sends everything.
    pub fn leave(&mut self, trains: &Trains, send: &mut Send<'_>) {
        let mut departing = Departing::new(send);
        for (train, written) in self.written[..trains.count()].iter().enumerate() {
            let bytes = &trains.bytes(train)[..written.end];
            departing.push(trains.peer(train), bytes, trains.stride(train));
        }
        departing.finish();
        self.written = [Written::default(); DATAGRAMS_MAX];
        self.leave_beside(trains, send);
    }

    fn leave_beside(&mut self, trains: &Trains, send: &mut Send<'_>) {
        if self.runs.is_empty() {
            return;
        }
        let mut departing = Departing::new(send);
        for run in &self.runs {
            let bytes = &self.beside[run.class][run.start..run.end];
            departing.push(trains.peer(run.train), bytes, class_bytes(run.class));
        }
        departing.finish();
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

/// Trains that leave with one call.
struct Departing<'a, 's, 'f> {
    trains: ArrayVec<Train<'a>, DATAGRAMS_MAX>,
    send: &'s mut Send<'f>,
}

impl<'a, 's, 'f> Departing<'a, 's, 'f> {
    fn new(send: &'s mut Send<'f>) -> Self {
        Departing {
            trains: ArrayVec::new(),
            send,
        }
    }

    fn push(&mut self, peer: &'a Peer, bytes: &'a [u8], stride: usize) {
        // A datagram may be longer than any train: it has no answer, or one of its own.
        let datagrams = TRAIN_DATAGRAMS_MAX.min(TRAIN_BYTES_MAX / stride).max(1);
        for bytes in bytes.chunks(datagrams * stride) {
            self.trains.push(Train {
                peer,
                bytes,
                stride,
            });
            if self.trains.is_full() {
                self.leave();
            }
        }
    }

    fn finish(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        if !self.trains.is_empty() {
            (self.send)(&self.trains);
            self.trains.clear();
        }
    }
}

const _: () = assert!(
    fragment::WINDOW <= TRAIN_DATAGRAMS_MAX && fragment::WINDOW * FRAGMENT_BYTES <= TRAIN_BYTES_MAX,
    "a window of fragments is one train"
);
