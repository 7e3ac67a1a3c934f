//! Floor 1: serves a few pages over HTTP/1.1 from one thread, which waits for nobody in particular.
//!
//! Requests are GET and HEAD without a body. Everything that a client may hold is bounded: the
//! number of connections, the bytes of a request, and the time that it may take to send one or to
//! receive the reply. The owner of the [`Server`] calls [`Server::turn`] in a loop, and answers
//! each request where it stands.
//!
//! | file | idea |
//! | --- | --- |
//! | `request` | what a client asks for |
//! | `reply`, `status` | what it gets |
//! | `connection` | one client's bytes |
//! | `server` | the sockets, and who waits for them |

mod connection;
mod reply;
mod request;
mod server;
mod status;

pub use reply::Reply;
pub use request::Request;
pub use server::{Server, Waker};
pub use status::Status;
