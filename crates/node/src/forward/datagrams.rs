//! Datagrams on their way to the worker that owns their keys.

use glimmer_transport::udp::{Peer, Socket, Trains};
use std::sync::Arc;

/// Bytes of each train in a batch at most: a train of tiny requests is no longer,
/// and what is longer is cut up.
const SLOT_BYTES: usize = 4 << 10;

/// Bytes of memory behind a batch.
pub(crate) const FORWARDED_DATAGRAMS_BYTES: usize = Trains::bytes_with_slots(SLOT_BYTES);

/// A batch with the datagrams that one burst brought for one other worker. That worker answers them
/// where they lie, by the socket at which they came in, and sends the batch home.
pub(crate) struct ForwardedDatagrams {
    /// The worker that the batch belongs to.
    home: usize,
    pub trains: Trains,
    /// Where they came in, and the ports of all workers at that address.
    pub socket: Arc<Socket>,
    pub ports: Arc<[u16]>,
    /// The train of the burst whose datagrams the last train in the batch has.
    tail: Option<usize>,
}

impl ForwardedDatagrams {
    /// An empty batch for what comes in by this socket.
    pub fn new(home: usize, socket: &Arc<Socket>, ports: &Arc<[u16]>) -> ForwardedDatagrams {
        ForwardedDatagrams {
            home,
            trains: Trains::with_slots(SLOT_BYTES),
            socket: socket.clone(),
            ports: ports.clone(),
            tail: None,
        }
    }

    /// Makes it ready for other datagrams, which come in by this socket.
    pub fn reset(&mut self, socket: &Arc<Socket>, ports: &Arc<[u16]>) {
        self.trains.clear();
        self.tail = None;
        if !Arc::ptr_eq(&self.socket, socket) {
            (self.socket, self.ports) = (socket.clone(), ports.clone());
        }
    }

    pub fn home(&self) -> usize {
        self.home
    }

    /// Copies in a datagram of the burst's train with this number, whose datagrams have `stride`
    /// bytes each. False: there is no room for it.
    #[inline]
    pub fn put(&mut self, train: usize, peer: &Peer, datagram: &[u8], stride: usize) -> bool {
        if self.tail == Some(train) && self.trains.extend_last(datagram) {
            return true;
        }
        let has_credit = !self.trains.is_full() && datagram.len() <= SLOT_BYTES;
        if has_credit {
            self.trains.push(*peer, datagram, stride);
            self.tail = Some(train);
        }
        has_credit
    }
}

const _: () = assert!(
    glimmer_proto::native::DATAGRAM_BYTES_MAX <= SLOT_BYTES,
    "every datagram has room"
);
