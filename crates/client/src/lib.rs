//! Floor 2: a client of the native protocol (`docs/native-protocol.md`). Every request goes
//! straight to the core that owns its key. The client sends several requests in one segment batch,
//! which crosses the kernel as one datagram. It needs neither a connection nor a runtime.
//!
//! [`Client`] is the blocking client: it owns a packet device, and each call returns the answer.
//! With the feature `tokio`, any number of tasks can share a `nonblocking::Client`. Both are built
//! on [`Session`], which has neither socket nor clock: requests and received datagrams go in,
//! segment batches to send and answers come out. Any event loop can drive a session. Tests drive it
//! in virtual time over a simulated, lossy network.
//!
//! Both clients use UDP sockets unless they are given another [transport](transports):
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use glimmer_client::{Client, Settings, transports};
//!
//! // Past the kernel's stack at the interface eth0, with the feature `xdp`.
//! let transport = transports::named("xdp:eth0")?;
//! let mut client = Client::connect_over(transport, "10.0.0.1:11300", Settings::default())?;
//! client.put(b"greeting", b"hello", 0, 60)?;
//! # Ok(())
//! # }
//! ```
//!
//! AF_XDP (`xdp:IF`, feature `xdp`) needs root, and takes what arrives for the clients' ports from
//! the interface. The kernel finds the way to a server: what is sent before its first answer goes
//! by the kernel's stack. DPDK (`dpdk:ip=ADDRESS/BITS EAL ARGUMENTS`, feature `dpdk`) takes the NIC
//! from the kernel and has an address of its own; it asks for the server's hardware address itself,
//! and looks for answers without a pause while requests are in flight. Give one transport to all
//! clients of a process: an interface is taken once. `docs/transports.md` says what both need.
//!
//! | file | idea |
//! | --- | --- |
//! | [`client`](Client) | blocking client: sessions, packet devices and a clock |
//! | `nonblocking` | client for tasks on tokio |
//! | [`placement`](Placement) | which of several servers has a key |
//! | [`session`](Session) | requests in flight: what is sent when, and which answer is whose |
//! | [`settings`](Settings) | timeouts and other behaviour of a session |
//! | `in_flight` | one request in flight |
//! | `health` | whether a server answers at all |
//! | `download` | a reply that arrives in fragments |
//! | `channel` | one core of the server: its port and the mutations in flight to it |
//! | `congestion` | how many requests may be in flight at once |
//! | `outbound` | segment batches of requests for one port |
//! | `shared_datagram` | datagrams that carry several requests |
//! | `process` | state that must not be shared across a fork |
//! | `operation` | the request of each operation |
//! | `answer` | the result of each operation |
//! | `error` | the errors of each operation |
//! | [`boundary`] | what other languages need: no panics, and a look at signals |

mod answer;
pub mod boundary;
mod channel;
mod client;
mod congestion;
mod download;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod in_flight;
mod location;
#[cfg(feature = "tokio")]
pub mod nonblocking;
mod operation;
mod outbound;
mod placement;
mod process;
mod session;
mod settings;
mod shared_datagram;

pub use answer::Item;
pub use client::Client;
pub use error::{ConnectError, CountError, GetError, RemoveError, StoreError};
pub use placement::{Member, Placement};
pub use session::{Ask, Failure, Session, SessionCounters, What};
pub use settings::Settings;

pub use glimmer_proto::StoreMode;
pub use glimmer_proto::native::directory::Direction;
pub use glimmer_proto::native::request::{Change, Exptime};
pub use glimmer_proto::native::{Directory, Reply, Status};
pub use glimmer_transport::packet::PacketTransport;
pub use glimmer_transport::transports;
