//! Waits for many connections at once.

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use anyhow::{Context, Result};
use arrayvec::ArrayVec;
use glimmer_transport::Wakeup;
use rustix::{
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        poll,
    },
    io::Errno,
};

/// Up to this many connections are passed to every wait (`poll`); with more, the kernel keeps the
/// list (`epoll`). An epoll descriptor is notified of every datagram sent or received. For a few
/// UDP sockets, these notifications cost both ends more than a `poll` over the sockets.
const FEW_MAX: usize = 8;

/// A connection whose replies a loop waits for.
pub trait Awaited {
    /// How the loop learns that something has arrived.
    fn wakeup(&self) -> Wakeup<'_>;
}

/// A set of connections, identified by their index in a list.
pub enum Poll {
    /// Up to eight connections: the events that each one waits for.
    Few(ArrayVec<PollFlags, FEW_MAX>),
    /// More connections.
    Many {
        /// The epoll descriptor.
        epoll: OwnedFd,
        /// The events of the last wait.
        events: Vec<Event>,
    },
    /// Connections over a device that wakes nobody. All of them are ready at any time.
    Always,
}

impl Poll {
    /// Waits for replies on all of `links`.
    pub fn new(links: &[impl Awaited]) -> Result<Poll> {
        if links
            .iter()
            .any(|link| link.wakeup().descriptor().is_none())
        {
            return Ok(Poll::Always);
        }
        if links.len() <= FEW_MAX {
            return Ok(Poll::Few(links.iter().map(|_| PollFlags::IN).collect()));
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("epoll")?;
        for (place, link) in links.iter().enumerate() {
            epoll::add(
                &epoll,
                descriptor(link),
                EventData::new_u64(place as u64),
                EventFlags::IN,
            )?;
        }
        Ok(Poll::Many {
            epoll,
            events: Vec::with_capacity(links.len()),
        })
    }

    /// Starts or stops waiting for room to send on a connection.
    pub fn watch_output(&mut self, place: usize, link: &impl Awaited, watch: bool) -> Result<()> {
        match self {
            Poll::Few(flags) => flags[place].set(PollFlags::OUT, watch),
            Poll::Many { epoll, .. } => {
                let mut flags = EventFlags::IN;
                flags.set(EventFlags::OUT, watch);
                let data = EventData::new_u64(place as u64);
                epoll::modify(epoll, descriptor(link), data, flags)?;
            }
            Poll::Always => {}
        }
        Ok(())
    }

    /// Adds the indices of the ready connections. Waits for `patience` at most; with `None`, it
    /// returns at once. `links` must be the list passed to [`Poll::new`].
    pub fn ready(
        &mut self,
        links: &[impl Awaited],
        patience: Duration,
        places: &mut Vec<usize>,
    ) -> Result<()> {
        match self {
            Poll::Few(flags) => {
                let fds = links.iter().zip(flags);
                let fds =
                    fds.map(|(link, flags)| PollFd::from_borrowed_fd(descriptor(link), *flags));
                let mut fds: ArrayVec<PollFd<'_>, FEW_MAX> = fds.collect();
                sleep(&mut fds, patience)?;
                let fds = fds.iter().enumerate();
                places.extend(fds.filter_map(|(place, fd)| {
                    let is_ready = !fd.revents().is_empty();
                    is_ready.then_some(place)
                }));
            }
            Poll::Many { epoll, events } => {
                if !patience.is_zero() {
                    // An epoll descriptor can be polled, and `poll` has nanosecond timeouts where
                    // `epoll_wait` has milliseconds.
                    sleep(&mut [PollFd::new(epoll, PollFlags::IN)], patience)?;
                }
                events.clear();
                let room = rustix::buffer::spare_capacity(events);
                match epoll::wait(&*epoll, room, Some(&timespec(Duration::ZERO))) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error).context("epoll_wait"),
                }
                places.extend(events.iter().map(|event| event.data.u64() as usize));
            }
            Poll::Always => places.extend(0..links.len()),
        }
        Ok(())
    }
}

fn descriptor(link: &impl Awaited) -> BorrowedFd<'_> {
    let descriptor = link.wakeup().descriptor();
    descriptor.expect("a poll with descriptors has one of each connection")
}

fn sleep(fds: &mut [PollFd<'_>], patience: Duration) -> Result<()> {
    match poll(fds, Some(&timespec(patience))) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            fds.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(error).context("poll"),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::net::UnixStream};

    impl Awaited for UnixStream {
        fn wakeup(&self) -> Wakeup<'_> {
            self.into()
        }
    }

    /// A connection over a device that wakes nobody.
    struct Silent;

    impl Awaited for Silent {
        fn wakeup(&self) -> Wakeup<'_> {
            Wakeup::Poll
        }
    }

    #[test]
    fn what_wakes_nobody_is_asked_again_and_again() {
        let links = [Silent, Silent];
        let mut poll = Poll::new(&links).unwrap();
        poll.watch_output(1, &links[1], true).unwrap();
        for _ in 0..2 {
            let mut places = Vec::new();
            poll.ready(&links, Duration::from_secs(3600), &mut places)
                .unwrap();
            assert_eq!(places, [0, 1]);
        }
    }

    /// The connections that a wait reports out of `count`, whose other ends stay open.
    fn reported(count: usize, talking: &[usize], full: &[usize]) -> Vec<usize> {
        let (ours, mut theirs): (Vec<_>, Vec<_>) =
            (0..count).map(|_| UnixStream::pair().unwrap()).unzip();
        let mut poll = Poll::new(&ours).unwrap();
        assert_eq!(matches!(poll, Poll::Few(_)), count <= FEW_MAX);
        let mut places = Vec::new();
        poll.ready(&ours, Duration::from_micros(1), &mut places)
            .unwrap();
        assert_eq!(places, []);
        for &place in talking {
            theirs[place].write_all(b"hello").unwrap();
        }
        for &place in full {
            poll.watch_output(place, &ours[place], true).unwrap();
        }
        poll.ready(&ours, Duration::from_secs(10), &mut places)
            .unwrap();
        for &place in full {
            poll.watch_output(place, &ours[place], false).unwrap();
        }
        let mut later = Vec::new();
        poll.ready(&ours, Duration::ZERO, &mut later).unwrap();
        later.sort_unstable();
        assert_eq!(later, talking);
        places.sort_unstable();
        places
    }

    #[test]
    fn few_and_many_are_reported_alike() {
        for count in [FEW_MAX, FEW_MAX + 1] {
            assert_eq!(reported(count, &[1, 5], &[]), [1, 5]);
            assert_eq!(reported(count, &[2], &[0, 7]), [0, 2, 7]);
        }
    }
}
