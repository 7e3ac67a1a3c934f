//! Sockets that this process has not opened: a service manager has, and passes them on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::Listener;
use crate::tcp::Liveness;
use crate::udp::UdpDevice;

/// What can be served at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// Connections over TCP.
    Tcp,
    /// Connections over a Unix socket.
    Unix,
    /// Datagrams over UDP.
    Udp,
}

impl SocketKind {
    /// What can be served at a descriptor.
    ///
    /// # Errors
    ///
    /// Why nothing can be: a sentence about the descriptor without its subject.
    pub fn of(socket: BorrowedFd<'_>) -> Result<SocketKind, String> {
        let unknown = |error: Errno| match error {
            Errno::NOTSOCK => "is not a socket".to_owned(),
            error => format!("cannot be asked what it is: {error}"),
        };
        let family = sockopt::socket_domain(socket).map_err(unknown)?;
        let kind = sockopt::socket_type(socket).map_err(unknown)?;
        let is_ip = matches!(family, AddressFamily::INET | AddressFamily::INET6);
        let served = match kind {
            SocketType::STREAM if is_ip => SocketKind::Tcp,
            SocketType::STREAM if family == AddressFamily::UNIX => SocketKind::Unix,
            SocketType::DGRAM if is_ip => return Ok(SocketKind::Udp),
            _ => return Err("is no socket of TCP, of UDP, or for connections at a path".into()),
        };
        match sockopt::socket_acceptconn(socket).map_err(unknown)? {
            true => Ok(served),
            false => Err("does not listen: a socket unit needs Accept=no".into()),
        }
    }
}

impl Listener {
    /// Accepts the connections of a socket that listens already, with the kernel's backlog as it
    /// is. See [`Listener::bind_with`].
    pub fn inherited(socket: OwnedFd, liveness: Liveness) -> std::io::Result<Listener> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        // A Unix socket has none of these options.
        let _ = liveness.set(socket.as_fd());
        Ok(Listener::from_socket(socket))
    }
}

impl UdpDevice {
    /// A socket that is bound already, and that no other socket of this process shares.
    pub fn inherited(socket: OwnedFd) -> std::io::Result<UdpDevice> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let device = UdpDevice::new(socket, false);
        device.receive_unicast()?;
        Ok(device)
    }
}
