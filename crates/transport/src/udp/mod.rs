//! UDP sockets as packet devices.

mod burst;
mod device;
mod transport;

pub use device::UdpDevice;
pub use transport::Udp;
