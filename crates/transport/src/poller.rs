//! Readiness of many descriptors (epoll).
//!
//! Streams and bells are watched for edges: once when they are added and never again, so that a burst costs no `epoll_ctl`. The
//! price is a rule: who was told that a stream is readable has to remember it until [`Received::Drained`](crate::Received).
//! Listeners are watched by level, because accepting stops short when descriptors run out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::sys::events::Events;

/// Waits for descriptors to become ready.
pub struct Poller {
    epoll: OwnedFd,
    events: Events,
}

/// What became of one descriptor since it was last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The number under which the descriptor was added.
    pub token: u64,
    /// Bytes, the end of the stream, or a connection can be received.
    pub readable: bool,
    /// Bytes can be sent.
    pub writable: bool,
    /// The peer will send no more, or the connection failed: receiving tells which.
    pub hung_up: bool,
    /// The descriptor has an error to report.
    pub failed: bool,
}

impl Poller {
    /// A poller that reports up to `events_max` descriptors per wait.
    pub fn new(events_max: usize) -> io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Events(Vec::with_capacity(events_max)),
        })
    }

    /// Watches a stream or a bell for edges, in both directions, until it is closed.
    pub fn watch_edges(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            flags,
        )?)
    }

    /// Watches a listener: it is reported for as long as a connection waits.
    pub fn watch_level(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )?)
    }

    /// Stops watching a descriptor that stays open.
    pub fn forget(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Sleeps until something is ready or the time is up (`None`: for as long as it takes; zero: does not sleep). A signal
    /// ends the sleep with nothing ready.
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

    /// How many descriptors the last wait reported.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bell;

    #[test]
    fn a_ring_is_reported_once_and_never_lost() {
        let mut poller = Poller::new(8).unwrap();
        let bell = Bell::new().unwrap();
        poller.watch_edges(&bell, 7).unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        for _ in 0..3 {
            bell.ring();
            bell.ring();
            poller.wait(None).unwrap();
            assert_eq!(poller.ready_count(), 1);
            assert_eq!(poller.ready(0).token, 7);
            assert!(poller.ready(0).readable);
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert_eq!(poller.ready_count(), 0, "edges are reported once");
        }
    }

    #[test]
    fn a_wait_without_events_ends() {
        let mut poller = Poller::new(8).unwrap();
        poller.wait(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(poller.ready_count(), 0);
    }
}
