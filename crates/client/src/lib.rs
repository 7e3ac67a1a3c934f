//! Floor 2: a client of the native protocol (`docs/native-protocol.md`). Every request goes straight to the core that owns its key, in segment batches that
//! cross the kernel as one datagram; no connection, no runtime.
//!
//! [`Client`] is a client that waits: it has a socket, and each call returns with the answer. With the feature `tokio`, `nonblocking::Client` is one for
//! any number of tasks. [`Session`] is what lies beneath: it has neither socket
//! nor clock. Requests and received datagrams go in, segment batches to be sent and answers come out, so that it can be driven by any loop, and by tests in
//! which time is a number and the network loses what it is told to.
//!
//! | file | idea |
//! | --- | --- |
//! | [`client`](Client) | sessions, sockets and a clock |
//! | `nonblocking` | the same for tasks on tokio |
//! | [`placement`](Placement) | which of several servers has a key |
//! | [`session`](Session) | requests under way: what is sent when, and which answer belongs to which |
//! | [`settings`](Settings) | how it behaves |
//! | `flight` | one request under way |
//! | `health` | whether a server answers at all |
//! | `lane` | one core of the server: its port, and the mutations under way to it |
//! | `pace` | how many requests may be under way at once |
//! | `outbound` | segment batches of requests for the same port |
//! | `parcel` | datagrams with several requests |
//! | `process` | what belongs to one process alone |
//! | `operation` | what each operation asks |
//! | `answer` | what each operation returns |
//! | `error` | how each operation fails |
//! | [`boundary`] | panics that must not reach other languages |

mod answer;
pub mod boundary;
mod client;
mod error;
mod flight;
mod health;
mod lane;
#[cfg(feature = "tokio")]
pub mod nonblocking;
mod operation;
mod outbound;
mod pace;
mod parcel;
mod placement;
mod process;
mod session;
mod settings;

pub use answer::Item;
pub use client::Client;
pub use error::{ConnectError, CountError, GetError, RemoveError, StoreError};
pub use placement::{Member, Placement};
pub use session::{Ask, Failure, Figures, Session, What};
pub use settings::Settings;

pub use glimmer_proto::StoreMode;
pub use glimmer_proto::native::directory::Direction;
pub use glimmer_proto::native::request::Change;
pub use glimmer_proto::native::{Directory, Reply, Status};
