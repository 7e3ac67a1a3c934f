//! Wakes a thread that waits in its poller.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::signal::{Ready, Signal};
use crate::wakeup::Wakeup;

/// A doorbell. A [`Poller`](crate::Poller) that watches it returns at least once for all rings
/// since its last return. The bell is watched for edges, so it need not be read.
#[derive(Debug)]
pub struct Bell(Kind);

#[derive(Debug)]
enum Kind {
    /// An eventfd.
    Event(OwnedFd),
    /// For a poller of signals.
    Signal(Signal),
}

impl Bell {
    /// A bell for a poller of descriptors.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(Kind::Event(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?)))
    }

    /// A bell for a poller of signals ([`Poller::local`](crate::Poller::local)).
    pub fn local() -> Bell {
        Bell(Kind::Signal(Signal::default()))
    }

    /// Wakes the thread that watches the bell, or keeps it from falling asleep. Makes one system
    /// call.
    pub fn ring(&self) {
        match &self.0 {
            // The counter holds 2^64 - 2 rings. If it is full, the bell has been rung anyway. The
            // write cannot fail for another reason.
            Kind::Event(event) => match rustix::io::write(event, &1u64.to_ne_bytes()) {
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(error) => debug_assert!(false, "an eventfd that cannot be written: {error}"),
            },
            Kind::Signal(signal) => signal.change(Ready {
                readable: true,
                ..Ready::default()
            }),
        }
    }

    /// How to wait for it.
    pub fn wakeup(&self) -> Wakeup<'_> {
        match &self.0 {
            Kind::Event(event) => Wakeup::Descriptor(event.as_fd()),
            Kind::Signal(signal) => Wakeup::Signal(signal),
        }
    }
}

impl<'a> From<&'a Bell> for Wakeup<'a> {
    fn from(bell: &'a Bell) -> Wakeup<'a> {
        bell.wakeup()
    }
}
