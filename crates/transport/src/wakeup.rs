//! How a worker learns that a source has something to be done.

use std::os::fd::{AsFd, BorrowedFd};

use crate::signal::Signal;

/// How a worker learns that there is something to be done.
#[derive(Clone, Copy, Debug)]
pub enum Wakeup<'a> {
    /// A poller that watches this descriptor wakes it.
    Descriptor(BorrowedFd<'a>),
    /// A poller of this process's own sources ([`Poller::local`](crate::Poller::local)) is told.
    Signal(&'a Signal),
    /// Nothing wakes it: it has to look.
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
