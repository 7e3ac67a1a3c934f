//! Closed loop: every connection sends a burst, waits for all its replies, and sends the next
//! burst. It measures a server's maximum throughput. Its latencies are misleading: while a server
//! stalls, a closed loop sends nothing that could be delayed.

use anyhow::Result;

use super::{Drive, World, in_order::InOrder};
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
    let mut bursts = match source.is_recorded() {
        true => Bursts::InOrder(InOrder::new(drive.links.len(), in_flight)),
        false => Bursts::Any {
            ask: Ask::default(),
            in_flight,
            more: true,
        },
    };
    let start = drive.world.now_ns();
    drive.recorder.tick(start)?;
    for place in 0..drive.links.len() {
        bursts.next(&mut drive, source, place, start)?;
    }
    loop {
        for turn in 0..drive.wait(PATIENCE_NS)? {
            if let (place, Some(at)) = drive.receive(turn, source)? {
                match drive.links[place].under_way() {
                    0 => bursts.next(&mut drive, source, place, at)?,
                    _ => drive.send(place)?,
                }
            }
        }
        let now = drive.world.now_ns();
        if drive.inspect(now)? {
            // Over a transport that loses replies, a connection that lost all of its burst must be
            // restarted here.
            for place in 0..drive.links.len() {
                if drive.links[place].under_way() == 0 {
                    bursts.next(&mut drive, source, place, now)?;
                }
            }
        }
        drive.recorder.tick(now)?;
        if now >= drive.recorder.window().to() || !bursts.more() && drive.under_way() == 0 {
            return Ok(());
        }
    }
}

/// The bursts of all connections.
enum Bursts {
    /// A request goes to the connection that is free first.
    Any {
        ask: Ask,
        in_flight: u32,
        /// Whether the source has more requests.
        more: bool,
    },
    /// A request goes to the connection of its key.
    InOrder(InOrder),
}

impl Bursts {
    /// Sends the next burst on a connection that awaits no replies, as long as there are requests.
    #[inline]
    fn next<L: Link, W: World<L>>(
        &mut self,
        drive: &mut Drive<'_, '_, L, W>,
        source: &mut dyn Source,
        place: usize,
        at: u64,
    ) -> Result<()> {
        let (ask, in_flight, more) = match self {
            Bursts::Any {
                ask,
                in_flight,
                more,
            } => (ask, *in_flight, more),
            Bursts::InOrder(bursts) => return bursts.next(drive, source, place, at),
        };
        for _ in 0..in_flight {
            *more = *more && source.next(ask);
            if !*more {
                break;
            }
            drive.links[place].ask(ask, at);
        }
        drive.send(place)
    }

    fn more(&self) -> bool {
        match self {
            Bursts::Any { more, .. } => *more,
            Bursts::InOrder(bursts) => bursts.more(),
        }
    }
}
