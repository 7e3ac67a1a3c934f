//! Readiness of many sources: descriptors, which the kernel watches (epoll), or signals of this
//! process's own sources.
//!
//! Streams and bells are watched for edges: once when they are added and never again, so that a
//! burst costs no `epoll_ctl`. The price is a rule: a caller that was told that a stream is
//! readable has to remember it until [`Received::Drained`](crate::Received). Listeners are watched
//! by level, because accepting stops short when descriptors run out.

mod epoll;

use std::io;
use std::time::Duration;

use crate::signal::{Changed, Readiness, Trigger};
use crate::wakeup::Wakeup;
use epoll::Epoll;

/// Waits for sources to become ready.
pub struct Poller(Kind);

enum Kind {
    Epoll(Epoll),
    Local(Local),
}

/// Watches signals and never sleeps.
struct Local {
    changed: Changed,
    ready: Vec<Readiness>,
    events_max: usize,
}

impl Poller {
    /// A poller of descriptors that reports up to `events_max` of them per wait.
    pub fn new(events_max: usize) -> io::Result<Poller> {
        Ok(Poller(Kind::Epoll(Epoll::new(events_max)?)))
    }

    /// A poller of signals. Its [`Poller::wait`] reports what is ready and never sleeps, because
    /// only code on the same thread can make something ready.
    pub fn local(events_max: usize) -> Poller {
        Poller(Kind::Local(Local {
            changed: Changed::default(),
            ready: Vec::with_capacity(events_max),
            events_max,
        }))
    }

    /// Watches a stream or a bell for edges, in both directions, until it is closed.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if this poller cannot watch such a source; else the kernel's.
    pub fn watch_edges<'a>(&self, source: impl Into<Wakeup<'a>>, token: u64) -> io::Result<()> {
        self.watch(source.into(), token, Trigger::Edge)
    }

    /// Watches a listener or a socket for datagrams: it is reported as long as something waits.
    ///
    /// # Errors
    ///
    /// As for [`Poller::watch_edges`].
    pub fn watch_level<'a>(&self, source: impl Into<Wakeup<'a>>, token: u64) -> io::Result<()> {
        self.watch(source.into(), token, Trigger::Level)
    }

    /// Watches a socket for datagrams that pollers of other threads may watch as well: of those
    /// that wait, one is told of a datagram that arrives, and as long as something waits. Who is
    /// told and does not receive it has to see to it that another one looks.
    ///
    /// # Errors
    ///
    /// As for [`Poller::watch_edges`].
    pub fn watch_shared<'a>(&self, source: impl Into<Wakeup<'a>>, token: u64) -> io::Result<()> {
        self.watch(source.into(), token, Trigger::Shared)
    }

    fn watch(&self, source: Wakeup<'_>, token: u64, trigger: Trigger) -> io::Result<()> {
        match (&self.0, source) {
            (Kind::Epoll(epoll), Wakeup::Descriptor(fd)) => match trigger {
                Trigger::Edge => epoll.watch_edges(fd, token),
                Trigger::Level => epoll.watch_level(fd, token),
                Trigger::Shared => epoll.watch_shared(fd, token),
            },
            (Kind::Local(local), Wakeup::Signal(signal)) => {
                signal.watch(&local.changed, token, trigger);
                Ok(())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Stops watching a source that stays open.
    ///
    /// # Errors
    ///
    /// As for [`Poller::watch_edges`].
    pub fn forget<'a>(&self, source: impl Into<Wakeup<'a>>) -> io::Result<()> {
        match (&self.0, source.into()) {
            (Kind::Epoll(epoll), Wakeup::Descriptor(fd)) => epoll.forget(fd),
            (Kind::Local(local), Wakeup::Signal(signal)) => {
                signal.forget_for(&local.changed);
                Ok(())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sleeps until something is ready or the time is up (`None`: without a time limit; zero: does
    /// not sleep). A signal to the process ends the sleep with nothing ready.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match &mut self.0 {
            Kind::Epoll(epoll) => epoll.wait(timeout),
            Kind::Local(local) => {
                local.ready.clear();
                local.changed.report(local.events_max, &mut local.ready);
                Ok(())
            }
        }
    }

    /// Whether a poller of signals has something to report. For a poller of descriptors this is
    /// unknown.
    pub fn has_signals(&self) -> bool {
        match &self.0 {
            Kind::Epoll(_) => false,
            Kind::Local(local) => local.changed.is_any(),
        }
    }

    /// The number of sources that the last wait reported.
    #[inline]
    pub fn ready_count(&self) -> usize {
        match &self.0 {
            Kind::Epoll(epoll) => epoll.ready_count(),
            Kind::Local(local) => local.ready.len(),
        }
    }

    /// One of the sources the last wait reported.
    #[inline]
    pub fn ready(&self, index: usize) -> Readiness {
        match &self.0 {
            Kind::Epoll(epoll) => epoll.ready(index),
            Kind::Local(local) => local.ready[index],
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
