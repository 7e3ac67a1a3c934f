//! UDP sockets as packet devices.

mod burst;
mod device;

pub use device::UdpDevice;
