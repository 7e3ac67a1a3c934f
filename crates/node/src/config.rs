//! What a node is started with, and why it may not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use glimmer_base::KeyHasher;
use glimmer_base::limits::{
    BEGUN_VALUES_BYTES, BUFFER_BYTES, BURST_CONNECTIONS_MAX, REPLY_BYTES_HIGH,
};
use glimmer_dispatch::{Policy, Settings};
use glimmer_engine::Rebuild;
use glimmer_proto::{Accepts, Limits};
use glimmer_transport::Endpoint;
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::stream::StreamListener;
use glimmer_transport::tcp::Liveness;

use crate::admin::observe::Observers;
use crate::busy_poll::BusyPoll;
use crate::clock::Clock;
use crate::packet::native::NativeConfig;
use crate::permits::Permits;
use crate::tenants::Tenants;

/// Share of a worker's buffers that native clients may have it keep for longer than a turn.
const NATIVE_BUFFER_SHARE: usize = 2;

/// Where connections come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port; port 0 is replaced by a free one.
    Tcp(SocketAddr),
    /// A Unix socket at a path, with its permissions as `chmod` takes them.
    Unix {
        /// Where the socket is.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl From<Endpoint> for Address {
    fn from(endpoint: Endpoint) -> Address {
        match endpoint {
            Endpoint::Ip(address) => Address::Tcp(address),
            Endpoint::Unix(path) => Address::Unix {
                path: path.unwrap_or_default(),
                mode: 0,
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

/// What encrypts connections.
pub trait Encryption: fmt::Debug + Send + Sync {
    /// The listener at the address of this index ([`NodeConfig::listen`]), with connections that
    /// are encrypted if those at this address are to be.
    fn over(&self, listener: Box<dyn StreamListener>, index: usize) -> Box<dyn StreamListener>;

    /// Bytes of memory that connections hold for it.
    fn bytes(&self) -> usize;

    /// The most of them. A connection that asks for more fails.
    fn bytes_max(&self) -> usize;

    /// A connection was closed for the memory that it held.
    fn note_closed(&self);
}

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where to listen; nowhere is allowed.
    pub listen: Vec<Address>,
    /// The name that each address of `listen` stands for: of the addresses of one name, those that
    /// are in use are passed over if another one is free. Empty: each is a name of its own.
    pub listen_names: Vec<usize>,
    /// Addresses to listen on for UDP; port 0 is replaced by a free one.
    pub udp: Vec<SocketAddr>,
    /// The same for the addresses of `udp`.
    pub udp_names: Vec<usize>,
    /// The native protocol, if it is served.
    pub native: Option<NativeConfig>,
    /// What carries the datagrams of `udp` and `native`.
    pub packets: Arc<dyn PacketTransport>,
    /// How requests are spread over the workers.
    pub dispatch: Arc<dyn Policy>,
    /// The settings of a policy that the node is switched to.
    pub dispatch_settings: Settings,
    /// How long clients wait between two changes of the plan, in milliseconds; see
    /// [`glimmer_base::limits::DISPATCH_PAUSE_MS`].
    pub dispatch_pause_ms: u64,
    /// Requests that take as long as this, in milliseconds, are slow; 0: none.
    pub slow_ms: u64,
    /// What changes the access mode of the engines; `None`: it stays.
    pub access_modes: Option<Arc<dyn Rebuild>>,
    /// Whether workers look for something to do instead of sleeping.
    pub busy_poll: BusyPoll,
    /// When the kernel gives up a connection whose client has vanished.
    pub liveness: Liveness,
    /// Connections that may wait to be accepted, per worker and address.
    pub backlog: i32,
    /// Connections that may be open.
    pub connections_max: usize,
    /// Whether a connection beyond them is told so and closed. If not, it waits until another one
    /// is closed.
    pub rejects_beyond_max: bool,
    /// What encrypts connections; `None`: nothing does.
    pub encryption: Option<Arc<dyn Encryption>>,
    /// Requests of one connection that are executed before the other connections have their turn;
    /// at most [`glimmer_base::limits::TURN_REQUESTS_MAX`].
    pub turn_requests: u32,
    /// Bytes of large values that are copied, sent or received at a time beside small requests; see
    /// [`glimmer_base::limits::SLICE_BYTES`].
    pub slice_bytes: usize,
    /// A connection that neither sends a byte nor has one to be sent for so long is closed; `None`:
    /// never.
    pub idle_timeout: Option<Duration>,
    /// Bytes that each worker may use for what it receives, what it replies and what it sends
    /// across to other workers. Raised to [`NodeConfig::buffer_bytes_min`].
    pub buffer_bytes: usize,
    /// Which protocols connections and datagrams may speak.
    pub accepts: Accepts,
    /// The same for the connections of each address of `listen`; `accepts` for those that are not
    /// named here.
    pub accepts_at: Vec<Accepts>,
    /// What the protocols accept.
    pub limits: Limits,
    /// Which administrative commands clients may use.
    pub permits: Permits,
    /// Those who are shown what happens; the engines report to them.
    pub observers: Observers,
    /// Whether all items may be listed from the start, without `lru_crawler enable`.
    pub crawler: bool,
    /// Whether clients have to authenticate.
    pub locked: bool,
    /// Users with rights and limits, and limits of addresses.
    pub tenants: Arc<Tenants>,
    /// What makes keyhashes of keys, which the engines use too.
    pub hasher: KeyHasher,
    /// The core that each worker is pinned to; empty: none is.
    pub cores: Vec<usize>,
    /// What tells the workers the time.
    pub clock: Arc<dyn Clock>,
}

impl NodeConfig {
    /// The least that `buffer_bytes` can be: what a turn takes, replies up to the mark that one
    /// connection has waiting, and one largest item being received.
    pub fn buffer_bytes_min(limits: &Limits) -> usize {
        Self::turn_bytes(limits) + REPLY_BYTES_HIGH + limits.item_bytes_max
    }

    /// As much as `buffer_bytes` should be where there is memory for it: the least, and the first
    /// bytes of values that wait until another one has been received.
    pub fn buffer_bytes_ample(limits: &Limits) -> usize {
        Self::buffer_bytes_min(limits) + limits.item_bytes_max.min(BEGUN_VALUES_BYTES)
    }

    /// Bytes of one worker's buffers.
    pub(crate) fn worker_bytes(&self) -> usize {
        let bytes_min = NodeConfig::buffer_bytes_min(&self.limits);
        self.buffer_bytes.max(bytes_min)
    }

    /// What one worker may keep of them for native clients for longer than a turn.
    pub(crate) fn native_bytes(&self) -> usize {
        self.worker_bytes() / NATIVE_BUFFER_SHARE
    }

    /// What a turn takes of it: a full burst of ordinary buffers, and one largest item being sent.
    pub(crate) fn turn_bytes(limits: &Limits) -> usize {
        2 * BURST_CONNECTIONS_MAX * BUFFER_BYTES + limits.item_bytes_max
    }
}

/// What to do about an address that cannot be bound.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            "; give -l an address that this machine has (`ip address` lists them)"
        }
        io::ErrorKind::PermissionDenied => {
            "; choose a port from 1024 on, or a folder that the server's user may write"
        }
        io::ErrorKind::NotFound => "; make its folder first",
        _ => "",
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be bound for UDP.
    #[error("cannot listen on {address} for UDP: {source}{}", hint(source))]
    Udp {
        /// The address.
        address: SocketAddr,
        /// The reason; [`io::ErrorKind::AddrInUse`] if somebody else does.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: Address,
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
