//! The kernel's readiness of descriptors (epoll).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::signal::Readiness;
use crate::sys::events::Events;

/// Waits for descriptors to become ready.
pub struct Epoll {
    epoll: OwnedFd,
    events: Events,
}

impl Epoll {
    /// A poller that reports up to `events_max` descriptors per wait.
    pub fn new(events_max: usize) -> io::Result<Epoll> {
        Ok(Epoll {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Events(Vec::with_capacity(events_max)),
        })
    }

    /// Watches a stream or a bell for edges, in both directions, until it is closed.
    pub fn watch_edges(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::PRI | Flags::OUT | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            flags,
        )?)
    }

    /// Watches a listener: it is reported as long as a connection waits.
    pub fn watch_level(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )?)
    }

    /// Watches a socket that others watch as well. Of those that wait, the kernel wakes one; all of
    /// them, if the descriptor stands for several sockets.
    pub fn watch_shared(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
        match epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), flags) {
            // The kernel wakes one of several pollers for a socket only.
            Err(Errno::INVAL) => self.watch_level(fd, token),
            added => Ok(added?),
        }
    }

    /// Stops watching a descriptor that stays open.
    pub fn forget(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Sleeps until something is ready or the time is up (`None`: without a time limit; zero: does
    /// not sleep). A signal ends the sleep with nothing ready.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        self.events.0.clear();
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events.0),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The number of descriptors that the last wait reported.
    #[inline]
    pub fn ready_count(&self) -> usize {
        self.events.0.len()
    }

    /// One of the descriptors the last wait reported.
    #[inline]
    pub fn ready(&self, index: usize) -> Readiness {
        use epoll::EventFlags as Flags;
        let event = &self.events.0[index];
        let (flags, data) = (event.flags, event.data);
        Readiness {
            token: data.u64(),
            readable: flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR),
            writable: flags.intersects(Flags::OUT | Flags::HUP | Flags::ERR),
            hung_up: flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR),
            failed: flags.intersects(Flags::ERR),
            urgent: flags.intersects(Flags::PRI),
        }
    }
}
