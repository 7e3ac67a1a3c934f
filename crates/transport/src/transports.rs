//! Packet transports: what turns an address into packet devices.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use crate::packet::PacketDevice;
use crate::udp::{PlainUdp, Udp};

/// A packet transport that a server can be told to use.
pub trait PacketTransport: Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Opens the device of the only worker that uses an address. A port of 0 is replaced by a free
    /// one.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or belongs to another device.
    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>>;

    /// Opens a device for each of several workers that share an address. The transport spreads the
    /// peers among them. A port of 0 is replaced by a free one, the same for all.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or belongs to a device outside this group.
    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>>;
}

/// Every packet transport. The first is the default.
pub const TRANSPORTS: &[&dyn PacketTransport] = &[&Udp, &PlainUdp];

/// The packet transport of this name.
///
/// # Errors
///
/// The names that there are.
pub fn named(name: &str) -> Result<&'static dyn PacketTransport, String> {
    let known = TRANSPORTS.iter().find(|known| known.name() == name);
    known.copied().ok_or_else(|| {
        let names: Vec<_> = TRANSPORTS.iter().map(|known| known.name()).collect();
        format!("one of {}", names.join(", "))
    })
}
