//! Datagrams past the kernel's stack: sockets of the family AF_XDP at the queues of one interface,
//! as MICA (NSDI 2014, §4.2) has its own queues at a NIC and replies in the buffers of requests.
//!
//! | file | idea |
//! | --- | --- |
//! | `umem` | memory that the kernel writes frames into and sends frames from |
//! | `ring` | one end of a ring that is shared with the kernel |
//! | `socket` | the system calls |
//! | `program` | the XDP program that redirects our datagrams, and the link that ties it |
//! | `queue` | one queue of the interface, and its free frames |
//! | `port` | the interface: the program and the queues |
//! | `attached` | a device's socket at a queue |
//! | `device` | a worker's sockets as one packet device |
//! | `transport` | from the command line to devices |
//!
//! # Who has what
//!
//! The interface has one program. Each queue has memory for frames, which belongs to a root socket.
//! A device has a socket at each queue at which its datagrams may arrive, as the kernel hands a
//! frame only to a socket of the queue that it arrived at. Sockets of a queue share its memory, so
//! there may be more workers than queues. A device that has a port for itself has a socket at every
//! queue; devices that share a port share the queues out.
//!
//! A request is parsed where the kernel has put it. A reply that is sent back in its place leaves
//! in the same frame. Other replies are copied into a free frame, and leave by the socket that the
//! peer's last request arrived at, to the hardware address that it came from. What that cannot do
//! goes through a socket of the kernel's, which each device has too (`device`).
//!
//! # Why own code
//!
//! There are libraries. `xdpilone` is careful, but under the EUPL, which is not among the licences
//! that this project accepts. `libxdp-sys` and `xsk-rs` bind the C library libxdp, which attaches a
//! dispatcher program of its own to the interface; ours has to be the only one, because it is the
//! accelerator's, too, and it must vanish with the process. What is left of AF_XDP then is four
//! rings, six options and two kinds of system call: `umem`, `ring` and `socket` are some 450 lines
//! over `rustix` and `libc`, which are in the server anyway. `aya`, which loads the accelerator's
//! program, loads this one.

mod attached;
mod device;
mod link;
mod port;
mod program;
mod queue;
mod ring;
mod socket;
mod transport;
mod umem;

#[cfg(test)]
#[path = "../../tests/support/veth.rs"]
mod veth;

pub use link::{Link, LinkPoint};
pub use program::{AttachError, Hook, Program, Settings, prepare};
pub use transport::Xdp;
