//! Where trains are received into, and where their answers are written.

use arrayvec::ArrayVec;
use std::io;
use std::os::fd::BorrowedFd;

use crate::sys::mmsg::{DATAGRAMS_MAX, Peer};
use crate::sys::train::{self, Arrival};

/// The longest train that there is.
const SLOT_BYTES: usize = 64 << 10;
/// As the inbox's: slots at a distance that is a power of two would share one set of each cache.
const BETWEEN_BYTES: usize = 3 * 64;

/// The trains of one system call. Their 2 MiB of address space are touched only as far as trains are long.
pub struct Trains {
    slots: Vec<u8>,
    /// From one slot to the next.
    distance: usize,
    peers: [Peer; DATAGRAMS_MAX],
    arrivals: [Arrival; DATAGRAMS_MAX],
    count: usize,
    drops: Option<u32>,
}

impl Default for Trains {
    fn default() -> Self {
        Trains::with_slots(SLOT_BYTES)
    }
}

impl Trains {
    /// For trains of at most so many bytes each. Into slots that are shorter than the longest train, trains are put and not received.
    pub fn with_slots(bytes: usize) -> Trains {
        let distance = bytes + BETWEEN_BYTES;
        Trains {
            slots: vec![0; Trains::bytes_with_slots(bytes)],
            distance,
            peers: [Peer::nobody(); DATAGRAMS_MAX],
            arrivals: [Arrival::default(); DATAGRAMS_MAX],
            count: 0,
            drops: None,
        }
    }

    /// Bytes of memory that [`Trains::with_slots`] takes.
    pub const fn bytes_with_slots(bytes: usize) -> usize {
        (bytes + BETWEEN_BYTES) * DATAGRAMS_MAX
    }

    /// Trains in it.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The datagrams of one train, one behind the other.
    #[inline]
    pub fn bytes(&self, train: usize) -> &[u8] {
        let start = train * self.distance;
        &self.slots[start..start + self.arrivals[train].bytes]
    }

    /// The same, to write answers over them.
    #[inline]
    pub fn bytes_mut(&mut self, train: usize) -> &mut [u8] {
        let start = train * self.distance;
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
        let start = self.count * self.distance;
        assert!(!self.is_full() && bytes.len() <= self.slot_bytes() && stride > 0);
        self.slots[start..start + bytes.len()].copy_from_slice(bytes);
        self.peers[self.count] = peer;
        self.arrivals[self.count] = Arrival {
            bytes: bytes.len(),
            stride,
        };
        self.count += 1;
    }

    /// Whether there is no room for another train.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count == DATAGRAMS_MAX
    }

    /// Puts a datagram, no longer than the others, behind those of the last train. False: there is no train, its last datagram is shorter than the others, or
    /// it has no room.
    #[inline]
    pub fn extend_last(&mut self, datagram: &[u8]) -> bool {
        let slot_bytes = self.slot_bytes();
        let Some(last) = self.count.checked_sub(1) else {
            return false;
        };
        let Arrival { bytes, stride } = &mut self.arrivals[last];
        let has_room = bytes.is_multiple_of(*stride)
            && datagram.len() <= *stride
            && *bytes + datagram.len() <= slot_bytes;
        if has_room {
            let start = last * self.distance + *bytes;
            self.slots[start..start + datagram.len()].copy_from_slice(datagram);
            *bytes += datagram.len();
        }
        has_room
    }

    /// Keeps the first `bytes` of a train, which are whole datagrams.
    #[inline]
    pub fn truncate(&mut self, train: usize, bytes: usize) {
        let arrival = &mut self.arrivals[train];
        arrival.bytes = arrival.bytes.min(bytes);
    }

    fn slot_bytes(&self) -> usize {
        self.distance - BETWEEN_BYTES
    }

    /// The kernel's count of datagrams that it dropped on the socket, as of the last one received;
    /// `None` where it told of none. The count wraps around.
    #[inline]
    pub fn drops(&self) -> Option<u32> {
        self.drops
    }

    /// Replaces what is in it by what waits.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let slot_bytes = self.slot_bytes();
        let mut slots: ArrayVec<&mut [u8], DATAGRAMS_MAX> = self
            .slots
            .chunks_mut(self.distance)
            .map(|slot| &mut slot[..slot_bytes])
            .collect();
        (self.count, self.drops) = (0, None);
        (self.count, self.drops) =
            train::receive(socket, &mut slots, &mut self.peers, &mut self.arrivals)?;
        Ok(())
    }
}
