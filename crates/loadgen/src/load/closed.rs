//! Closed loop: every connection sends a burst, waits for all its replies, and sends the next
//! burst. It measures a server's maximum throughput. Its latencies are misleading: while a server
//! stalls, a closed loop sends nothing that could be delayed.

use anyhow::Result;

use super::{Drive, World};
use crate::{
    driver::Link,
    workload::{Ask, Source},
};

/// Nanoseconds between two checks for silent connections.
const PATIENCE_NS: u64 = 100_000_000;

/// Drives the connections with `in_flight` requests on each, until the window or the source of
/// requests ends.
pub fn run<L: Link, W: World<L>>(
    mut drive: Drive<'_, '_, L, W>,
    source: &mut dyn Source,
    in_flight: u32,
) -> Result<()> {
    let mut bursts = Bursts {
        ask: Ask::default(),
        in_flight,
        more: true,
    };
    let start = drive.world.now_ns();
    drive.recorder.tick(start)?;
    for place in 0..drive.links.len() {
        bursts.next(&mut drive.links[place], source, start);
        drive.send(place)?;
    }
    loop {
        for turn in 0..drive.wait(PATIENCE_NS)? {
            if let (place, Some(at)) = drive.receive(turn, source)? {
                if drive.links[place].under_way() == 0 {
                    bursts.next(&mut drive.links[place], source, at);
                }
                drive.send(place)?;
            }
        }
        let now = drive.world.now_ns();
        if drive.inspect(now)? {
            // Over a transport that loses replies, a connection that lost all of its burst must be
            // restarted here.
            for place in 0..drive.links.len() {
                if drive.links[place].under_way() == 0 {
                    bursts.next(&mut drive.links[place], source, now);
                    drive.send(place)?;
                }
            }
        }
        drive.recorder.tick(now)?;
        if now >= drive.recorder.window().to() || !bursts.more && drive.under_way() == 0 {
            return Ok(());
        }
    }
}

struct Bursts {
    ask: Ask,
    in_flight: u32,
    more: bool,
}

impl Bursts {
    /// Sends the next burst on a connection, as long as there are requests.
    #[inline]
    fn next(&mut self, link: &mut impl Link, source: &mut dyn Source, at: u64) {
        if !self.more {
            return;
        }
        source.begin_burst();
        for number in 0..self.in_flight {
            if !source.next(&mut self.ask) {
                self.more = number > 0;
                return;
            }
            link.ask(&self.ask, at);
        }
    }
}
