//! What stands for a connection that visits another worker, at either end.

use std::io::IoSlice;

use glimmer_transport::stream::{ByteStream, Ready};
use glimmer_transport::{Endpoint, Received, Sent, Wakeup};

use super::key::ConnectionKey;

/// Where a visitor is at home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    pub worker: usize,
    pub key: ConnectionKey,
    /// It is served for one large request, and otherwise for what has arrived.
    pub is_for_one: bool,
    /// Bytes that it held when it left.
    pub away_bytes: usize,
}

/// The stream of a connection that is with another worker.
pub(super) struct Absent;

impl ByteStream for Absent {
    fn receive_at_most(&mut self, _into: &mut Vec<u8>, _bytes_max: usize) -> Received {
        Received::Drained(0)
    }

    fn send_parts(&self, _parts: &[IoSlice<'_>]) -> Sent {
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
