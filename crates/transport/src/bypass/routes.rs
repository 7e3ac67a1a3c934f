//! How peers are reached: what their latest datagrams said.
//!
//! A reply leaves by the socket that its request arrived at, to the hardware address that the
//! request came from. Replies that do not leave in the frame of their request look that up here.
//! The table is small and forgets: what is not in it goes through the kernel, which knows the way.

use std::net::SocketAddr;

use glimmer_base::limits::XDP_PEERS;

use super::wire::Ends;
use crate::address::ip_octets;

/// The peers of late.
pub struct Routes(Box<[Option<(Ends, u32)>]>);

impl Default for Routes {
    fn default() -> Self {
        Routes(vec![None; XDP_PEERS].into())
    }
}

impl Routes {
    /// A datagram of this peer arrived at a socket.
    #[inline]
    pub fn learn(&mut self, ends: &Ends, socket: u32) {
        self.0[place(&ends.theirs)] = Some((*ends, socket));
    }

    /// How this peer is reached, and by which socket.
    #[inline]
    pub fn find(&self, peer: &SocketAddr) -> Option<(&Ends, u32)> {
        let (ends, socket) = self.0[place(peer)].as_ref()?;
        (ends.theirs == *peer).then_some((ends, *socket))
    }
}

#[inline]
fn place(peer: &SocketAddr) -> usize {
    let ip = u128::from_be_bytes(ip_octets(peer));
    let both = (ip >> 64) as u64 ^ ip as u64 ^ u64::from(peer.port()) << 48;
    // The upper bits of the product depend on all bits.
    (both.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % XDP_PEERS
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
            assert_eq!(
                routes.find(&ends(port).theirs),
                Some((&ends(port), port.into()))
            );
        }
        let found = (1..=3 * XDP_PEERS as u16).filter(|&port| {
            let found = routes.find(&ends(port).theirs);
            assert!(found.is_none_or(|(found, _)| *found == ends(port)));
            found.is_some()
        });
        assert!((1..=XDP_PEERS).contains(&found.count()));
    }
}
