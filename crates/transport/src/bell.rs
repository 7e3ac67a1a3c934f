//! Waking a thread that waits in its poller.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::signal::{Ready, Signal};
use crate::wakeup::Wakeup;

/// A [`Poller`](crate::Poller) that watches it returns once for every ring since it last looked, at
/// least; nobody has to read it, because it is watched for edges.
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
    /// A bell that nobody has rung yet, for a poller of descriptors.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(Kind::Event(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?)))
    }

    /// The same for a poller of signals ([`Poller::local`](crate::Poller::local)).
    pub fn local() -> Bell {
        Bell(Kind::Signal(Signal::default()))
    }

    /// Wakes the thread that watches the bell, or keeps it from falling asleep. One system call.
    pub fn ring(&self) {
        match &self.0 {
            // The counter takes 2^64 - 2 rings. Full, it has been rung all the same; there is no
            // other way for the write to fail.
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
