//! Where datagrams are received into.

use arrayvec::ArrayVec;
use std::io;
use std::os::fd::BorrowedFd;

use crate::sys::mmsg::{self, DATAGRAMS_MAX, Peer};

/// The longest datagram that there is.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Slots begin so far apart: at a distance that is a power of two their first lines would share one set of each cache.
const STRIDE: usize = DATAGRAM_BYTES_MAX + 3 * 64;

/// The datagrams of one system call. Its 2 MiB of address space are touched only as far as datagrams are long.
pub struct Inbox {
    slots: Vec<u8>,
    peers: [Peer; DATAGRAMS_MAX],
    lengths: [usize; DATAGRAMS_MAX],
    count: usize,
    drops: Option<u32>,
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox {
            slots: vec![0; STRIDE * DATAGRAMS_MAX],
            peers: [Peer::nobody(); DATAGRAMS_MAX],
            lengths: [0; DATAGRAMS_MAX],
            count: 0,
            drops: None,
        }
    }
}

impl Inbox {
    /// Datagrams in it.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bytes of one datagram.
    #[inline]
    pub fn datagram(&self, index: usize) -> &[u8] {
        let start = index * STRIDE;
        &self.slots[start..start + self.lengths[index]]
    }

    /// Who sent one datagram.
    #[inline]
    pub fn peer(&self, index: usize) -> &Peer {
        &self.peers[index]
    }

    /// The kernel's count of datagrams that it dropped on the socket, as of the last one received;
    /// `None` where it told of none. The count wraps around.
    #[inline]
    pub fn drops(&self) -> Option<u32> {
        self.drops
    }

    /// Replaces what is in it by what waits.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut slots: ArrayVec<&mut [u8], DATAGRAMS_MAX> = self
            .slots
            .chunks_mut(STRIDE)
            .map(|slot| &mut slot[..DATAGRAM_BYTES_MAX])
            .collect();
        (self.count, self.drops) = (0, None);
        (self.count, self.drops) =
            mmsg::receive(socket, &mut slots, &mut self.peers, &mut self.lengths)?;
        Ok(())
    }
}
