//! Waiting for many connections at once.

use std::{os::fd::OwnedFd, time::Duration};

use anyhow::{Context, Result};
use rustix::{
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        poll,
    },
    io::Errno,
};

use super::Connection;

/// Connections by their place in a list.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    /// Waits for replies on all of `connections`.
    pub fn new(connections: &[Connection]) -> Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("epoll")?;
        for (place, connection) in connections.iter().enumerate() {
            let data = EventData::new_u64(place as u64);
            epoll::add(&epoll, connection.socket(), data, EventFlags::IN)?;
        }
        Ok(Poll {
            epoll,
            events: Vec::with_capacity(connections.len()),
        })
    }

    /// Places of the connections that are ready, after `patience` at most (none: look and return).
    pub fn ready(&mut self, patience: Duration) -> Result<impl Iterator<Item = usize>> {
        self.events.clear();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if !patience.is_zero() {
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
        match epoll::wait(&self.epoll, events, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }

    /// Like [`Poll::ready`] with a patience in whole milliseconds, in one system call.
    pub fn ready_ms(&mut self, patience_ms: u32) -> Result<impl Iterator<Item = usize>> {
        self.events.clear();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(patience_ms) * 1_000_000,
        };
        let events = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, events, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}
