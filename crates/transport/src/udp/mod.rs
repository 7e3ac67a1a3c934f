//! Datagrams over UDP: a socket of which every worker has its own, from which and to which up to [`DATAGRAMS_MAX`] datagrams go per system call,
//! or as many trains of them.

mod burst;
mod departure;
mod device;
mod inbox;
mod socket;
mod trains;

pub use crate::sys::mmsg::{DATAGRAMS_MAX, Outgoing, Peer};
pub use crate::sys::train::{TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX, Train};
pub use departure::Departed;
pub use device::UdpDevice;
pub use inbox::Inbox;
pub use socket::{Socket, probe};
pub use trains::Trains;
