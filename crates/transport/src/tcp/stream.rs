//! One connection.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use glimmer_base::Region;
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendFlags, sockopt};

use crate::Endpoint;
use crate::packet::Wakeup;
use crate::stream::{ByteStream, Ready, Received, Sent};
use crate::sys;

/// How a socket sends: it neither blocks nor raises a signal.
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// What a system call achieved that was to send this many bytes.
#[inline]
fn outcome(sent: rustix::io::Result<usize>, bytes: usize) -> Sent {
    match sent {
        Ok(n) if n == bytes => Sent::All,
        Ok(n) => Sent::Part(n),
        Err(Errno::AGAIN) => Sent::Part(0),
        Err(_) => Sent::Failed,
    }
}

/// What a system call brought that had room for this many bytes.
#[inline]
fn received(room: usize, mut receive: impl FnMut() -> rustix::io::Result<usize>) -> Received {
    loop {
        return match receive() {
            Ok(0) => Received::Ended,
            Ok(bytes) if bytes < room => Received::Drained(bytes),
            Ok(bytes) => Received::Full(bytes),
            Err(Errno::AGAIN) => Received::Drained(0),
            Err(Errno::INTR) => continue,
            Err(_) => Received::Ended,
        };
    }
}

/// A connected stream socket, over TCP or a Unix socket.
#[derive(Debug)]
pub struct SocketStream(OwnedFd);

impl SocketStream {
    pub(super) fn new(fd: OwnedFd) -> SocketStream {
        SocketStream(fd)
    }

    /// Receives once, into the spare capacity of the buffer, which must not be empty.
    #[inline]
    pub fn receive(&self, into: &mut Vec<u8>) -> Received {
        self.receive_at_most(into, usize::MAX)
    }

    /// [`receive`](Self::receive) of at most this many bytes.
    #[inline]
    pub fn receive_at_most(&self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        let room = (into.capacity() - into.len()).min(bytes_max);
        debug_assert!(
            room > 0,
            "an empty receive looks like the end of the stream"
        );
        received(room, || sys::stream::receive(&self.0, into, bytes_max))
    }

    /// Sends once, as much as fits into the socket's buffer.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> Sent {
        loop {
            return match net::send(&self.0, bytes, SEND_FLAGS) {
                Err(Errno::INTR) => continue,
                sent => outcome(sent, bytes.len()),
            };
        }
    }

    /// Sends once the bytes of several slices, as much as fits into the socket's buffer.
    pub fn send_parts(&self, parts: &[IoSlice<'_>]) -> Sent {
        let bytes = parts.iter().map(|part| part.len()).sum();
        loop {
            let mut no_control = SendAncillaryBuffer::default();
            return match net::sendmsg(&self.0, parts, &mut no_control, SEND_FLAGS) {
                Err(Errno::INTR) => continue,
                sent => outcome(sent, bytes),
            };
        }
    }
}

impl AsFd for SocketStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes over a connected socket. It may be a blocking one: every call asks not to block.
impl From<OwnedFd> for SocketStream {
    fn from(socket: OwnedFd) -> SocketStream {
        SocketStream(socket)
    }
}

/// As with any socket, dropping it with unread bytes resets the connection.
impl ByteStream for SocketStream {
    #[inline]
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        SocketStream::receive_at_most(self, into, bytes_max)
    }

    fn receive_to(&mut self, mut region: Region<'_>, tail: &mut [u8]) -> Option<Received> {
        let room = region.bytes() + tail.len();
        let receive = || sys::stream::receive_to(&self.0, &mut region, tail);
        Some(received(room, receive))
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Sent {
        SocketStream::send(self, bytes)
    }

    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        SocketStream::send_parts(self, parts)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.as_fd())
    }

    fn ready(&self) -> Ready {
        Ready {
            readable: true,
            writable: true,
            hung_up: true,
        }
    }

    fn finish(&mut self) {
        // This fails if the connection has failed already.
        let _ = net::shutdown(&self.0, net::Shutdown::Write);
    }

    fn reset(self: Box<Self>) {
        // With a linger time of zero, closing the socket resets the connection; otherwise it is
        // closed normally.
        let _ = sockopt::set_socket_linger(&self.0, Some(Duration::ZERO));
    }

    fn local(&self) -> Option<Endpoint> {
        Endpoint::local(self)
    }

    fn peer(&self) -> Option<Endpoint> {
        Endpoint::peer(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Listener, Poller};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A stream as a server sees it, its peer, and a poller that watches the stream.
    fn connected() -> (SocketStream, TcpStream, Poller) {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
        let mut poller = Poller::new(8).unwrap();
        poller.watch_level(&listener, 0).unwrap();
        let peer = TcpStream::connect(listener.address().unwrap()).unwrap();
        poller.wait(None).unwrap();
        let stream = listener.accept().unwrap().expect("a connection waits");
        poller.forget(&listener).unwrap();
        poller.watch_edges(&stream, 1).unwrap();
        (stream, peer, poller)
    }

    fn wait_readable(poller: &mut Poller) {
        loop {
            poller.wait(None).unwrap();
            if (0..poller.ready_count()).any(|index| poller.ready(index).readable) {
                return;
            }
        }
    }

    #[test]
    fn bytes_arrive_then_the_end() {
        let (stream, mut peer, mut poller) = connected();
        let mut buffer = Vec::with_capacity(4);
        assert_eq!(stream.receive(&mut buffer), Received::Drained(0));
        peer.write_all(b"abcdef").unwrap();
        wait_readable(&mut poller);
        assert_eq!(stream.receive(&mut buffer), Received::Full(4));
        buffer.clear();
        assert_eq!(stream.receive(&mut buffer), Received::Drained(2));
        assert_eq!(buffer, b"ef");
        drop(peer);
        wait_readable(&mut poller);
        assert!((0..poller.ready_count()).any(|index| poller.ready(index).hung_up));
        assert_eq!(stream.receive(&mut buffer), Received::Ended);
    }

    #[test]
    fn a_receive_ends_in_front_of_urgent_data_which_is_reported() {
        let (stream, mut peer, mut poller) = connected();
        peer.write_all(b"before").unwrap();
        net::send(&peer, b"!", SendFlags::OOB).unwrap();
        peer.write_all(b"behind").unwrap();
        wait_readable(&mut poller);
        assert!((0..poller.ready_count()).any(|index| poller.ready(index).urgent));
        let mut buffer = Vec::with_capacity(100);
        assert_eq!(stream.receive(&mut buffer), Received::Drained(6));
        assert_eq!(stream.receive(&mut buffer), Received::Drained(6));
        assert_eq!(stream.receive(&mut buffer), Received::Drained(0));
        assert_eq!(buffer, b"beforebehind");
    }

    #[test]
    fn a_full_socket_takes_a_part_and_reports_room() {
        let (stream, mut peer, mut poller) = connected();
        let block = vec![b'x'; 1 << 20];
        let mut sent = 0;
        let last = loop {
            match stream.send(&block) {
                Sent::All => sent += block.len(),
                Sent::Part(n) => break sent + n,
                Sent::Failed => panic!("the peer is there"),
            }
        };
        let mut received = 0;
        let mut sink = vec![0; 1 << 20];
        while received < last {
            received += peer.read(&mut sink).unwrap();
        }
        loop {
            poller.wait(None).unwrap();
            if (0..poller.ready_count()).any(|index| poller.ready(index).writable) {
                break;
            }
        }
        assert_eq!(stream.send(b"more"), Sent::All);
        drop(peer);
    }
}
