//! One worker's socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::departure::{self, Departed};
use super::{Inbox, Trains};
use crate::sys::headers::{refuses_segments, tell_drops};
use crate::sys::mmsg::{self, Outgoing, Peer};
use crate::sys::refusals;
use crate::sys::train::{self, Train};

/// What the kernel keeps of datagrams that nobody has received or that the network has not taken, in bytes; it may allow less.
const KERNEL_BUFFER_BYTES: usize = 4 << 20;

/// A bound UDP socket. Several may be bound to one address: the kernel spreads the peers over them.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// Whether the address is free, as [`tcp::probe`](crate::tcp::probe) tells for TCP.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    bound(address, false).map(drop)
}

impl Socket {
    /// Binds an address together with whoever else of this process does. A port of 0 is replaced by a free one.
    pub fn bind(address: SocketAddr) -> io::Result<Socket> {
        let socket = with_buffers(bound(address, true)?);
        // A kernel that cannot does not tell of what it dropped.
        let _ = tell_drops(socket.as_fd());
        Ok(socket)
    }

    /// A socket on a free port that talks to one address alone: whatever it sends goes there, whoever it is addressed to.
    pub fn connect(address: SocketAddr) -> io::Result<Socket> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = bound((any, 0).into(), false)?;
        net::connect(&socket, &address)?;
        Ok(with_buffers(socket))
    }

    /// Binds an address that nobody else binds, and has the kernel put together what arrives from one peer, where it can. A port of 0 is replaced by a
    /// free one.
    pub fn bind_alone(address: SocketAddr) -> io::Result<Socket> {
        let socket = with_buffers(bound(address, false)?);
        // A kernel that cannot delivers every datagram by itself.
        let _ = train::join_received(socket.as_fd());
        // One that cannot do this does not tell of what it dropped.
        let _ = tell_drops(socket.as_fd());
        Ok(socket)
    }

    /// Has the kernel report datagrams that reached a host where nobody listens at their port, as
    /// it does unasked for a connected socket. [`Socket::take_refusal`] has to be called whenever
    /// the socket reports an error, or it goes on reporting it.
    pub fn report_refusals(&self) -> io::Result<()> {
        refusals::report(self.0.as_fd(), self.address()?.is_ipv4())
    }

    /// The next datagram that was refused: where it went, and as many bytes of it as the network
    /// returned, which are written to `quoted`. Entries that report anything else are dropped.
    #[cold]
    pub fn take_refusal(&self, quoted: &mut [u8]) -> Option<(Peer, usize)> {
        while let Some(report) = refusals::take(self.0.as_fd(), quoted) {
            if report.is_refusal {
                return Some((report.peer.into(), report.bytes));
            }
        }
        None
    }

    /// Receives the trains that wait, as many as one system call brings. Returns how many there are.
    #[inline]
    pub fn receive_trains(&self, trains: &mut Trains) -> usize {
        // As in `receive`.
        let _ = trains.receive(self.0.as_fd());
        trains.count()
    }

    /// Sends trains. What cannot be sent now is lost, as datagrams may be.
    pub fn send_trains(&self, trains: &[Train<'_>]) -> Departed {
        departure::send_all(trains, |trains| {
            train::send(self.0.as_fd(), trains).or_else(|error| {
                let is_sent = self.send_apart(&trains[0], &error);
                if is_sent { Ok(1) } else { Err(error) }
            })
        })
    }

    /// Sends the datagrams of a train one by one, if the way to its peer takes no trains.
    #[cold]
    fn send_apart(&self, train: &Train<'_>, error: &io::Error) -> bool {
        if !refuses_segments(error) || train.bytes.len() <= train.stride {
            return false;
        }
        let alone = |bytes| {
            let train = Train { bytes, ..*train };
            matches!(train::send(self.0.as_fd(), &[train]), Ok(1))
        };
        train.bytes.chunks(train.stride).all(alone)
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::try_from(net::getsockname(&self.0)?).map_err(Into::into)
    }

    /// Receives the datagrams that wait, as many as one system call brings. Returns how many there are.
    #[inline]
    pub fn receive(&self, inbox: &mut Inbox) -> usize {
        // An error is one that an earlier datagram met on its way out: it is reported once, and concerns nothing that was received.
        let _ = self.try_receive(inbox);
        inbox.count()
    }

    /// The same for those who want to know of the errors that earlier datagrams met.
    #[inline]
    pub fn try_receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        inbox.receive(self.0.as_fd())?;
        Ok(inbox.count())
    }

    /// Sends the first of these datagrams, [`DATAGRAMS_MAX`](super::DATAGRAMS_MAX) at most, and returns how many went; an error concerns the first of them.
    #[inline]
    pub fn try_send(&self, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
        mmsg::send(self.0.as_fd(), datagrams)
    }

    /// As [`Socket::try_send`], but each datagram goes through the kernel by itself, as programs
    /// send that do not use segmentation (`UDP_SEGMENT`).
    #[inline]
    pub fn try_send_apart(&self, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
        mmsg::send_apart(self.0.as_fd(), datagrams)
    }

    /// Sends datagrams. Those that cannot be sent now are lost, as datagrams may be.
    #[inline]
    pub fn send(&self, datagrams: &[Outgoing<'_>]) -> Departed {
        departure::send_all(datagrams, |datagrams| self.try_send(datagrams))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Larger buffers hold longer bursts; with smaller ones more datagrams are lost.
fn with_buffers(socket: OwnedFd) -> Socket {
    let _ = sockopt::set_socket_recv_buffer_size(&socket, KERNEL_BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size(&socket, KERNEL_BUFFER_BYTES);
    Socket(socket)
}

pub(super) fn bound(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::DGRAM, flags, None)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::DATAGRAMS_MAX;
    use std::net::UdpSocket;
    use std::time::Duration;

    const ANY: &str = "127.0.0.1:0";

    fn client(of: &Socket) -> UdpSocket {
        let client = UdpSocket::bind(ANY).unwrap();
        client.connect(of.address().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        client
    }

    /// Receives so many datagrams, however many calls it takes.
    fn receive(socket: &Socket, inbox: &mut Inbox, count: usize) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        while received.len() < count {
            socket.receive(inbox);
            received.extend((0..inbox.count()).map(|index| inbox.datagram(index).to_vec()));
            std::thread::yield_now();
        }
        received
    }

    #[test]
    fn many_datagrams_come_and_go() {
        let socket = Socket::bind(ANY.parse().unwrap()).unwrap();
        let mut inbox = Inbox::default();
        assert_eq!(socket.receive(&mut inbox), 0);
        let client = client(&socket);
        let requests: Vec<Vec<u8>> = (0..40).map(|n| vec![n; 1 + usize::from(n)]).collect();
        for request in &requests {
            client.send(request).unwrap();
        }
        assert_eq!(receive(&socket, &mut inbox, 40), requests);

        client.send(b"who").unwrap();
        receive(&socket, &mut inbox, 1);
        let payloads: Vec<Vec<u8>> = (0..70).map(|n| vec![n; 1000]).collect();
        let datagrams: Vec<Outgoing<'_>> = payloads
            .iter()
            .map(|payload| Outgoing {
                peer: inbox.peer(0),
                header: *b"header: ",
                payload,
            })
            .collect();
        assert_eq!(socket.send(&datagrams).datagrams, 70);
        let mut buffer = [0; 2000];
        for payload in &payloads {
            let bytes = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..8], b"header: ");
            assert_eq!(&buffer[8..bytes], payload);
        }
    }

    #[test]
    fn a_connected_socket_talks_to_its_peer_alone() {
        let server = Socket::bind(ANY.parse().unwrap()).unwrap();
        let socket = Socket::connect(server.address().unwrap()).unwrap();
        let nobody = Peer::nobody();
        let payloads: Vec<Vec<u8>> = (0..DATAGRAMS_MAX).map(|n| vec![n as u8; n]).collect();
        let to_nobody = |payload| Outgoing {
            peer: &nobody,
            header: *b"to whom?",
            payload,
        };
        let datagrams: Vec<Outgoing<'_>> = payloads.iter().map(|p| to_nobody(p)).collect();
        let mut sent = 0;
        while sent < datagrams.len() {
            sent += socket.try_send(&datagrams[sent..]).unwrap();
        }
        let mut inbox = Inbox::default();
        let received = receive(&server, &mut inbox, payloads.len());
        let expected = payloads.iter().map(|p| [b"to whom?", &p[..]].concat());
        assert!(expected.eq(received));

        // Somebody else is not heard; a peer that has gone is an error.
        let other = UdpSocket::bind(ANY).unwrap();
        other.send_to(b"hello", socket.address().unwrap()).unwrap();
        assert_eq!(socket.try_receive(&mut inbox).unwrap(), 0);
        drop(server);
        let _ = socket.try_send(&[to_nobody(b"gone")]);
        let refused = socket.try_receive(&mut inbox).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_longest_datagram_fits() {
        let socket = Socket::bind(ANY.parse().unwrap()).unwrap();
        let longest = vec![7; 65_507];
        client(&socket).send(&longest).unwrap();
        let mut inbox = Inbox::default();
        assert_eq!(receive(&socket, &mut inbox, 1), [longest]);
    }

    #[test]
    fn nobody_to_send_to_is_not_the_end() {
        let socket = Socket::bind(ANY.parse().unwrap()).unwrap();
        let mut inbox = Inbox::default();
        client(&socket).send(b"who").unwrap();
        receive(&socket, &mut inbox, 1);
        let gone = Outgoing {
            peer: inbox.peer(0),
            header: [0; 8],
            payload: b"",
        };
        for _ in 0..3 {
            socket.send(&[gone, gone]);
        }
        let client = client(&socket);
        client.send(b"still there").unwrap();
        assert_eq!(receive(&socket, &mut inbox, 1), [b"still there"]);
    }

    #[test]
    fn the_kernel_tells_how_many_datagrams_it_dropped() {
        for alone in [false, true] {
            let any = ANY.parse().unwrap();
            let bind = if alone {
                Socket::bind_alone
            } else {
                Socket::bind
            };
            let socket = bind(any).unwrap();
            let client = client(&socket);
            let (mut inbox, mut trains) = (Inbox::default(), Trains::default());
            let mut receive = || match alone {
                true => (socket.receive_trains(&mut trains), trains.drops()),
                false => (socket.receive(&mut inbox), inbox.drops()),
            };
            client.send(b"first").unwrap();
            assert_eq!(receive(), (1, None));
            // More than any receive buffer holds.
            for _ in 0..20_000 {
                client.send(&[7; 1400]).unwrap();
            }
            while receive().0 > 0 {}
            // What comes after a loss brings the news of it.
            client.send(b"last").unwrap();
            let (count, drops) = receive();
            assert_eq!(count, 1);
            assert!((1..20_000).contains(&drops.unwrap()), "{drops:?}");
        }
    }

    #[test]
    fn trains_come_and_go() {
        let server = Socket::bind_alone(ANY.parse().unwrap()).unwrap();
        let client = Socket::bind_alone(ANY.parse().unwrap()).unwrap();
        let to_server = Peer::from(server.address().unwrap());
        let bytes: Vec<u8> = (0..64u8).flat_map(|n| [n; 100]).collect();
        let short = [7; 30];
        let trains = [
            Train {
                peer: &to_server,
                bytes: &bytes,
                stride: 100,
            },
            Train {
                peer: &to_server,
                bytes: &bytes[..250],
                stride: 100,
            },
            Train {
                peer: &to_server,
                bytes: &short,
                stride: 30,
            },
        ];
        assert_eq!(client.send_trains(&trains).datagrams, 64 + 3 + 1);
        let mut inbox = Trains::default();
        let mut datagrams: Vec<Vec<u8>> = Vec::new();
        while datagrams.len() < 64 + 3 + 1 {
            for train in 0..server.receive_trains(&mut inbox) {
                let from_client = Peer::from(client.address().unwrap());
                assert_eq!(inbox.peer(train).as_bytes(), from_client.as_bytes());
                let stride = inbox.stride(train);
                datagrams.extend(inbox.bytes(train).chunks(stride).map(<[u8]>::to_vec));
            }
            std::thread::yield_now();
        }
        let expected = trains
            .iter()
            .flat_map(|train| train.bytes.chunks(train.stride));
        assert!(datagrams.iter().eq(expected));
    }

    #[test]
    fn a_closed_port_is_reported_with_its_address_and_what_was_sent() {
        for any in [ANY, "[::1]:0"] {
            let Ok(closed) = Socket::bind_alone(any.parse().unwrap()) else {
                println!("SKIPPED {any}: no such address here");
                continue;
            };
            let address = closed.address().unwrap();
            drop(closed);
            let socket = Socket::bind_alone(any.parse().unwrap()).unwrap();
            socket.report_refusals().unwrap();
            let peer = Peer::from(address);
            let bytes: Vec<u8> = (0..200).collect();
            let train = Train {
                peer: &peer,
                bytes: &bytes,
                stride: 100,
            };
            socket.send_trains(&[train]);
            let mut quoted = [0; 64];
            let (refuser, length) = loop {
                if let Some(refusal) = socket.take_refusal(&mut quoted) {
                    break refusal;
                }
                std::thread::yield_now();
            };
            assert_eq!(refuser.port(), address.port());
            assert_eq!(quoted[..length], bytes[..64]);
        }
    }

    #[test]
    fn a_socket_alone_has_its_port_alone() {
        let first = Socket::bind_alone(ANY.parse().unwrap()).unwrap();
        let second = Socket::bind_alone(first.address().unwrap());
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_in_use_is_an_error_although_sockets_share_it() {
        let first = Socket::bind(ANY.parse().unwrap()).unwrap();
        let address = first.address().unwrap();
        let _second = Socket::bind(address).unwrap();
        assert_eq!(probe(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
