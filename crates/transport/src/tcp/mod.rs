//! Streams over TCP: a listener per worker, and connections that never block.

mod listener;
mod liveness;
mod pacing;
mod stream;

pub use listener::{Listener, probe};
pub use liveness::Liveness;
pub use stream::SocketStream;
/// The name until its users take streams of any kind.
pub use stream::SocketStream as Stream;
