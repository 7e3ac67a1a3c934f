//! Byte streams: connections, whatever carries them.
//!
//! A worker holds each connection as a `Box<dyn ByteStream>`, and calls it once per burst to
//! receive and once to send. A stream never blocks, and says with [`ByteStream::wakeup`] how it is
//! waited for.
//!
//! | stream | listener | what it is |
//! | --- | --- | --- |
//! | [`SocketStream`](crate::tcp::SocketStream) | [`Listener`](crate::tcp::Listener) | sockets |
//! | [`LocalStream`] | [`LocalListener`] | in-process, with faults drawn from a seed |
//!
//! A stream can lie over another one, as one that is encrypted does (`glimmer_tls`).
//!
//! **Memory.** Bytes are received into the spare capacity of the caller's vector, and sent from
//! slices that are borrowed for the call: the caller owns all buffers, and no call allocates. A
//! socket copies each byte once, into or out of the kernel.

use std::io::{self, IoSlice};

use crate::Endpoint;
use crate::wakeup::Wakeup;
use glimmer_base::Region;

mod local;

pub use crate::signal::Ready;
pub use local::{LocalListener, LocalStream, StreamFaults};

/// What receiving brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes, which filled the buffer: more may wait.
    Full(usize),
    /// This many bytes, perhaps none, and no more wait; the stream's poller reports when they do.
    /// If it has reported a hang-up already, it will not do so again: the caller has to go on
    /// receiving until [`Received::Ended`]. If it has reported urgent data, more may wait unless
    /// this is nothing.
    Drained(usize),
    /// The peer sends no more, or the connection failed.
    Ended,
}

/// What sending achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything.
    All,
    /// This many bytes, perhaps none; the stream's poller reports when there is room for more.
    Part(usize),
    /// The connection failed.
    Failed,
}

/// How far a stream has come with what precedes its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshaking {
    /// Bytes can be received and sent.
    Done,
    /// The stream's poller reports when it is worth going on.
    Waits,
    /// It goes on with the next call.
    GoesOn,
    /// The connection failed.
    Failed,
}

/// One connection. Dropping it closes it: the peer receives what was sent, and then the end.
pub trait ByteStream: Send {
    /// Receives once, into the capacity that the buffer has to spare, which must not be nothing.
    fn receive(&mut self, into: &mut Vec<u8>) -> Received {
        self.receive_at_most(into, usize::MAX)
    }

    /// [`receive`](Self::receive) of at most this many bytes, at least one. Answers as if the
    /// buffer had no more to spare.
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received;

    /// Receives once to this region, and to `tail` what follows once the region is full. None if
    /// the stream has no system call for that: the caller receives into a buffer, and copies.
    fn receive_to(&mut self, _region: Region<'_>, _tail: &mut [u8]) -> Option<Received> {
        None
    }

    /// Sends once, as much as there is room for.
    fn send(&mut self, bytes: &[u8]) -> Sent {
        self.send_parts(&[IoSlice::new(bytes)])
    }

    /// Sends once the bytes of several slices, one after another, as much as there is room for. The
    /// slices may lie anywhere: when this returns, nothing refers to them.
    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent;

    /// How to wait for it: it is watched for edges
    /// ([`Poller::watch_edges`](crate::Poller::watch_edges)).
    fn wakeup(&self) -> Wakeup<'_>;

    /// What a stream without a descriptor is ready for now. One with a descriptor claims
    /// everything: its poller knows better.
    fn ready(&self) -> Ready;

    /// Sends no more: the peer receives what was sent, and then the end. Receiving goes on.
    fn finish(&mut self);

    /// Ends the connection at once. What has not arrived may be lost, and both ends of it fail.
    fn reset(self: Box<Self>);

    /// This end's name; none if it has none any more.
    fn local(&self) -> Option<Endpoint>;

    /// The other end's name; none if it is not connected any more.
    fn peer(&self) -> Option<Endpoint>;

    /// Whether something precedes its first byte: [`handshake`](Self::handshake) is called until it
    /// is done, and nothing is received or sent until then.
    fn is_handshaking(&self) -> bool {
        false
    }

    /// Goes on with that, without blocking.
    fn handshake(&mut self) -> Handshaking {
        Handshaking::Done
    }

    /// Bytes of buffers of its own that it holds, because its peer has yet to send the rest of a
    /// record or to take one.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The name in the certificate that the peer has shown, if that is verified.
    fn client_name(&self) -> Option<&str> {
        None
    }
}

/// Where connections come in.
pub trait StreamListener: Send {
    /// Takes the next connection, if one waits.
    ///
    /// Errors are the process's, because descriptors or memory ran out
    /// ([`io::ErrorKind::WouldBlock`] never appears).
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>>;

    /// How to wait for connections. It is readable for as long as one waits.
    fn wakeup(&self) -> Wakeup<'_>;

    /// The address at which others connect.
    fn local(&self) -> Option<Endpoint>;
}
