//! A device's socket at a queue.

use std::os::fd::AsFd as _;

use super::socket::{self, XskSocket};

/// Frames that the kernel sends with one call at most.
pub const KERNEL_BURST: u32 = 32;

/// A socket at a queue.
pub struct Attached {
    pub socket: XskSocket,
    pub queue: usize,
    /// Whether the kernel has not taken all frames, so the worker is woken to try again.
    pub has_rest: bool,
}

/// What became of the frames in a ring that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// The kernel has taken them.
    All,
    /// Some of them stay for now.
    Part,
    /// The interface is down or gone. They leave late or never.
    Nowhere,
}

impl Attached {
    /// A socket at this queue.
    pub fn new(socket: XskSocket, queue: usize) -> Attached {
        Attached {
            socket,
            queue,
            has_rest: false,
        }
    }

    /// Has the kernel send what was put into the ring.
    ///
    /// Kernels before 6.17 say how far they have come only when they are through, so the number
    /// of calls is bounded by what each takes at least.
    pub fn flush(&mut self) -> Flushed {
        self.socket.tx.show();
        let waiting = self.socket.tx.waiting();
        let (mut bursts, mut drops) = (waiting / KERNEL_BURST, waiting);
        while self.socket.tx.waiting() > 0 && self.socket.tx.needs_wakeup() {
            let Err(error) = socket::kick_send(self.socket.as_fd()) else {
                return Flushed::All;
            };
            let tries_left = match error.raw_os_error() {
                // It has sent a burst, or it has no memory for more.
                Some(libc::EAGAIN) => &mut bursts,
                // It has dropped a frame, because the driver's ring was full.
                Some(libc::EBUSY) => &mut drops,
                Some(libc::ENOBUFS | libc::ENOMEM) => return Flushed::Part,
                _ if socket::is_away(&error) => return Flushed::Nowhere,
                _ => return Flushed::All,
            };
            if *tries_left == 0 {
                return Flushed::Part;
            }
            *tries_left -= 1;
        }
        Flushed::All
    }
}
