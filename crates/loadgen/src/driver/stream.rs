//! A connection over TCP or a Unix socket.

use std::{
    net::{SocketAddr, TcpStream},
    ops::Range,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{io::Errno, net::SendFlags};

use super::{Link, Protocol, Reply, arrivals::Arrivals, pending::Queue};
use crate::workload::{Ask, VALUE_BYTES_MAX};

/// Initial size of the receive buffer in bytes. It holds more than a burst of replies, and fifty
/// such buffers fit into a core's private cache.
const INPUT_BYTES: usize = 16 << 10;
/// Length of the longest reply in bytes: a value and its header.
const REPLY_BYTES_MAX: usize = VALUE_BYTES_MAX as usize + INPUT_BYTES;

/// A non-blocking connection with requests in flight.
pub struct Stream<P> {
    socket: OwnedFd,
    is_tcp: bool,
    /// If the kernel says when it received what is read.
    arrivals: Option<Arrivals>,
    protocol: P,
    /// Requests that the kernel has not accepted yet.
    out: Vec<u8>,
    written: usize,
    queue: Queue,
    input: Vec<u8>,
    /// Bytes that one read asks for at most.
    read_bytes: usize,
    start: usize,
    end: usize,
}

impl<P: Protocol> Stream<P> {
    /// Connects over TCP.
    pub fn tcp(address: SocketAddr) -> Result<Stream<P>> {
        let socket =
            TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Stream::over(socket.into(), true))
    }

    /// Connects to a Unix socket.
    pub fn unix(path: &Path) -> Result<Stream<P>> {
        let socket = UnixStream::connect(path)
            .with_context(|| format!("connecting to {}", path.display()))?;
        socket.set_nonblocking(true)?;
        Ok(Stream::over(socket.into(), false))
    }

    fn over(socket: OwnedFd, is_tcp: bool) -> Stream<P> {
        Stream {
            socket,
            is_tcp,
            arrivals: None,
            protocol: P::default(),
            out: Vec::with_capacity(INPUT_BYTES),
            written: 0,
            queue: Queue::default(),
            input: vec![0; INPUT_BYTES],
            read_bytes: usize::MAX,
            start: 0,
            end: 0,
        }
    }

    /// Where the next read puts what has arrived.
    #[inline]
    fn room(&self) -> Range<usize> {
        let most = self.end.saturating_add(self.read_bytes);
        self.end..self.input.len().min(most)
    }

    /// Makes room for a reply of `needed` bytes in total.
    fn make_room(&mut self, needed: usize) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() || self.start + needed > self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // A reply of unknown length needs at least one byte more than have arrived.
        let needed = needed.max(self.end + 1);
        if needed > self.input.len() {
            ensure!(needed <= REPLY_BYTES_MAX, "a reply of {needed} bytes");
            self.input.resize(needed.next_power_of_two(), 0);
        }
        Ok(())
    }
}

impl<P> AsFd for Stream<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<P: Protocol> Link for Stream<P> {
    #[inline]
    fn ask(&mut self, ask: &Ask, tag: u64) {
        self.queue.ask(&self.protocol, ask, tag, &mut self.out);
    }

    fn send(&mut self) -> Result<()> {
        while self.is_blocked() {
            match rustix::net::send(&self.socket, &self.out[self.written..], SendFlags::NOSIGNAL) {
                Ok(bytes) => self.written += bytes,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("sending requests"),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    #[inline]
    fn is_blocked(&self) -> bool {
        self.written < self.out.len()
    }

    #[inline]
    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        let room = self.room();
        let room = &mut self.input[room];
        let mut arrived_ns = 0;
        let read = match &mut self.arrivals {
            None => rustix::io::read(&self.socket, room),
            Some(arrivals) => match arrivals.read(&self.socket, room) {
                Ok(read) => {
                    arrived_ns = read.arrived_ns;
                    Ok(read.bytes)
                }
                Err(error) => Err(Errno::from_raw_os_error(error as i32)),
            },
        };
        match read {
            Ok(0) => bail!("the server closed the connection"),
            Ok(bytes) => self.end += bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error).context("receiving replies"),
        }
        let input = &self.input[self.start..self.end];
        let understood = match self.arrivals {
            None => self.queue.take(&self.protocol, input, on_step)?,
            Some(_) => self.queue.take(&self.protocol, input, &mut |reply| {
                on_step(Reply {
                    arrived_ns,
                    ..reply
                })
            })?,
        };
        self.start += understood.bytes;
        self.make_room(understood.needed)
    }

    fn expire(&mut self, _tag: u64, _on_step: &mut impl FnMut(Reply)) {}

    #[inline]
    fn under_way(&self) -> usize {
        self.queue.requests()
    }

    fn read_at_most(&mut self, bytes: usize) {
        self.read_bytes = bytes.max(1);
        if self.input.len() < bytes {
            self.input.resize(bytes, 0);
        }
    }

    fn note_arrivals(&mut self) -> Result<()> {
        ensure!(
            self.is_tcp,
            "the kernel tells no receive timestamps of Unix sockets"
        );
        self.arrivals = Some(Arrivals::of(&self.socket)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::text::Text, *};

    #[test]
    fn a_read_asks_for_no_more_than_it_may() {
        let (client, _server) = UnixStream::pair().unwrap();
        let mut stream = Stream::<Text>::over(client.into(), false);
        assert_eq!(stream.room(), 0..INPUT_BYTES);
        stream.read_at_most(7);
        assert_eq!(stream.room(), 0..7);
        stream.end = INPUT_BYTES - 3;
        assert_eq!(stream.room(), INPUT_BYTES - 3..INPUT_BYTES);
        stream.end = 0;
        // The buffer has room for the longest read from the start on.
        stream.read_at_most(1 << 20);
        assert_eq!(stream.room(), 0..1 << 20);
    }
}
