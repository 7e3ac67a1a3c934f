//! Where trains are received into, and where their answers are written.

use arrayvec::ArrayVec;
use std::io;
use std::os::fd::BorrowedFd;

use crate::sys::mmsg::{DATAGRAMS_MAX, Peer};
use crate::sys::train::{self, Arrival};

/// The longest train that there is.
const SLOT_BYTES: usize = 64 << 10;
/// As the inbox's: slots at a distance that is a power of two would share one set of each cache.
const SLOT_STRIDE: usize = SLOT_BYTES + 3 * 64;

/// The trains of one system call. Their 2 MiB of address space are touched only as far as trains are long.
pub struct Trains {
    slots: Vec<u8>,
    peers: [Peer; DATAGRAMS_MAX],
    arrivals: [Arrival; DATAGRAMS_MAX],
    count: usize,
}

impl Default for Trains {
    fn default() -> Self {
        Trains {
            slots: vec![0; SLOT_STRIDE * DATAGRAMS_MAX],
            peers: [Peer::nobody(); DATAGRAMS_MAX],
            arrivals: [Arrival::default(); DATAGRAMS_MAX],
            count: 0,
        }
    }
}

impl Trains {
    /// Trains in it.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The datagrams of one train, one behind the other.
    #[inline]
    pub fn bytes(&self, train: usize) -> &[u8] {
        let start = train * SLOT_STRIDE;
        &self.slots[start..start + self.arrivals[train].bytes]
    }

    /// The same, to write answers over them.
    #[inline]
    pub fn bytes_mut(&mut self, train: usize) -> &mut [u8] {
        let start = train * SLOT_STRIDE;
        &mut self.slots[start..start + self.arrivals[train].bytes]
    }

    /// Bytes of each datagram of a train; the last may be shorter. At least one.
    #[inline]
    pub fn stride(&self, train: usize) -> usize {
        self.arrivals[train].stride
    }

    /// Who sent a train.
    #[inline]
    pub fn peer(&self, train: usize) -> &Peer {
        &self.peers[train]
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Puts a train in that did not come by a socket.
    ///
    /// # Panics
    ///
    /// If it is too long, or [`DATAGRAMS_MAX`] are in.
    pub fn push(&mut self, peer: Peer, bytes: &[u8], stride: usize) {
        let start = self.count * SLOT_STRIDE;
        assert!(self.count < DATAGRAMS_MAX && bytes.len() <= SLOT_BYTES && stride > 0);
        self.slots[start..start + bytes.len()].copy_from_slice(bytes);
        self.peers[self.count] = peer;
        self.arrivals[self.count] = Arrival {
            bytes: bytes.len(),
            stride,
        };
        self.count += 1;
    }

    /// Replaces what is in it by what waits.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut slots: ArrayVec<&mut [u8], DATAGRAMS_MAX> = self
            .slots
            .chunks_mut(SLOT_STRIDE)
            .map(|slot| &mut slot[..SLOT_BYTES])
            .collect();
        self.count = 0;
        self.count = train::receive(socket, &mut slots, &mut self.peers, &mut self.arrivals)?;
        Ok(())
    }
}
