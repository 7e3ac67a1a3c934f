//! Waiting for many connections at once.

use std::{
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        poll,
    },
    io::Errno,
};

/// Connections by their place in a list.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    /// Waits for replies on all of `links`.
    pub fn new(links: &[impl AsFd]) -> Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("epoll")?;
        for (place, link) in links.iter().enumerate() {
            epoll::add(
                &epoll,
                link,
                EventData::new_u64(place as u64),
                EventFlags::IN,
            )?;
        }
        Ok(Poll {
            epoll,
            events: Vec::with_capacity(links.len()),
        })
    }

    /// Waits for room to send as well, or no longer.
    pub fn watch_output(&mut self, place: usize, link: &impl AsFd, watch: bool) -> Result<()> {
        let flags = if watch {
            EventFlags::IN | EventFlags::OUT
        } else {
            EventFlags::IN
        };
        Ok(epoll::modify(
            &self.epoll,
            link,
            EventData::new_u64(place as u64),
            flags,
        )?)
    }

    /// Places of the connections that are ready, after `patience` at most (none: look and return).
    pub fn ready(&mut self, patience: Duration) -> Result<impl Iterator<Item = usize> + '_> {
        self.events.clear();
        let mut milliseconds = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let whole = patience.as_millis();
        if whole > 0 && patience.subsec_nanos().is_multiple_of(1_000_000) {
            milliseconds = Timespec {
                tv_sec: patience.as_secs() as i64,
                tv_nsec: i64::from(patience.subsec_nanos()),
            };
        } else if !patience.is_zero() {
            // An epoll descriptor can be polled, and poll counts nanoseconds where epoll_wait counts milliseconds.
            let patience = Timespec {
                tv_sec: patience.as_secs() as i64,
                tv_nsec: i64::from(patience.subsec_nanos()),
            };
            match poll(
                &mut [PollFd::new(&self.epoll, PollFlags::IN)],
                Some(&patience),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("poll"),
            }
        }
        let events = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, events, Some(&milliseconds)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}
