//! UDP sockets without segmentation offload: one system call and one copy for each datagram.
//!
//! They work where the kernel or a sandbox has neither `recvmmsg` nor `UDP_SEGMENT`. Beside the
//! default transport they show what batches of datagrams are worth.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::net::{self, RecvFlags, SendFlags};

use super::UdpDevice;
use super::burst::send_all;
use crate::packet::{
    Instruction, Message, PacketDevice, PacketSender, PacketTransport, RxBatch, Transmitted,
    TransportKind, Wakeup, transport,
};

/// The longest datagram, and a byte more.
const RECEIVE_BYTES: usize = 64 << 10;

/// UDP sockets without segmentation offload.
#[derive(Clone, Copy, Debug)]
pub struct PlainUdp;

impl PlainUdp {
    /// The kind of this transport.
    pub const KIND: TransportKind = TransportKind {
        name: "udp-plain",
        with: |argument| {
            transport::takes_none("udp-plain", argument).map(|()| Arc::new(PlainUdp) as _)
        },
    };
}

impl PacketTransport for PlainUdp {
    fn name(&self) -> &'static str {
        PlainUdp::KIND.name
    }

    fn are_sockets(&self) -> bool {
        true
    }

    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>> {
        // Unlike a socket that is alone, one of a group receives every datagram by itself.
        let devices = UdpDevice::bind_group(address, 1)?;
        let device = devices.into_iter().next();
        let device = device.expect("a group of one has a device");
        Ok(Box::new(PlainDevice::new(device)))
    }

    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let devices = UdpDevice::bind_group(address, workers)?.into_iter();
        let device = |device| Box::new(PlainDevice::new(device)) as _;
        Ok(devices.map(device).collect())
    }

    fn open_steered(
        &self,
        address: SocketAddr,
        workers: usize,
        program: &[Instruction],
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let devices = UdpDevice::bind_steered(address, workers, program)?.into_iter();
        let device = |device| Box::new(PlainDevice::new(device)) as _;
        Ok(devices.map(device).collect())
    }
}

/// A socket that receives.
struct PlainDevice {
    sender: PlainSender,
    /// Room for the datagram that is being received, from the first call on.
    received: Vec<u8>,
}

impl PlainDevice {
    fn new(socket: UdpDevice) -> PlainDevice {
        PlainDevice {
            sender: PlainSender::new(socket),
            received: Vec::new(),
        }
    }
}

/// A socket that only sends.
struct PlainSender {
    socket: UdpDevice,
    /// The datagram that is being sent, if it has a header.
    framed: Vec<u8>,
}

impl PlainSender {
    fn new(socket: UdpDevice) -> PlainSender {
        PlainSender {
            socket,
            framed: Vec::new(),
        }
    }

    /// Sends one message, as one datagram or several.
    fn send_one(&mut self, message: &Message<'_>) -> io::Result<()> {
        for datagram in message.apart() {
            let bytes = match datagram.header() {
                [] => datagram.payload,
                header => {
                    self.framed.clear();
                    self.framed.extend_from_slice(header);
                    self.framed.extend_from_slice(datagram.payload);
                    &self.framed
                }
            };
            net::sendto(self.socket.as_fd(), bytes, SendFlags::empty(), &datagram.to)?;
        }
        Ok(())
    }
}

impl PacketSender for PlainSender {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        send_all(messages, |messages| self.send_one(&messages[0]).map(|()| 1))
    }
}

impl PacketSender for PlainDevice {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        self.sender.send(messages)
    }
}

impl PacketDevice for PlainDevice {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        batch.clear();
        self.received.resize(RECEIVE_BYTES, 0);
        for _ in 0..batch.most() {
            let socket = self.sender.socket.as_fd();
            let received = net::recvfrom(socket, &mut self.received[..], RecvFlags::empty());
            match received {
                Ok((bytes, _, Some(peer))) => {
                    if let Ok(peer) = SocketAddr::try_from(peer) {
                        batch.push(peer, &self.received[..bytes], bytes.max(1));
                    }
                }
                // An earlier datagram met an error on its way out. It concerns nothing that waits.
                Err(error) if error != rustix::io::Errno::AGAIN => {}
                _ => break,
            }
        }
        batch.count()
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.sender.socket.as_fd())
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.sender.socket.address()
    }

    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        self.sender.socket.poll_busily(time_us)
    }

    fn report_refusals(&self) -> io::Result<()> {
        self.sender.socket.report_refusals()
    }

    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        self.sender.socket.take_refusal(quoted)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(PlainDevice::new(self.sender.socket.clone()))
    }
}
