//! Datagrams over UDP: a socket of which every worker has its own, from which and to which up to [`DATAGRAMS_MAX`] datagrams go per system call.

mod inbox;
mod socket;

pub use crate::sys::mmsg::{DATAGRAMS_MAX, Outgoing, Peer};
pub use inbox::Inbox;
pub use socket::{Socket, probe};
