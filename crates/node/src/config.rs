//! What a node is started with, and why it may not start.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use glimmer_base::Seed;
use glimmer_base::limits::{BUFFER_BYTES, BURST_CONNECTIONS_MAX, REPLY_BYTES_HIGH};
use glimmer_proto::text::Limits;

use crate::clock::Clock;

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Addresses to listen on. A port of 0 is replaced by a free one.
    pub listen: Vec<SocketAddr>,
    /// Connections that may wait to be accepted, per worker and address.
    pub backlog: i32,
    /// Connections that may be open; further ones are told so and closed.
    pub connections_max: usize,
    /// A connection that neither sends nor takes a byte for so long is closed; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Bytes that each worker may use for what it receives, what it replies and what it sends across to other workers. Raised to
    /// [`NodeConfig::buffer_bytes_min`].
    pub buffer_bytes: usize,
    /// What the text protocol accepts.
    pub limits: Limits,
    /// The keyhash's seed, which the engines use too.
    pub seed: Seed,
    /// The core that each worker is pinned to; empty: none is.
    pub cores: Vec<usize>,
    /// The server's clock.
    pub clock: Clock,
}

impl NodeConfig {
    /// The least that `buffer_bytes` can be: a full burst of ordinary buffers, one largest item being received and one
    /// being sent.
    pub fn buffer_bytes_min(limits: &Limits) -> usize {
        2 * BURST_CONNECTIONS_MAX * BUFFER_BYTES + REPLY_BYTES_HIGH + 2 * limits.item_bytes_max
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason; [`io::ErrorKind::AddrInUse`] if somebody else listens there.
        source: io::Error,
    },
    /// No thread, or none of the descriptors that a worker needs, could be had.
    #[error("cannot start a worker: {0}")]
    Worker(#[from] io::Error),
    /// A worker cannot be pinned to its core.
    #[error("cannot run on core {core}: {source}")]
    Core {
        /// The core's number.
        core: usize,
        /// The reason.
        source: io::Error,
    },
}
