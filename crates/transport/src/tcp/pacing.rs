//! Connections within one machine are not paced.
//!
//! BBR sends each segment at a time that follows from the bandwidth that it has measured. The
//! kernel sets a timer for each. On loopback there is no bandwidth to measure and no queue to keep
//! short. A large reply that leaves in slices then waits for a timer and an interrupt per slice,
//! and the measured bandwidth is that of this waiting, so it stays low.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use rustix::net::sockopt;

/// The beginning of the names of algorithms that pace: BBR and its later versions.
const PACED: &str = "bbr";

/// An algorithm that does not pace. Every kernel has it, and any user may choose it.
const UNPACED: &str = "reno";

/// Whether the kernel paces what a TCP socket sends. It does not for a socket of another kind.
pub fn is_paced(socket: BorrowedFd<'_>) -> bool {
    sockopt::tcp_congestion(socket).is_ok_and(|name| name.starts_with(PACED))
}

/// No longer paces what a connection sends, if its peer has this loopback address. Without this
/// option, it is merely slower.
pub fn end_if_local(connection: BorrowedFd<'_>, peer: Option<SocketAddr>) {
    let is_local = match peer.map(|peer| peer.ip()) {
        Some(IpAddr::V4(ip)) => ip.is_loopback(),
        Some(IpAddr::V6(ip)) => ip.is_loopback(),
        None => false,
    };
    if is_local {
        let _ = sockopt::set_tcp_congestion(connection, UNPACED);
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

    /// The algorithm of a connection to this peer, whose listener has another one.
    fn algorithm(peer: Option<SocketAddr>) -> Option<String> {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let socket = listener.as_fd();
        // A kernel may have none of them.
        let others = ["cubic", "bbr", "dctcp"];
        others
            .iter()
            .find(|name| sockopt::set_tcp_congestion(socket, name).is_ok())?;
        end_if_local(socket, peer);
        Some(sockopt::tcp_congestion(socket).unwrap())
    }

    #[test]
    fn only_local_connections_get_another_algorithm() {
        for local in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1"] {
            let algorithm = algorithm(peer(local));
            assert!(algorithm.is_none_or(|name| name == UNPACED), "{local}");
        }
        for remote in [peer("10.0.0.1:1"), peer("[2001:db8::1]:1"), None] {
            assert_ne!(algorithm(remote).as_deref(), Some(UNPACED), "{remote:?}");
        }
    }

    #[test]
    fn bbr_paces_and_others_do_not() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let socket = listener.as_fd();
        sockopt::set_tcp_congestion(socket, UNPACED).unwrap();
        assert!(!is_paced(socket));
        if sockopt::set_tcp_congestion(socket, "bbr").is_ok() {
            assert!(is_paced(socket));
        }
    }
}
