//! Waking a thread that waits in its poller.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// An eventfd. A [`Poller`](crate::Poller) that watches it returns once for every ring since it last looked, at least;
/// nobody has to read it, because it is watched for edges.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that nobody has rung yet.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Wakes the thread that watches the bell, or keeps it from falling asleep. One system call.
    pub fn ring(&self) {
        // The counter takes 2^64 - 2 rings. Full, it has been rung all the same; there is no other way for the write to fail.
        match rustix::io::write(&self.0, &1u64.to_ne_bytes()) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => debug_assert!(false, "an eventfd that cannot be written: {error}"),
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
