//! Puts every key into a server before it is measured.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Result, bail};

use super::{Connection, Protocol, Tally, closed::SILENCE_MAX, poll::Poll};

/// Connections of a loading client: enough to keep one server thread busy.
const CONNECTIONS: usize = 8;
/// Keys under way on each.
const BURST: usize = 64;

/// What to do with a run of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Write version 0 of every key.
    Write,
    /// Read every key, many at a time, and count those that are there.
    Read,
}

/// Goes once through the keys `numbers` in order and returns what it counted. `progress` is told now and then how many keys have been answered.
pub fn pass(
    address: SocketAddr,
    protocol: &impl Protocol,
    pass: Pass,
    mut numbers: std::ops::Range<u32>,
    mut progress: impl FnMut(u64),
) -> Result<Tally> {
    let open = |_| Connection::open(address);
    let mut connections = (0..CONNECTIONS).map(open).collect::<Result<Vec<_>>>()?;
    let mut poll = Poll::new(&connections)?;
    let mut tally = Tally::default();
    let total = numbers.len() as u64;

    let mut next_burst = |connection: &mut Connection| {
        let burst: Vec<u32> = numbers.by_ref().take(BURST).collect();
        let Connection { out, steps, .. } = connection;
        match pass {
            _ if burst.is_empty() => {}
            Pass::Write => burst
                .iter()
                .for_each(|&number| protocol.set(number, 0, out, steps)),
            Pass::Read => protocol.multi_get(&burst, out, steps),
        }
        connection.send()
    };
    connections.iter_mut().try_for_each(&mut next_burst)?;

    let mut heard = Instant::now();
    let mut rounds = 0u32;
    while tally.operations() < total {
        let before = tally.operations();
        for place in poll.ready_ms(100)? {
            let connection = &mut connections[place];
            connection.receive(protocol, &mut tally, |_| {})?;
            if connection.steps.is_empty() {
                next_burst(connection)?;
            }
        }
        if tally.operations() > before {
            heard = Instant::now();
        } else if heard.elapsed() > SILENCE_MAX {
            bail!(
                "the server has not answered for {} s",
                SILENCE_MAX.as_secs()
            );
        } else {
            connections
                .iter_mut()
                .filter(|c| c.has_output())
                .try_for_each(Connection::send)?;
        }
        rounds += 1;
        if rounds.is_multiple_of(4096) {
            progress(tally.operations());
        }
    }
    Ok(tally)
}
