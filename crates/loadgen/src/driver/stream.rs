//! A connection over TCP or a Unix socket.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    ops::Range,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use glimmer_connect::{Admission, ELSEWHERE, Sealed, Session};
use glimmer_transport::Wakeup;
use rustix::{io::Errno, net::SendFlags};

use super::{Awaited, Link, Protocol, Reply, arrivals::Arrivals, pending::Queue};
use crate::workload::{Ask, VALUE_BYTES_MAX};

/// Initial size of the receive buffer in bytes. It holds more than a burst of replies, and fifty
/// such buffers fit into a core's private cache.
const INPUT_BYTES: usize = 16 << 10;
/// Length of the longest reply in bytes: a value and its header.
const REPLY_BYTES_MAX: usize = VALUE_BYTES_MAX as usize + INPUT_BYTES;

const CLOSED: &str = "the server closed the connection";
/// A server that is silent for this long while a connection is established has failed.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// A non-blocking connection with requests in flight.
pub struct Stream<P> {
    socket: OwnedFd,
    is_tcp: bool,
    /// If the kernel says when it received what is read.
    arrivals: Option<Arrivals>,
    protocol: P,
    /// The encryption, if there is one.
    session: Option<Session>,
    /// Requests that the kernel has not accepted yet; with encryption, those that are not encrypted
    /// yet.
    out: Vec<u8>,
    written: usize,
    queue: Queue,
    input: Vec<u8>,
    /// Bytes that one read asks for at most.
    read_bytes: usize,
    start: usize,
    end: usize,
    /// Whether a reply has arrived.
    heard: bool,
}

impl<P: Protocol> Stream<P> {
    /// Connects over TCP, with TLS and a login where they are wanted.
    pub fn tcp(address: SocketAddr, admission: &Admission) -> Result<Stream<P>> {
        let connecting = || format!("connecting to {address}");
        let socket = TcpStream::connect_timeout(&address, SILENCE_MAX)
            .map_err(|error| anyhow!("cannot connect to {address}: {error}; {ELSEWHERE}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        socket.set_write_timeout(Some(SILENCE_MAX))?;
        let session = match &admission.tls {
            Some(tls) => {
                let host = admission.host.clone();
                let host = host.unwrap_or_else(|| address.ip().to_string());
                let mut sealed = Sealed::begin(tls, &host, &socket).with_context(connecting)?;
                greet::<P>(admission, &mut sealed).with_context(connecting)?;
                Some(sealed.into_session())
            }
            None => {
                greet::<P>(admission, &mut &socket).with_context(connecting)?;
                None
            }
        };
        socket.set_nonblocking(true)?;
        Ok(Stream::over(socket.into(), true, session))
    }

    /// Connects to a Unix socket, with a login where one is wanted.
    pub fn unix(path: &Path, admission: &Admission) -> Result<Stream<P>> {
        let connecting = || format!("connecting to {}", path.display());
        let socket = UnixStream::connect(path).map_err(|error| {
            anyhow!("cannot connect to {}: {error}; {ELSEWHERE}", path.display())
        })?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        greet::<P>(admission, &mut &socket).with_context(connecting)?;
        socket.set_nonblocking(true)?;
        Ok(Stream::over(socket.into(), false, None))
    }

    fn over(socket: OwnedFd, is_tcp: bool, session: Option<Session>) -> Stream<P> {
        Stream {
            socket,
            is_tcp,
            arrivals: None,
            protocol: P::default(),
            session,
            out: Vec::with_capacity(INPUT_BYTES),
            written: 0,
            queue: Queue::default(),
            input: vec![0; INPUT_BYTES],
            read_bytes: usize::MAX,
            start: 0,
            end: 0,
            heard: false,
        }
    }

    /// Where the next read puts what has arrived.
    #[inline]
    fn room(&self) -> Range<usize> {
        let most = self.end.saturating_add(self.read_bytes);
        self.end..self.input.len().min(most)
    }

    /// This many bytes have been received.
    #[inline]
    fn arrive(&mut self, bytes: usize) -> Result<()> {
        let Some(session) = &mut self.session else {
            self.end += bytes;
            return Ok(());
        };
        let (input, end) = (&mut self.input, &mut self.end);
        session.received(bytes, &mut |data| {
            let needed = *end + data.len();
            if needed > input.len() {
                input.resize(needed.next_power_of_two(), 0);
            }
            input[*end..needed].copy_from_slice(data);
            *end = needed;
        })
    }

    /// What is said of a server that closes the connection, or that speaks TLS unasked.
    fn closed(&self) -> &'static str {
        let input = &self.input[self.start..self.end];
        let hint = || glimmer_connect::hint(input, self.session.is_some());
        let hint = (!self.heard).then(hint).flatten();
        hint.unwrap_or(CLOSED)
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

/// Begins as the protocol does, and says who the client is, if that is wanted.
fn greet<P: Protocol>(admission: &Admission, stream: &mut (impl Read + Write)) -> Result<()> {
    P::begin(stream)?;
    let Some(login) = &admission.login else {
        return Ok(());
    };
    let speech = P::LOGIN.context("this protocol has no login: leave --auth-user out")?;
    login.say(speech, stream)
}

impl<P> Awaited for Stream<P> {
    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.socket.as_fd())
    }
}

impl<P: Protocol> Link for Stream<P> {
    #[inline]
    fn ask(&mut self, ask: &Ask, tag: u64) {
        self.queue.ask(&self.protocol, ask, tag, &mut self.out);
    }

    fn send(&mut self) -> Result<()> {
        if let Some(session) = &mut self.session {
            session.seal(&self.out)?;
            self.out.clear();
        }
        loop {
            let leaving = match &self.session {
                None => &self.out[self.written..],
                Some(session) => session.leaving(),
            };
            if leaving.is_empty() {
                break;
            }
            match (
                rustix::net::send(&self.socket, leaving, SendFlags::NOSIGNAL),
                &mut self.session,
            ) {
                (Ok(bytes), None) => self.written += bytes,
                (Ok(bytes), Some(session)) => session.sent(bytes),
                (Err(Errno::AGAIN), _) => return Ok(()),
                (Err(Errno::INTR), _) => {}
                (Err(error), _) => return Err(error).context("sending requests"),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    #[inline]
    fn is_blocked(&self) -> bool {
        let leaves = |session: &Session| !session.leaving().is_empty();
        self.written < self.out.len() || self.session.as_ref().is_some_and(leaves)
    }

    #[inline]
    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        let room = match &mut self.session {
            None => {
                let room = self.room();
                &mut self.input[room]
            }
            Some(session) => {
                let bytes = self.read_bytes.min(self.input.len());
                let room = session.room(bytes);
                let bytes = room.len().min(self.read_bytes);
                &mut room[..bytes]
            }
        };
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
            Ok(0) | Err(Errno::CONNRESET) => bail!(self.closed()),
            Ok(bytes) => self.arrive(bytes)?,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error).context("receiving replies"),
        }
        let input = &self.input[self.start..self.end];
        let understood = match self.arrivals {
            None => self.queue.take(&self.protocol, input, on_step),
            Some(_) => self.queue.take(&self.protocol, input, &mut |reply| {
                on_step(Reply {
                    arrived_ns,
                    ..reply
                })
            }),
        };
        let understood = match understood {
            Err(_) if !self.heard && self.closed() != CLOSED => bail!(self.closed()),
            understood => understood?,
        };
        self.heard |= understood.bytes > 0;
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
        let mut stream = Stream::<Text>::over(client.into(), false, None);
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
