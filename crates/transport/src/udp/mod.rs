//! UDP sockets as packet devices.

mod burst;
mod device;
mod plain;
mod transport;

pub use device::UdpDevice;
pub use plain::PlainUdp;
pub use transport::Udp;
