//! Sending more datagrams than the kernel takes at once.

use std::io;

use rustix::io::Errno;

use crate::sys::mmsg::{DATAGRAMS_MAX, Outgoing, Peer};
use crate::sys::train::Train;

/// What left of the datagrams that were to be sent. The others are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departed {
    /// Datagrams that left.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The socket takes no more for now: another attempt would only cost a system call.
    pub is_full: bool,
}

/// What the kernel takes one of.
pub(super) trait Sendable {
    fn peer(&self) -> &Peer;
    fn datagrams(&self) -> usize;
    fn bytes(&self) -> usize;
}

impl Sendable for Outgoing<'_> {
    fn peer(&self) -> &Peer {
        self.peer
    }

    fn datagrams(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.header.len() + self.payload.len()
    }
}

impl Sendable for Train<'_> {
    fn peer(&self) -> &Peer {
        self.peer
    }

    fn datagrams(&self) -> usize {
        self.bytes.len().div_ceil(self.stride)
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Sends by `send`, which takes up to [`DATAGRAMS_MAX`], returns how many were taken from the front,
/// and fails with an error that concerns the first. Once the socket is full, nothing more is tried;
/// where sending to one peer fails twice, the next things for that peer are left out.
#[inline]
pub(super) fn send_all<T: Sendable>(
    all: &[T],
    mut send: impl FnMut(&[T]) -> io::Result<usize>,
) -> Departed {
    let mut departed = Departed::default();
    let mut rest = all;
    let mut failed: Option<&Peer> = None;
    while let Some(first) = rest.first() {
        match send(&rest[..rest.len().min(DATAGRAMS_MAX)]) {
            Ok(taken @ 1..) => {
                let (sent, others) = rest.split_at(taken);
                for one in sent {
                    departed.datagrams += one.datagrams() as u64;
                    departed.bytes += one.bytes() as u64;
                }
                rest = others;
            }
            Err(error) if !is_full(&error) => {
                let is_for_others = |one: &T| !one.peer().is(first.peer());
                // The error may be one that an earlier datagram met; another one is the peer's.
                let lost = match failed {
                    Some(peer) if first.peer().is(peer) => rest.iter().position(is_for_others),
                    _ => Some(1),
                };
                failed = Some(first.peer());
                rest = &rest[lost.unwrap_or(rest.len())..];
            }
            Ok(0) | Err(_) => {
                departed.is_full = true;
                return departed;
            }
        }
    }
    departed
}

/// Whether it is the socket or the machine that has no room, rather than one peer that cannot be
/// sent to.
fn is_full(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn peer(port: u16) -> Peer {
        Peer::from(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Sends datagrams of one byte to these peers. Returns the outcome and the number of calls.
    fn send(
        to: &[&Peer],
        outcome: impl Fn(&Outgoing<'_>) -> Result<(), Errno>,
    ) -> (Departed, usize) {
        let outgoing = |&peer| Outgoing {
            peer,
            header: [0; 8],
            payload: b"x",
        };
        let datagrams: Vec<Outgoing<'_>> = to.iter().map(outgoing).collect();
        let mut calls = 0;
        let departed = send_all(&datagrams, |some| {
            calls += 1;
            assert!(some.len() <= DATAGRAMS_MAX);
            for (taken, one) in some.iter().enumerate() {
                match (taken, outcome(one)) {
                    (0, Err(error)) => return Err(error.into()),
                    (_, Err(_)) => return Ok(taken),
                    (_, Ok(())) => {}
                }
            }
            Ok(some.len())
        });
        (departed, calls)
    }

    #[test]
    fn a_full_socket_is_asked_once() {
        for error in [Errno::AGAIN, Errno::NOBUFS, Errno::NOMEM] {
            let peer = peer(1);
            let (departed, calls) = send(&[&peer; 700], |_| Err(error));
            assert_eq!((departed.datagrams, departed.is_full, calls), (0, true, 1));
        }
    }

    #[test]
    fn a_peer_that_cannot_be_sent_to_costs_two_calls_and_others_lose_nothing() {
        let (good, bad) = (peer(1), peer(2));
        let to = [[&good; 40], [&bad; 40], [&good; 40]].concat();
        let outcome = |one: &Outgoing<'_>| match one.peer.port() {
            2 => Err(Errno::HOSTUNREACH),
            _ => Ok(()),
        };
        let (departed, calls) = send(&to, outcome);
        assert_eq!((departed.datagrams, departed.bytes), (80, 80 * 9));
        assert!(!departed.is_full);
        // 32 and 8, the failures, 32 and 8.
        assert_eq!(calls, 6);
    }

    #[test]
    fn an_error_that_an_earlier_datagram_met_costs_one_datagram() {
        let peer = peer(1);
        let is_first = std::cell::Cell::new(true);
        let (departed, calls) = send(&[&peer; 9], |_| match is_first.replace(false) {
            true => Err(Errno::CONNREFUSED),
            false => Ok(()),
        });
        assert_eq!((departed.datagrams, departed.is_full, calls), (8, false, 2));
    }

    #[test]
    fn trains_count_as_their_datagrams() {
        let peer = peer(1);
        let train = Train {
            peer: &peer,
            bytes: &[7; 250],
            stride: 100,
        };
        let departed = send_all(&[train; 2], |trains| Ok(trains.len()));
        assert_eq!((departed.datagrams, departed.bytes), (6, 500));
    }
}
