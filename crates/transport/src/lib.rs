//! Floor 1: bytes in and out of the machine. Streams over TCP and Unix sockets, datagrams over UDP, readiness for many of them at once, a bell that wakes a
//! sleeping thread, the choice of the core a thread runs on, and freed memory back to the kernel. Nothing here knows a protocol or a store, and nothing blocks
//! except [`Poller::wait`].

#![deny(unsafe_code)]

mod affinity;
mod bell;
mod endpoint;
mod poller;
mod sys;
pub mod tcp;
pub mod udp;
pub mod unix;

pub use affinity::{cores_allowed, pin_to};
pub use bell::Bell;
pub use endpoint::Endpoint;
pub use poller::{Poller, Readiness};
pub use sys::heap::give_back_freed;
pub use tcp::{Listener, Received, Sent, Stream};
