//! UDP sockets with segmentation offload as a packet transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::UdpDevice;
use crate::packet::{Instruction, PacketDevice, PacketTransport, transport};

/// UDP sockets with segmentation offload.
#[derive(Clone, Copy, Debug)]
pub struct Udp;

impl PacketTransport for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn with(&self, argument: Option<&str>) -> Result<Arc<dyn PacketTransport>, String> {
        transport::takes_none(self.name(), argument).map(|()| Arc::new(*self) as _)
    }

    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>> {
        Ok(Box::new(UdpDevice::bind(address)?))
    }

    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let devices = UdpDevice::bind_group(address, workers)?.into_iter();
        Ok(devices.map(|device| Box::new(device) as _).collect())
    }

    fn open_steered(
        &self,
        address: SocketAddr,
        workers: usize,
        program: &[Instruction],
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let devices = UdpDevice::bind_steered(address, workers, program)?;
        let device = |device: UdpDevice| Box::new(device.joining_received()) as _;
        Ok(devices.into_iter().map(device).collect())
    }
}
