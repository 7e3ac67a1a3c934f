//! How peers are reached: what their latest datagrams said.
//!
//! A reply leaves by the socket that its request arrived at, to the hardware address that the
//! request came from. What does not leave in the frame of a request looks that up here. The table
//! is small and forgets: of what is not in it the kernel or the neighbours know the way.
//!
//! A peer may get another hardware address, as when another machine takes over its address. A
//! client that goes on sending to the former one never hears of it. So a route on which much was
//! sent and nothing was heard is doubted, and its user asks for the way again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use glimmer_base::limits::{PEER_UNHEARD_MAX, PEER_UNHEARD_MS, XDP_PEERS};

use super::wire::Ends;
use crate::address::ip_octets;

/// Stands for the number of a socket: the peer's latest datagram came through the kernel's stack.
/// The stack knows the route, so the hardware addresses are zero.
pub const BY_KERNEL: u32 = u32::MAX;

/// The peers of late.
pub struct Routes(Box<[Option<Route>]>);

struct Route {
    ends: Ends,
    socket: u32,
    /// Datagrams that were sent since the peer was heard.
    unheard: u32,
    /// When these became as many as [`PEER_UNHEARD_MAX`].
    since: Option<Instant>,
    is_doubted: bool,
}

/// How a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its hardware address among others.
    pub ends: Ends,
    /// By which socket; or [`BY_KERNEL`].
    pub socket: u32,
    /// Whether it may have another hardware address by now.
    pub is_doubted: bool,
}

impl Default for Routes {
    fn default() -> Self {
        Routes((0..XDP_PEERS).map(|_| None).collect())
    }
}

impl Routes {
    /// A datagram of this peer arrived at a socket, or [`BY_KERNEL`].
    #[inline]
    pub fn learn(&mut self, ends: &Ends, socket: u32) {
        self.0[place(&ends.theirs)] = Some(Route {
            ends: *ends,
            socket,
            unheard: 0,
            since: None,
            is_doubted: false,
        });
    }

    /// How this peer, which is to be sent a datagram, is reached.
    #[inline]
    pub fn find(&mut self, peer: &SocketAddr) -> Option<Found> {
        let route = self.0[place(peer)].as_mut()?;
        if route.ends.theirs != *peer {
            return None;
        }
        route.unheard = route.unheard.wrapping_add(1);
        if route.unheard.is_multiple_of(PEER_UNHEARD_MAX) {
            let since = *route.since.get_or_insert_with(Instant::now);
            route.is_doubted = since.elapsed() >= Duration::from_millis(PEER_UNHEARD_MS);
        }
        Some(Found {
            ends: route.ends,
            socket: route.socket,
            is_doubted: route.is_doubted,
        })
    }
}

/// Bits of the number of a place.
const PLACE_BITS: u32 = XDP_PEERS.ilog2();
const _: () = assert!(XDP_PEERS.is_power_of_two());

#[inline]
fn place(peer: &SocketAddr) -> usize {
    let ip = u128::from_be_bytes(ip_octets(peer));
    let both = (ip >> 64) as u64 ^ ip as u64 ^ u64::from(peer.port()) << 48;
    // The upper bits of the product depend on all bits.
    (both.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - PLACE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_peer_itself_is_found() {
        let mut routes = Routes::default();
        let ends = |port| Ends {
            our_mac: [1; 6],
            their_mac: [2; 6],
            ours: "10.0.0.1:1".parse().unwrap(),
            theirs: ([10, 0, 0, 2], port).into(),
        };
        for port in 1..=3 * XDP_PEERS as u16 {
            routes.learn(&ends(port), port.into());
            let found = Found {
                ends: ends(port),
                socket: port.into(),
                is_doubted: false,
            };
            assert_eq!(routes.find(&ends(port).theirs), Some(found));
        }
        let found = (1..=3 * XDP_PEERS as u16).filter(|&port| {
            let found = routes.find(&ends(port).theirs);
            assert!(found.is_none_or(|found| found.ends == ends(port)));
            found.is_some()
        });
        assert!((1..=XDP_PEERS).contains(&found.count()));
    }
    /// Of a quarter as many peers as there are places, at one address or at many.
    #[test]
    fn most_peers_have_a_place_for_themselves() {
        for is_one_host in [true, false] {
            let mut routes = Routes::default();
            let peers: Vec<SocketAddr> = (0..XDP_PEERS as u16 / 4)
                .map(|number| match is_one_host {
                    true => ([10, 0, 0, 2], 40_000 + number).into(),
                    false => ([10, 0, (number >> 8) as u8, number as u8], 11_211).into(),
                })
                .collect();
            for &theirs in &peers {
                let ends = Ends {
                    our_mac: [1; 6],
                    their_mac: [2; 6],
                    ours: "10.0.0.1:1".parse().unwrap(),
                    theirs,
                };
                routes.learn(&ends, 0);
            }
            let found = peers.iter().filter(|peer| routes.find(peer).is_some());
            let found = found.count();
            assert!(found * 4 >= peers.len() * 3, "{found} of {}", peers.len());
        }
    }

    #[test]
    fn a_peer_is_doubted_when_much_was_sent_and_nothing_heard_for_a_while() {
        let mut routes = Routes::default();
        let ends = Ends {
            our_mac: [1; 6],
            their_mac: [2; 6],
            ours: "10.0.0.1:1".parse().unwrap(),
            theirs: "10.0.0.2:2".parse().unwrap(),
        };
        let patience = Duration::from_millis(PEER_UNHEARD_MS);
        routes.learn(&ends, 0);
        // What the last of some datagrams is told.
        let mut doubted = |datagrams| {
            (0..datagrams).fold(false, |_, _| routes.find(&ends.theirs).unwrap().is_doubted)
        };
        std::thread::sleep(patience);
        // The time counts from these on.
        assert!(!doubted(PEER_UNHEARD_MAX));
        std::thread::sleep(patience);
        assert!(!doubted(PEER_UNHEARD_MAX - 1) && doubted(1) && doubted(1));
        routes.learn(&ends, 0);
        assert!(!routes.find(&ends.theirs).unwrap().is_doubted);
    }
}
