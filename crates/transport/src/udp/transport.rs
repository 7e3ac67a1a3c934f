//! UDP sockets with segmentation offload as a packet transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::UdpDevice;
use crate::packet::{Instruction, PacketDevice, PacketTransport, TransportKind, transport};

/// UDP sockets with segmentation offload.
#[derive(Clone, Copy, Debug)]
pub struct Udp;

impl Udp {
    /// The kind of this transport.
    pub const KIND: TransportKind = TransportKind {
        name: "udp",
        with: |argument| transport::takes_none("udp", argument).map(|()| Arc::new(Udp) as _),
    };
}

impl PacketTransport for Udp {
    fn name(&self) -> &'static str {
        Udp::KIND.name
    }

    fn are_sockets(&self) -> bool {
        true
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
