//! What a device received with one call.

use std::net::SocketAddr;

use glimmer_base::limits::PACKET_BATCH_MAX;

use crate::sys::frames::Frames;
use crate::sys::name;

/// The longest segment batch.
const SLOT_BYTES: usize = 64 << 10;

/// The segment batches that one call of [`receive`](super::PacketDevice::receive) brought, at most
/// [`PACKET_BATCH_MAX`]. A segment batch is one datagram, or several of one length from one peer
/// that travelled as one, as GRO produces them.
///
/// **Memory.** The bytes stay where the device put them, and can be read, and written over with a
/// reply, until the next call that changes the batch. They lie either in slots that belong to the
/// batch, 64 KiB of address space each, of which only pages that were written take memory; a worker
/// uses one batch for all its sockets. Or they lie in a device's own buffers, which are lent to the
/// batch and go back to the device with one call when the batch is cleared, received into again, or
/// dropped. Nothing is copied or allocated for a packet in either case.
pub struct RxBatch {
    pub(crate) frames: Frames,
    peers: [SocketAddr; PACKET_BATCH_MAX],
    segment_bytes: [u32; PACKET_BATCH_MAX],
    drops: Option<u32>,
    /// Segment batches that one call may bring.
    most: usize,
    /// When each segment batch arrived, if that is kept.
    arrived_ns: Option<Box<[u64; PACKET_BATCH_MAX]>>,
}

impl Default for RxBatch {
    fn default() -> Self {
        RxBatch::with_slots(SLOT_BYTES)
    }
}

impl RxBatch {
    /// A batch for segment batches of at most this many bytes each. A batch whose slots are shorter
    /// than the default is only pushed to: what a device receives might not fit.
    pub fn with_slots(slot_bytes: usize) -> RxBatch {
        RxBatch {
            frames: Frames::new(slot_bytes),
            peers: [name::unspecified(); PACKET_BATCH_MAX],
            segment_bytes: [1; PACKET_BATCH_MAX],
            drops: None,
            most: PACKET_BATCH_MAX,
            arrived_ns: None,
        }
    }

    /// Bytes of memory that [`RxBatch::with_slots`] takes.
    pub const fn memory_bytes(slot_bytes: usize) -> usize {
        Frames::memory_bytes(slot_bytes)
    }

    /// From now on, a call of [`receive`](super::PacketDevice::receive) brings at most this many
    /// segment batches, at least one; [`PACKET_BATCH_MAX`] if nothing was said.
    #[inline]
    pub fn bound(&mut self, most: usize) {
        self.most = most.clamp(1, PACKET_BATCH_MAX);
    }

    /// Segment batches that one call brings at most.
    #[inline]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Segment batches in it.
    #[inline]
    pub fn count(&self) -> usize {
        self.frames.count()
    }

    /// The datagrams of one segment batch, one directly after the other.
    #[inline]
    pub fn bytes(&self, index: usize) -> &[u8] {
        self.frames.bytes(index)
    }

    /// The same, to write replies over them.
    #[inline]
    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        self.frames.bytes_mut(index)
    }

    /// Bytes of each datagram of a segment batch, at least one; the last may be shorter.
    #[inline]
    pub fn segment_bytes(&self, index: usize) -> usize {
        self.segment_bytes[..self.count()][index] as usize
    }

    /// The datagrams of one segment batch, each by itself; an empty datagram is one.
    #[inline]
    pub fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let (size, mut rest) = (self.segment_bytes(index), self.bytes(index));
        let segments = rest.len().div_ceil(size).max(1);
        (0..segments).map(move |_| {
            let (segment, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            segment
        })
    }

    /// The number of datagrams in a segment batch; an empty datagram counts as one.
    #[inline]
    pub fn datagrams(&self, index: usize) -> usize {
        self.bytes(index)
            .len()
            .div_ceil(self.segment_bytes(index))
            .max(1)
    }

    /// The sender of a segment batch.
    #[inline]
    pub fn peer(&self, index: usize) -> SocketAddr {
        self.peers[..self.count()][index]
    }

    /// How many datagrams the device has dropped since it was opened because it had no room for
    /// them, as of the last one received; `None` where it reported nothing. The count wraps around.
    #[inline]
    pub fn drops(&self) -> Option<u32> {
        self.drops
    }

    /// From now on, it keeps when each segment batch arrived, where the device tells
    /// ([`PacketDevice::report_arrivals`](super::PacketDevice::report_arrivals)).
    pub fn keep_arrivals(&mut self) {
        self.arrived_ns = Some(Box::new([0; PACKET_BATCH_MAX]));
    }

    /// When the kernel received a segment batch, or the first datagram of one that it put together,
    /// in nanoseconds of `CLOCK_REALTIME`; zero where that is not known or not kept.
    #[inline]
    pub fn arrived_ns(&self, index: usize) -> u64 {
        let all = self.arrived_ns.as_ref();
        all.map_or(0, |all| all[..self.count()][index])
    }

    /// Removes everything, and returns a device's buffers to it.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.drops = None;
    }

    /// Whether there is no room for another segment batch.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count() == PACKET_BATCH_MAX
    }

    /// Copies a segment batch in, after those that were pushed before it.
    ///
    /// # Panics
    ///
    /// If it is longer than a slot, the batch is full, or it holds what a device lent to it.
    pub fn push(&mut self, peer: SocketAddr, bytes: &[u8], segment_bytes: usize) {
        assert!(segment_bytes > 0);
        self.frames.push(bytes);
        self.describe(self.count() - 1, peer, segment_bytes);
    }

    /// Copies a datagram in as the next one of the last segment batch. False: it does not belong
    /// there, because it is empty or longer than the others, the last of them is empty or shorter,
    /// or the slot is full.
    #[inline]
    pub fn extend_last(&mut self, datagram: &[u8]) -> bool {
        let Some(last) = self.count().checked_sub(1) else {
            return false;
        };
        let (bytes, segment_bytes) = (self.bytes(last).len(), self.segment_bytes(last));
        bytes > 0
            && bytes.is_multiple_of(segment_bytes)
            && (1..=segment_bytes).contains(&datagram.len())
            && self.frames.extend_last(datagram)
    }

    /// Keeps the first bytes of a segment batch.
    #[inline]
    pub fn truncate(&mut self, index: usize, bytes: usize) {
        self.frames.truncate(index, bytes);
    }

    /// Says of an entry whose bytes are already there who sent it, and how long its datagrams are:
    /// at most as long as all of them.
    #[inline]
    pub(crate) fn describe(&mut self, index: usize, peer: SocketAddr, segment_bytes: usize) {
        self.peers[index] = peer;
        self.segment_bytes[index] = segment_bytes as u32;
    }

    #[inline(always)]
    pub(crate) fn keeps_arrivals(&self) -> bool {
        self.arrived_ns.is_some()
    }

    pub(crate) fn note_arrival(&mut self, index: usize, arrived_ns: u64) {
        if let Some(all) = &mut self.arrived_ns {
            all[index] = arrived_ns;
        }
    }

    /// Notes what the device says of datagrams that it dropped.
    #[inline]
    pub(crate) fn note_drops(&mut self, drops: Option<u32>) {
        self.drops = drops;
    }
}

#[cfg(test)]
#[path = "rx_tests.rs"]
mod tests;
