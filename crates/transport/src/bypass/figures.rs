//! What a transport over AF_XDP has counted.

use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};

use super::wire::Reason;
use crate::packet::Bypass;

/// Bursts are counted by their length: 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, and 32 frames.
pub const BURST_CLASSES: usize = PACKET_BATCH_MAX.ilog2() as usize + 1;

/// A device that knows what waits and was dropped at its sockets.
pub trait Counted: Send + Sync {
    /// Adds that.
    fn add_to(&self, figures: &mut Bypass);
}

/// Counts that all devices at an interface share.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames that were not answered, by reason.
    pub reasons: [AtomicU64; Reason::ALL.len()],
    /// Calls that brought frames, by their number.
    pub bursts: [AtomicU64; BURST_CLASSES],
    /// Datagrams that arrived at a queue.
    pub received: AtomicU64,
    /// Datagrams that left by a queue.
    pub sent: AtomicU64,
    /// Datagrams that arrived at another queue than that of the worker that has their port for
    /// itself.
    pub elsewhere: AtomicU64,
    /// Datagrams that arrived by the kernel's stack.
    pub kernel_received: AtomicU64,
    /// Datagrams that left by it: they do not fit into a frame, their receiver has not sent
    /// anything of late, or there was no room at the queue.
    pub kernel_sent: AtomicU64,
}

impl Counts {
    /// A frame is not answered.
    #[cold]
    pub fn refuse(&self, reason: Reason) {
        self.reasons[reason as usize].fetch_add(1, Relaxed);
    }

    /// A call brought this many frames, at least one, of which some arrived at another queue.
    #[inline]
    pub fn note_burst(&self, frames: usize, elsewhere: u64) {
        let class = (frames.ilog2() as usize).min(BURST_CLASSES - 1);
        self.bursts[class].fetch_add(1, Relaxed);
        self.received.fetch_add(frames as u64, Relaxed);
        if elsewhere > 0 {
            self.elsewhere.fetch_add(elsewhere, Relaxed);
        }
    }
}
