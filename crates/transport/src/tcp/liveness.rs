//! When the kernel closes a connection whose peer has vanished.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt;

/// Unanswered probes after which a silent peer counts as gone.
const PROBES: u32 = 3;

/// When the kernel closes a connection whose peer has vanished without closing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    /// The kernel probes a peer that has been silent for this long (`SO_KEEPALIVE`), in whole
    /// seconds. It probes three times, at intervals of a third of this time, and then closes the
    /// connection. `None`: it never probes.
    pub keepalive: Option<Duration>,
    /// The kernel closes a connection whose peer leaves sent bytes unacknowledged, or its receive
    /// window closed, for this long (`TCP_USER_TIMEOUT`). Where this is set, a peer that leaves
    /// probes unanswered is also closed after this time, and not after the third probe. `None`:
    /// the kernel's own timeout applies, about a quarter of an hour.
    pub user_timeout: Option<Duration>,
}

impl Liveness {
    pub(crate) fn set(self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(idle) = self.keepalive {
            sockopt::set_tcp_keepidle(socket, idle)?;
            let interval = Duration::from_secs((idle.as_secs() / u64::from(PROBES)).max(1));
            sockopt::set_tcp_keepintvl(socket, interval)?;
            sockopt::set_tcp_keepcnt(socket, PROBES)?;
        }
        sockopt::set_socket_keepalive(socket, self.keepalive.is_some())?;
        // 0 is the kernel's own timeout.
        let user_timeout = self.user_timeout.unwrap_or_default();
        let user_timeout_ms = user_timeout.as_millis().try_into().unwrap_or(u32::MAX);
        Ok(sockopt::set_tcp_user_timeout(socket, user_timeout_ms)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Listener, Poller, Stream};
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    fn accepted(liveness: Liveness) -> (Stream, TcpStream) {
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind_with(address, 8, liveness).unwrap();
        let mut poller = Poller::new(8).unwrap();
        poller.watch_level(&listener, 0).unwrap();
        let peer = TcpStream::connect(listener.address().unwrap()).unwrap();
        poller.wait(None).unwrap();
        (listener.accept().unwrap().expect("one waits"), peer)
    }

    #[test]
    fn connections_inherit_the_listeners_liveness() {
        let (stream, _peer) = accepted(Liveness {
            keepalive: Some(Duration::from_secs(60)),
            user_timeout: Some(Duration::from_secs(300)),
        });
        let socket = stream.as_fd();
        assert!(sockopt::socket_keepalive(socket).unwrap());
        let idle = sockopt::tcp_keepidle(socket).unwrap();
        let interval = sockopt::tcp_keepintvl(socket).unwrap();
        assert_eq!((idle.as_secs(), interval.as_secs()), (60, 20));
        assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), PROBES);
        assert_eq!(sockopt::tcp_user_timeout(socket).unwrap(), 300_000);
    }

    #[test]
    fn without_liveness_the_kernel_never_probes() {
        let (stream, _peer) = accepted(Liveness::default());
        assert!(!sockopt::socket_keepalive(stream.as_fd()).unwrap());
        assert_eq!(sockopt::tcp_user_timeout(stream.as_fd()).unwrap(), 0);
    }
}
