//! Handles messages that the kernel does not accept.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

use crate::packet::{Message, Transmitted};

/// Sends with `send`, which returns the number of messages accepted from the front and fails with
/// an error that concerns the first. Once the socket is full, it makes no further attempts. If
/// sending to a peer fails twice, the next messages to that peer are skipped.
#[inline]
pub(super) fn send_all(
    messages: &[Message<'_>],
    mut send: impl FnMut(&[Message<'_>]) -> io::Result<usize>,
) -> Transmitted {
    let mut transmitted = Transmitted::default();
    let lose = |lost: &[Message<'_>]| lost.iter().map(|one| one.datagrams() as u64).sum::<u64>();
    let mut rest = messages;
    let mut failed: Option<SocketAddr> = None;
    while let Some(first) = rest.first() {
        match send(rest) {
            Ok(taken @ 1..) => {
                let (sent, others) = rest.split_at(taken);
                sent.iter().for_each(|one| transmitted.count(one));
                rest = others;
            }
            Err(error) if !is_full(&error) => {
                let is_for_others = |one: &Message<'_>| one.to != first.to;
                // The first error may be left over from an earlier datagram; a second one concerns
                // this peer.
                let lost = match failed {
                    Some(peer) if peer == first.to => rest.iter().position(is_for_others),
                    _ => Some(1),
                };
                failed = Some(first.to);
                let (lost, others) = rest.split_at(lost.unwrap_or(rest.len()));
                transmitted.lost += lose(lost);
                rest = others;
            }
            Ok(0) | Err(_) => {
                transmitted.is_full = true;
                transmitted.lost += lose(rest);
                return transmitted;
            }
        }
    }
    transmitted
}

/// Whether the socket or the machine is out of space, as opposed to an error of one peer.
fn is_full(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// Sends datagrams of nine bytes to these peers. Returns the outcome and the number of calls.
    fn send(
        to: &[SocketAddr],
        outcome: impl Fn(&Message<'_>) -> Result<(), Errno>,
    ) -> (Transmitted, usize) {
        let message = |&to| Message::framed(to, *b"header: ", b"x");
        let messages: Vec<Message<'_>> = to.iter().map(message).collect();
        let mut calls = 0;
        let transmitted = send_all(&messages, |some| {
            calls += 1;
            for (taken, one) in some.iter().enumerate() {
                match (taken, outcome(one)) {
                    (0, Err(error)) => return Err(error.into()),
                    (_, Err(_)) => return Ok(taken),
                    (_, Ok(())) => {}
                }
            }
            Ok(some.len())
        });
        (transmitted, calls)
    }

    #[test]
    fn a_full_socket_is_asked_once() {
        for error in [Errno::AGAIN, Errno::NOBUFS, Errno::NOMEM] {
            let (transmitted, calls) = send(&[to(1); 32], |_| Err(error));
            let expected = Transmitted {
                lost: 32,
                is_full: true,
                ..Transmitted::default()
            };
            assert_eq!((transmitted, calls), (expected, 1));
        }
    }

    #[test]
    fn a_peer_that_cannot_be_sent_to_costs_two_calls_and_others_lose_nothing() {
        let peers = [[to(1); 10], [to(2); 10], [to(1); 10]].concat();
        let outcome = |one: &Message<'_>| match one.to.port() {
            2 => Err(Errno::HOSTUNREACH),
            _ => Ok(()),
        };
        let (transmitted, calls) = send(&peers, outcome);
        let expected = Transmitted {
            datagrams: 20,
            bytes: 20 * 9,
            lost: 10,
            is_full: false,
        };
        // The first ten, two failures, and the last ten.
        assert_eq!((transmitted, calls), (expected, 4));
    }

    #[test]
    fn an_error_that_an_earlier_datagram_met_costs_one_datagram() {
        let is_first = std::cell::Cell::new(true);
        let (transmitted, calls) = send(&[to(1); 9], |_| match is_first.replace(false) {
            true => Err(Errno::CONNREFUSED),
            false => Ok(()),
        });
        assert_eq!((transmitted.datagrams, transmitted.lost, calls), (8, 1, 2));
    }

    #[test]
    fn segment_batches_count_as_their_datagrams() {
        let message = Message::segments(to(1), &[7; 250], 100);
        let transmitted = send_all(&[message; 2], |messages| Ok(messages.len()));
        assert_eq!((transmitted.datagrams, transmitted.bytes), (6, 500));
        let transmitted = send_all(&[message; 2], |_| Ok(0));
        assert_eq!((transmitted.lost, transmitted.is_full), (6, true));
    }
}
