//! How a worker learns that a source is ready.

use std::os::fd::{AsFd, BorrowedFd};

use crate::signal::Signal;

/// How a worker learns that a source is ready.
#[derive(Clone, Copy, Debug)]
pub enum Wakeup<'a> {
    /// A poller that watches this descriptor wakes the worker.
    Descriptor(BorrowedFd<'a>),
    /// A poller of signals ([`Poller::local`](crate::Poller::local)) is notified.
    Signal(&'a Signal),
    /// Nothing wakes the worker: it must poll.
    Poll,
}

impl<'a> Wakeup<'a> {
    /// The descriptor to watch, if there is one.
    pub fn descriptor(self) -> Option<BorrowedFd<'a>> {
        match self {
            Wakeup::Descriptor(descriptor) => Some(descriptor),
            Wakeup::Signal(_) | Wakeup::Poll => None,
        }
    }
}

impl<'a, D: AsFd> From<&'a D> for Wakeup<'a> {
    fn from(source: &'a D) -> Wakeup<'a> {
        Wakeup::Descriptor(source.as_fd())
    }
}
