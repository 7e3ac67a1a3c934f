//! What stands for a connection that visits another worker, at either end.

use std::io::IoSlice;

use glimmer_transport::stream::{ByteStream, Ready};
use glimmer_transport::{Endpoint, Received, Sent, Wakeup};

use super::key::ConnectionKey;

/// How a worker comes to serve a connection that is at home elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// Its home, and what it is called there.
    pub worker: usize,
    pub key: ConnectionKey,
    /// It is served for one large request, and otherwise for what has arrived.
    pub is_for_one: bool,
    /// It has had the request for which it came, or its turn.
    pub is_over: bool,
    /// Bytes that it held when it left.
    pub away_bytes: usize,
    /// Since when its request is timed, in nanoseconds, if it is.
    pub timed_since_ns: Option<u64>,
}

/// The stream of a connection that is with another worker.
pub(super) struct Absent;

impl ByteStream for Absent {
    fn receive_at_most(&mut self, _into: &mut Vec<u8>, _bytes_max: usize) -> Received {
        Received::Drained(0)
    }

    fn send_parts(&mut self, _parts: &[IoSlice<'_>]) -> Sent {
        Sent::Part(0)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Poll
    }

    fn ready(&self) -> Ready {
        Ready::default()
    }

    fn finish(&mut self) {}

    fn reset(self: Box<Self>) {}

    fn local(&self) -> Option<Endpoint> {
        None
    }

    fn peer(&self) -> Option<Endpoint> {
        None
    }
}
