//! Accepts connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glimmer_base::limits::ACCEPT_TRIES_MAX;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};

use super::pacing::Pacing;
use super::{Liveness, SocketStream};
use crate::Endpoint;
use crate::packet::Wakeup;
use crate::stream::{ByteStream, StreamListener};

/// A listening socket. Several may listen at one address; the kernel distributes connections among
/// them by a hash of the peer's address, unevenly.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// What connections from other machines get, if the kernel paces.
    pacing: Option<Pacing>,
}

/// Checks that an address is free. [`Listener::bind`] sets `SO_REUSEPORT`, which would let a second
/// server of the same user bind the port of the first one and take half of its connections. Without
/// that option, a port in use is an error ([`io::ErrorKind::AddrInUse`]). The probe does not
/// listen, because connections that it accepted would be reset.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    bound_socket(address, false).map(drop)
}

impl Listener {
    /// Listens at an address, together with other sockets of this process. A port of 0 is replaced
    /// by a free one. At most `backlog` connections wait to be accepted (the kernel lowers it to
    /// `net.core.somaxconn`).
    pub fn bind(address: SocketAddr, backlog: i32) -> io::Result<Listener> {
        Listener::bind_with(address, backlog, Liveness::default())
    }

    /// Like [`Listener::bind`], with the time after which the kernel closes connections of vanished
    /// peers. Connections inherit these options from the listener, so that accepting one costs no
    /// further system call. A kernel without an option closes them later.
    pub fn bind_with(
        address: SocketAddr,
        backlog: i32,
        liveness: Liveness,
    ) -> io::Result<Listener> {
        let socket = bound_socket(address, true)?;
        let _ = liveness.set(socket.as_fd());
        net::listen(&socket, backlog)?;
        Ok(Listener::from_socket(socket))
    }

    /// A socket that already listens.
    pub(crate) fn from_socket(socket: OwnedFd) -> Listener {
        // Connections inherit it, so that accepting one costs no further system call. Unix sockets
        // do not have this option. Without it, replies are merely delayed.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        Listener {
            pacing: Pacing::of_listener(socket.as_fd()),
            socket,
        }
    }

    /// The address, with the chosen port.
    pub fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::try_from(net::getsockname(&self.socket)?).map_err(Into::into)
    }

    /// Accepts the next connection, if one waits.
    ///
    /// What it sends is not paced if its peer is on this machine.
    ///
    /// Connections that were reset while they waited are skipped, [`ACCEPT_TRIES_MAX`] at a time;
    /// after that, none waits as far as the caller is told, and the poller reports the next one. An
    /// error means that the process has run out of descriptors or kernel memory
    /// ([`io::ErrorKind::WouldBlock`] never appears).
    pub fn accept(&self) -> io::Result<Option<SocketStream>> {
        let accepted = first_accepted(|| self.accept_once())?;
        Ok(accepted.map(SocketStream::new))
    }

    fn accept_once(&self) -> rustix::io::Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let Some(pacing) = &self.pacing else {
            return net::accept_with(&self.socket, flags);
        };
        let (connection, peer) = net::acceptfrom_with(&self.socket, flags)?;
        let peer = peer.and_then(|peer: SocketAddrAny| SocketAddr::try_from(peer).ok());
        pacing.begin_if_remote(connection.as_fd(), peer);
        Ok(connection)
    }
}

/// The first connection that `accept` takes, of a few attempts.
fn first_accepted<T>(mut accept: impl FnMut() -> Result<T, Errno>) -> io::Result<Option<T>> {
    for _ in 0..ACCEPT_TRIES_MAX {
        match accept() {
            Ok(connection) => return Ok(Some(connection)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(
                error @ (Errno::MFILE
                | Errno::NFILE
                | Errno::NOBUFS
                | Errno::NOMEM
                | Errno::BADF
                | Errno::INVAL),
            ) => return Err(error.into()),
            // accept(2) reports pending errors of the new connection here. They concern only that
            // connection.
            Err(_) => {}
        }
    }
    Ok(None)
}

impl StreamListener for Listener {
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>> {
        let accepted = Listener::accept(self)?;
        Ok(accepted.map(|stream| Box::new(stream) as Box<dyn ByteStream>))
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.as_fd())
    }

    fn local(&self) -> Option<Endpoint> {
        Endpoint::local(self)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bound_socket(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        // So that `0.0.0.0` and `::` can be bound at the same time.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: &str = "127.0.0.1:0";

    #[test]
    fn a_port_in_use_is_an_error_although_listeners_share_it() {
        let first = Listener::bind(ANY.parse().unwrap(), 8).unwrap();
        let address = first.address().unwrap();
        let second = Listener::bind(address, 8).unwrap();
        assert_eq!(second.address().unwrap(), address);
        assert_eq!(probe(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop((first, second));
        probe(address).unwrap();
        Listener::bind(address, 8).unwrap();
    }

    #[test]
    fn nobody_connects_to_a_probe() {
        let address = {
            let listener = Listener::bind(ANY.parse().unwrap(), 8).unwrap();
            listener.address().unwrap()
        };
        std::thread::scope(|scope| {
            let probes = scope.spawn(|| (0..2_000).for_each(|_| probe(address).unwrap()));
            while !probes.is_finished() {
                if let Ok(stream) = std::net::TcpStream::connect(address) {
                    // A socket that happens to get this port connects to itself.
                    assert_eq!(stream.local_addr().unwrap(), address);
                }
            }
        });
    }

    /// Whatever the kernel says of each: a caller that has other work gets back to it.
    #[test]
    fn connections_that_fail_without_end_are_skipped_a_few_at_a_time() {
        for error in [Errno::CONNABORTED, Errno::PERM, Errno::PROTO] {
            let mut tries = 0;
            let mut fail_until = |last| {
                first_accepted(|| {
                    tries += 1;
                    if tries == last { Ok(tries) } else { Err(error) }
                })
            };
            assert_eq!(fail_until(1_000).unwrap(), None);
            assert_eq!(
                fail_until(ACCEPT_TRIES_MAX + 3).unwrap(),
                Some(ACCEPT_TRIES_MAX + 3)
            );
            assert_eq!(tries, ACCEPT_TRIES_MAX + 3);
        }
    }

    #[test]
    fn accepted_connections_send_small_segments_at_once() {
        let listener = Listener::bind(ANY.parse().unwrap(), 8).unwrap();
        let _peer = std::net::TcpStream::connect(listener.address().unwrap()).unwrap();
        let mut poller = crate::Poller::new(8).unwrap();
        poller.watch_level(&listener, 0).unwrap();
        poller.wait(None).unwrap();
        let stream = listener.accept().unwrap().expect("one waits");
        assert!(sockopt::tcp_nodelay(&stream).unwrap());
    }

    #[test]
    fn nothing_to_accept_is_not_an_error() {
        let listener = Listener::bind(ANY.parse().unwrap(), 8).unwrap();
        assert!(listener.accept().unwrap().is_none());
    }

    /// That a connection never had an algorithm that paces cannot be seen from outside, but its
    /// listener's can.
    #[test]
    fn an_accepted_connection_of_this_machine_is_not_paced() {
        for (algorithm, expected) in [("bbr", "reno"), ("cubic", "cubic"), ("reno", "reno")] {
            let socket = bound_socket(ANY.parse().unwrap(), true).unwrap();
            if sockopt::set_tcp_congestion(&socket, algorithm).is_err() {
                continue; // This kernel lacks it.
            }
            net::listen(&socket, 8).unwrap();
            let listener = Listener::from_socket(socket);
            assert_eq!(sockopt::tcp_congestion(&listener).unwrap(), expected);
            let _peer = std::net::TcpStream::connect(listener.address().unwrap()).unwrap();
            let mut poller = crate::Poller::new(8).unwrap();
            poller.watch_level(&listener, 0).unwrap();
            poller.wait(None).unwrap();
            let stream = listener.accept().unwrap().expect("one waits");
            assert_eq!(sockopt::tcp_congestion(&stream).unwrap(), expected);
        }
    }
}
