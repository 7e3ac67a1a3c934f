//! Floor 1: bytes into and out of the machine.
//!
//! [`packet`] defines devices for datagrams and [`stream`] defines connections; [`udp`], [`tcp`]
//! and [`unix`] are the kernel's sockets; `xdp` and `dpdk` (with the features of these names) go
//! past them.
//! [`transports`] lists what a server can be told to receive
//! datagrams by. There are also what is known of a network interface ([`Interface`]), readiness of
//! many sources ([`Poller`]), a bell that wakes a sleeping thread, pinning of threads to cores, and
//! returning freed memory to the kernel. This crate knows no protocol and no store, and nothing
//! blocks except
//! [`Poller::wait`].

#![deny(unsafe_code)]

pub mod address;
mod affinity;
mod bell;
#[cfg(any(feature = "dpdk", feature = "xdp"))]
pub mod bypass;
mod chance;
#[cfg(feature = "dpdk")]
pub mod dpdk;
mod endpoint;
mod inherited;
mod interface;
pub mod packet;
mod poller;
mod signal;
pub mod stream;
mod sys;
pub mod tcp;
pub mod transports;
pub mod udp;
pub mod unix;
mod wakeup;
#[cfg(feature = "xdp")]
pub mod xdp;

// What tests share names the crate from outside.
#[cfg(all(test, any(feature = "dpdk", feature = "xdp")))]
extern crate self as glimmer_transport;

pub use affinity::{cores_allowed, pin_to};
pub use bell::Bell;
pub use endpoint::Endpoint;
pub use inherited::SocketKind;
pub use interface::Interface;
pub use poller::Poller;
pub use signal::{Readiness, Ready, Signal};
pub use stream::{Received, Sent};
pub use sys::cpu_time::{thread_cpu_ns, thread_number};
pub use sys::heap::give_back_freed;
pub use sys::slices::{ask_for_short_slices, run_behind_others};
pub use tcp::{Listener, Stream};
pub use wakeup::Wakeup;
