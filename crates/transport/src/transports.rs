//! Every packet transport that a server can be told to use.

use crate::packet::PacketTransport;
use crate::udp::{PlainUdp, Udp};

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
