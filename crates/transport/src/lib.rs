//! Floor 1: bytes in and out of the machine.
//!
//! [`packet`] has what every device for datagrams does, and [`stream`] what every connection does;
//! [`udp`], [`tcp`] and [`unix`] are the kernel's sockets as such. Beside them are readiness of
//! many descriptors ([`Poller`]), a bell that wakes a sleeping thread, the choice of the core that
//! a thread runs on, and returning freed memory to the kernel. Nothing here knows a protocol or a
//! store, and nothing blocks except [`Poller::wait`].

#![deny(unsafe_code)]

pub mod address;
mod affinity;
mod bell;
mod chance;
mod endpoint;
pub mod packet;
mod poller;
mod signal;
pub mod stream;
mod sys;
pub mod tcp;
pub mod udp;
pub mod unix;
mod wakeup;

pub use affinity::{cores_allowed, pin_to};
pub use bell::Bell;
pub use endpoint::Endpoint;
pub use poller::Poller;
pub use signal::{Readiness, Ready, Signal};
pub use stream::{Received, Sent};
pub use sys::heap::give_back_freed;
pub use tcp::{Listener, Stream};
pub use wakeup::Wakeup;
