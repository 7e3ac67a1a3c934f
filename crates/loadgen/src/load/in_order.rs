//! Bursts of a closed loop in which the requests of one key stay in order. All of them go over one
//! connection, and each waits for the reply to the one before it, and for the write that follows
//! from that reply.

use std::collections::{BTreeSet, VecDeque};

use anyhow::Result;

use super::{Drive, World, lanes::connection_of};
use crate::{
    driver::Link,
    workload::{Ask, Source},
};

/// Requests that wait for their connections, for each one that may be in flight. More of them keep
/// more connections busy while one is busy with a popular key, and change the order of requests of
/// different keys more.
const WAITING_PER_IN_FLIGHT: usize = 16;
/// The number of waiting requests of a thread, at most.
const WAITING_MAX: usize = 1 << 18;

/// The bursts of a thread's connections.
pub struct InOrder {
    in_flight: usize,
    /// The requests that wait for each connection, oldest first.
    lines: Vec<VecDeque<Ask>>,
    /// Their number in all lines.
    waiting: usize,
    waiting_max: usize,
    /// Connections that await no replies and have an empty line. There are some only if the lines
    /// of others are full, or if the source has ended.
    idle: BTreeSet<usize>,
    /// Connections that are about to begin a burst.
    free: Vec<usize>,
    /// Whether the source has more requests.
    more: bool,
    /// The keys of a burst.
    keys: Vec<u64>,
    spare: Vec<Ask>,
}

impl InOrder {
    /// For this many connections with `in_flight` requests on each.
    pub fn new(connections: usize, in_flight: u32) -> InOrder {
        let in_flight = in_flight as usize;
        let waiting = connections * in_flight * WAITING_PER_IN_FLIGHT;
        InOrder {
            in_flight,
            lines: vec![VecDeque::new(); connections],
            waiting: 0,
            waiting_max: waiting.min(WAITING_MAX),
            idle: BTreeSet::new(),
            free: Vec::new(),
            more: true,
            keys: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Whether the source has more requests.
    pub fn more(&self) -> bool {
        self.more
    }

    /// Sends the next burst on a connection that awaits no replies, and on idle ones for which
    /// there are requests now.
    pub fn next<L: Link, W: World<L>>(
        &mut self,
        drive: &mut Drive<'_, '_, L, W>,
        source: &mut dyn Source,
        place: usize,
        at: u64,
    ) -> Result<()> {
        self.idle.remove(&place);
        self.free.push(place);
        while let Some(place) = self.beginner() {
            self.draw(source, place);
            match self.begin(&mut drive.links[place], place, at) {
                true => drive.send(place)?,
                false => _ = self.idle.insert(place),
            }
        }
        Ok(())
    }

    fn may_draw(&self) -> bool {
        self.more && self.waiting < self.waiting_max
    }

    /// A connection that may begin a burst.
    fn beginner(&mut self) -> Option<usize> {
        let free = self.free.pop();
        free.or_else(|| self.may_draw().then(|| self.idle.pop_first()).flatten())
    }

    /// Draws requests, until enough of them are for this connection.
    fn draw(&mut self, source: &mut dyn Source, place: usize) {
        let connections = self.lines.len();
        while self.lines[place].len() < self.in_flight && self.may_draw() {
            let mut ask = self.spare.pop().unwrap_or_default();
            self.more = source.next(&mut ask);
            if !self.more {
                return;
            }
            let of_key = connection_of(&ask, 0..connections);
            self.lines[of_key].push_back(ask);
            self.waiting += 1;
            if self.idle.remove(&of_key) {
                self.free.push(of_key);
            }
        }
    }

    /// Asks for what waits for a connection, up to a key that the burst already has. Returns
    /// whether there was anything.
    fn begin(&mut self, link: &mut impl Link, place: usize, at: u64) -> bool {
        self.keys.clear();
        let line = &mut self.lines[place];
        while self.keys.len() < self.in_flight
            && let Some(ask) = line.pop_front()
        {
            let key = ask.keys[0].number();
            if self.keys.contains(&key) {
                line.push_front(ask);
                break;
            }
            self.keys.push(key);
            link.ask(&ask, at);
            self.spare.push(ask);
        }
        self.waiting -= self.keys.len();
        !self.keys.is_empty()
    }
}
