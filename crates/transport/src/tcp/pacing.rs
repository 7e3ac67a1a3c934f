//! Connections within one machine are not paced.
//!
//! BBR sends each segment at a time that follows from the bandwidth that it has measured. The
//! kernel sets a timer for each. On loopback there is no bandwidth to measure and no queue to keep
//! short. A large reply that leaves in slices then waits for a timer and an interrupt per slice,
//! and the measured bandwidth is that of this waiting, so it stays low.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::sockopt;

/// The beginning of the names of algorithms that pace: BBR and its later versions.
const PACED: &str = "bbr";

/// An algorithm that does not pace. Every kernel has it, and any user may choose it.
const UNPACED: &str = "reno";

/// The algorithm of connections from other machines, where the kernel paces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pacing(String);

impl Pacing {
    /// Has connections that a listener accepts begin without pacing, and returns what those from
    /// other machines are to get. None where the kernel does not pace.
    ///
    /// A connection whose algorithm has paced it once is paced for ever, also by algorithms that do
    /// not ask for it. So it is the listener, whose connections inherit its algorithm, that has to
    /// do without.
    pub fn of_listener(listener: BorrowedFd<'_>) -> Option<Pacing> {
        let name = sockopt::tcp_congestion(listener).ok()?;
        let is_ended =
            name.starts_with(PACED) && sockopt::set_tcp_congestion(listener, UNPACED).is_ok();
        is_ended.then_some(Pacing(name))
    }

    /// Paces what an accepted connection sends, unless its peer has a loopback address or its route
    /// has an algorithm of its own. If this is refused, it stays without.
    pub fn begin_if_remote(&self, connection: BorrowedFd<'_>, peer: Option<SocketAddr>) {
        let is_local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
        let is_inherited = || sockopt::tcp_congestion(connection).is_ok_and(|name| name == UNPACED);
        if !is_local && is_inherited() {
            let _ = sockopt::set_tcp_congestion(connection, &self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::Listener;

    fn peer(text: &str) -> Option<SocketAddr> {
        Some(text.parse().unwrap())
    }

    /// The algorithm of a connection to this peer, whose listener had BBR. A kernel may lack it.
    fn algorithm(peer: Option<SocketAddr>) -> Option<String> {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let socket = listener.as_fd();
        sockopt::set_tcp_congestion(socket, PACED).ok()?;
        let pacing = Pacing::of_listener(socket).expect("BBR paces");
        pacing.begin_if_remote(socket, peer);
        Some(sockopt::tcp_congestion(socket).unwrap())
    }

    #[test]
    fn only_connections_from_other_machines_are_paced() {
        for local in [
            "127.0.0.1:1",
            "127.1.2.3:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            let algorithm = algorithm(peer(local));
            assert!(algorithm.is_none_or(|name| name == UNPACED), "{local}");
        }
        for remote in [peer("10.0.0.1:1"), peer("[2001:db8::1]:1"), None] {
            let algorithm = algorithm(remote);
            assert!(algorithm.is_none_or(|name| name == PACED), "{remote:?}");
        }
    }

    #[test]
    fn a_route_keeps_its_algorithm() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let socket = listener.as_fd();
        if sockopt::set_tcp_congestion(socket, "cubic").is_ok() {
            Pacing(PACED.to_owned()).begin_if_remote(socket, peer("10.0.0.1:1"));
            assert_eq!(sockopt::tcp_congestion(socket).unwrap(), "cubic");
        }
    }

    #[test]
    fn what_does_not_pace_is_left_alone() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let socket = listener.as_fd();
        if sockopt::set_tcp_congestion(socket, "cubic").is_ok() {
            assert_eq!(Pacing::of_listener(socket), None);
            assert_eq!(sockopt::tcp_congestion(socket).unwrap(), "cubic");
        }
    }
}
