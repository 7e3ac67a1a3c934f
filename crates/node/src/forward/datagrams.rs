//! Datagrams on their way to the worker that owns their keys.

use glimmer_transport::packet::RxBatch;
use std::net::SocketAddr;

/// Bytes of each segment batch at most: a segment batch of tiny requests is no longer, and what is
/// longer is cut up.
const SLOT_BYTES: usize = 4 << 10;

/// Bytes of memory that one [`ForwardedDatagrams`] takes.
pub(crate) const FORWARDED_DATAGRAMS_BYTES: usize = RxBatch::memory_bytes(SLOT_BYTES);

/// The datagrams that one burst brought for one other worker. That worker answers them where they
/// lie, from the address of the device at which they came in, and sends the batch home.
pub(crate) struct ForwardedDatagrams {
    /// The worker that the batch belongs to.
    home: usize,
    /// The number that the device has among that worker's packet sources.
    pub source: usize,
    pub received: RxBatch,
    /// The segment batch of the burst whose datagrams the last segment batch here has.
    tail: Option<usize>,
}

impl ForwardedDatagrams {
    /// An empty batch for what comes in at this source.
    pub fn new(home: usize, source: usize) -> ForwardedDatagrams {
        ForwardedDatagrams {
            home,
            source,
            received: RxBatch::with_slots(SLOT_BYTES),
            tail: None,
        }
    }

    /// Makes it ready for other datagrams, which come in at this source.
    pub fn reset(&mut self, source: usize) {
        self.received.clear();
        self.tail = None;
        self.source = source;
    }

    pub fn home(&self) -> usize {
        self.home
    }

    /// Copies in a datagram of the burst's segment batch with this number, whose datagrams have
    /// `segment_bytes` bytes each. False: there is no room for it.
    #[inline]
    pub fn put(
        &mut self,
        index: usize,
        peer: SocketAddr,
        datagram: &[u8],
        segment_bytes: usize,
    ) -> bool {
        if self.tail == Some(index) && self.received.extend_last(datagram) {
            return true;
        }
        let has_room = !self.received.is_full() && datagram.len() <= SLOT_BYTES;
        if has_room {
            self.received.push(peer, datagram, segment_bytes);
            self.tail = Some(index);
        }
        has_room
    }
}

const _: () = assert!(
    glimmer_proto::native::DATAGRAM_BYTES_MAX <= SLOT_BYTES,
    "every datagram has room"
);
