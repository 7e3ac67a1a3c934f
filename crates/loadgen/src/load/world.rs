//! What a loop needs from its environment: the time, and which connections are ready. Tests provide
//! virtual time instead.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::driver::{Awaited, Link, Poll};

/// Comparisons of two clocks, of which the shortest counts.
const LOOKS: usize = 5;

/// A clock, and readiness of connections.
pub trait World<L: Link> {
    /// Nanoseconds since the start of the run.
    fn now_ns(&mut self) -> u64;

    /// Puts the indices of ready connections into `places`. Waits for `patience_ns` at most; with
    /// zero, it returns at once.
    fn ready(&mut self, links: &mut [L], patience_ns: u64, places: &mut Vec<usize>) -> Result<()>;

    /// How far `CLOCK_REALTIME` is ahead of this clock, in nanoseconds.
    fn realtime_ahead_ns(&mut self) -> u64 {
        0
    }

    /// Starts or stops reporting a connection as ready when it can send.
    fn watch_output(&mut self, place: usize, link: &L, watch: bool) -> Result<()>;
}

/// The kernel's clock and sockets.
pub struct Kernel {
    start: Instant,
    poll: Poll,
}

impl Kernel {
    /// Time counts from `start`.
    pub fn new(start: Instant, links: &[impl Awaited]) -> Result<Kernel> {
        Ok(Kernel {
            start,
            poll: Poll::new(links)?,
        })
    }
}

impl<L: Link + Awaited> World<L> for Kernel {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[inline]
    fn ready(&mut self, links: &mut [L], patience_ns: u64, places: &mut Vec<usize>) -> Result<()> {
        places.clear();
        let patience = Duration::from_nanos(patience_ns);
        self.poll.ready(links, patience, places)
    }

    fn realtime_ahead_ns(&mut self) -> u64 {
        // Between the two reads the thread may lose its core: the shortest of some is right.
        let look = |_| {
            let before = self.start.elapsed();
            let realtime = clock_gettime(ClockId::Realtime);
            let realtime = Duration::new(realtime.tv_sec as u64, realtime.tv_nsec as u32);
            let took = self.start.elapsed() - before;
            (took, realtime.saturating_sub(before + took / 2))
        };
        let looks = (0..LOOKS).map(look);
        let (_, ahead) = looks.min().expect("there is at least one");
        ahead.as_nanos() as u64
    }

    fn watch_output(&mut self, place: usize, link: &L, watch: bool) -> Result<()> {
        self.poll.watch_output(place, link, watch)
    }
}
