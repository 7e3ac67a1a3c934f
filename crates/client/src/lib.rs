//! Floor 2: a client of the native protocol (`docs/native-protocol.md`). Every request goes straight to the core that owns its key, in trains that
//! cross the kernel as one datagram; no connection, no runtime.
//!
//! [`Client`] is a client that waits: it has a socket, and each call returns with the answer. [`Session`] is what lies beneath: it has neither socket
//! nor clock. Requests and received datagrams go in, trains to be sent and answers come out, so that it can be driven by any loop, and by tests in
//! which time is a number and the network loses what it is told to.
//!
//! | file | idea |
//! | --- | --- |
//! | [`client`](Client) | a session, a socket and a clock |
//! | [`session`](Session) | requests under way: what is sent when, and which answer belongs to which |
//! | `flight` | one request under way |
//! | `lane` | one core of the server: its port, and the mutations under way to it |
//! | `outbound` | trains of requests for the same port |
//! | `error` | how each operation fails |

mod client;
mod error;
mod flight;
mod lane;
mod outbound;
mod session;

pub use client::{Client, Item};
pub use error::{ConnectError, CountError, GetError, RemoveError, StoreError};
pub use session::{Ask, Failure, Figures, Session, Settings, What};

pub use glimmer_proto::StoreMode;
pub use glimmer_proto::native::request::Change;
pub use glimmer_proto::native::{Reply, Status};
