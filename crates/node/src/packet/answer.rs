//! The reply to a datagram of memcached's UDP protocol.

use glimmer_base::limits::REPLY_DATAGRAMS_MAX;
use glimmer_proto::udp::PAYLOAD_BYTES;
use std::net::SocketAddr;

/// Instead of a reply of more than [`REPLY_DATAGRAMS_MAX`] datagrams, or one that there is no
/// memory for.
pub(crate) const TOO_LARGE: &[u8] = b"SERVER_ERROR reply too large for UDP\r\n";

/// What is to be sent to whom, for one datagram.
pub(crate) struct Answer {
    /// The number of the worker's packet device at which it came in.
    pub source: usize,
    pub peer: SocketAddr,
    /// The request's id.
    pub id: u16,
    pub reply: Vec<u8>,
}

/// Whether a reply takes more datagrams than it may.
pub(crate) fn is_too_large(reply: &[u8]) -> bool {
    reply.len() > REPLY_DATAGRAMS_MAX * PAYLOAD_BYTES
}

/// The reply, or an error line if it takes too many datagrams.
pub(crate) fn bounded(reply: &[u8]) -> &[u8] {
    if is_too_large(reply) {
        TOO_LARGE
    } else {
        reply
    }
}
