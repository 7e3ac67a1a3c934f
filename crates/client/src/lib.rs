//! Floor 2: a client of the native protocol (`docs/native-protocol.md`). Every request goes
//! straight to the core that owns its key. The client sends several requests in one segment batch,
//! which crosses the kernel as one datagram. It needs neither a connection nor a runtime.
//!
//! [`Client`] is the blocking client: it owns a socket, and each call returns the answer. With the
//! feature `tokio`, any number of tasks can share a `nonblocking::Client`. Both are built on
//! [`Session`], which has neither socket nor clock: requests and received datagrams go in, segment
//! batches to send and answers come out. Any event loop can drive a session. Tests drive it in
//! virtual time over a simulated, lossy network.
//!
//! | file | idea |
//! | --- | --- |
//! | [`client`](Client) | blocking client: sessions, sockets and a clock |
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
//! | [`boundary`] | keeps panics out of other languages |

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
