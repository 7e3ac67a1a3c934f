//! A UDP socket as a packet device.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use glimmer_base::limits::DATAGRAM_BUFFER_BYTES;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::burst::send_all;
use crate::packet::{
    Instruction, Message, PacketDevice, PacketSender, RxBatch, Transmitted, Wakeup,
};
#[cfg(feature = "xdp")]
use crate::sys::destinations;
use crate::sys::headers::{tell_arrivals, tell_drops};
use crate::sys::udp::{self, Way};
use crate::sys::{options, refusals, steering};

/// A UDP socket. Each thread that serves an address has one of its own.
#[derive(Clone, Debug)]
pub struct UdpDevice {
    socket: Arc<OwnedFd>,
    way: Way,
}

impl UdpDevice {
    /// Binds an address that no other socket binds. Where the kernel can, datagrams of one length
    /// from one peer are received as a segment batch. A port of 0 is replaced by a free one.
    pub fn bind(address: SocketAddr) -> io::Result<UdpDevice> {
        Ok(UdpDevice::new(bound(address, false)?, false).joining_received())
    }

    /// The same socket, which receives segment batches where the kernel can.
    pub(super) fn joining_received(self) -> UdpDevice {
        // A kernel that cannot delivers every datagram by itself.
        let _ = udp::join_received(self.as_fd());
        self
    }

    /// Binds an address together with other sockets of this process, among which the kernel spreads
    /// the peers. Every datagram is received by itself. A port of 0 is replaced by a free one.
    pub fn bind_shared(address: SocketAddr) -> io::Result<UdpDevice> {
        let device = UdpDevice::new(bound(address, true)?, false);
        device.receive_unicast()?;
        Ok(device)
    }

    /// Binds an address with several sockets, one for each thread that serves it, as
    /// [`UdpDevice::bind_shared`] does. Fails if a socket outside this group has bound the address.
    pub fn bind_group(address: SocketAddr, sockets: usize) -> io::Result<Vec<UdpDevice>> {
        // Sockets that share an address can be bound beside those of another server. One that
        // does not share it tells whether the address is free.
        drop(bound(address, false)?);
        let mut chosen = address;
        let mut devices = Vec::with_capacity(sockets);
        for _ in 0..sockets {
            let device = UdpDevice::bind_shared(chosen)?;
            chosen = device.address()?;
            devices.push(device);
        }
        Ok(devices)
    }

    /// Binds an address with several sockets, as [`UdpDevice::bind_group`] does. The program
    /// chooses among them by their order.
    pub fn bind_steered(
        address: SocketAddr,
        sockets: usize,
        program: &[Instruction],
    ) -> io::Result<Vec<UdpDevice>> {
        let devices = UdpDevice::bind_group(address, sockets)?;
        // The kernel numbers the sockets of a group as they are bound, and the group has one
        // program.
        if let Some(device) = devices.first() {
            steering::attach(device.as_fd(), program).map_err(|error| {
                let reason = format!(
                    "the kernel cannot steer datagrams of one port to workers \
                     (SO_ATTACH_REUSEPORT_CBPF: {error}); use a port for each worker"
                );
                io::Error::new(error.kind(), reason)
            })?;
        }
        Ok(devices)
    }

    /// A socket on a free port that sends to one address alone, whatever the messages say, and
    /// receives from it alone. Every datagram is received by itself.
    pub fn connect(address: SocketAddr) -> io::Result<UdpDevice> {
        let socket = bound(any(&address), false)?;
        net::connect(&socket, &address)?;
        Ok(UdpDevice::new(socket, true))
    }

    pub(crate) fn new(socket: OwnedFd, is_connected: bool) -> UdpDevice {
        // Larger buffers hold longer bursts; with smaller ones more datagrams are lost.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, DATAGRAM_BUFFER_BYTES);
        let _ = sockopt::set_socket_send_buffer_size(&socket, DATAGRAM_BUFFER_BYTES);
        // A kernel that cannot does not tell what it dropped.
        let _ = tell_drops(socket.as_fd());
        UdpDevice {
            socket: Arc::new(socket),
            way: Way {
                is_connected,
                coalesces: true,
            },
        }
    }

    /// The same socket, where single datagrams go through the kernel by themselves, as programs
    /// send that do not use segmentation offload. Segment batches still do not.
    #[must_use]
    pub fn without_coalescing(mut self) -> UdpDevice {
        self.way.coalesces = false;
        self
    }

    /// As [`PacketDevice::receive`], with the errors that earlier datagrams met on their way.
    #[inline]
    pub fn try_receive(&self, batch: &mut RxBatch) -> io::Result<usize> {
        udp::receive(self.as_fd(), batch)?;
        Ok(batch.count())
    }

    /// Sends the first of up to [`PACKET_BATCH_MAX`](glimmer_base::limits::PACKET_BATCH_MAX)
    /// messages with one system call, and returns how many went; an error concerns the first of
    /// them.
    #[inline]
    pub fn try_send(&self, messages: &[Message<'_>]) -> io::Result<usize> {
        udp::send(self.as_fd(), messages, self.way)
    }

    /// Sends the datagrams of a segment batch one by one, if the route to its peer takes no segment
    /// batches.
    #[cold]
    fn send_apart(&self, message: &Message<'_>, error: &io::Error) -> bool {
        let may_be_sent = message.is_segmented() && crate::sys::headers::refuses_segments(error);
        may_be_sent && (message.apart()).all(|datagram| matches!(self.try_send(&[datagram]), Ok(1)))
    }

    /// Leaves to nobody what is sent to all hosts of a network, or to a group of them, if it could
    /// come to this address. Otherwise such a request would be executed once by each worker.
    pub(crate) fn receive_unicast(&self) -> io::Result<()> {
        let address = self.address()?;
        match address.ip().is_unspecified() {
            true => steering::receive_unicast(self.as_fd(), address.is_ipv4()),
            false => Ok(()),
        }
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::try_from(net::getsockname(&self.socket)?).map_err(Into::into)
    }
}

/// For a device beside queues of an interface, which answers from the address that was asked.
#[cfg(feature = "xdp")]
impl UdpDevice {
    /// Has the kernel tell to which of our addresses datagrams come, if the socket has several.
    pub(crate) fn tell_destinations(&self) -> io::Result<()> {
        let address = self.address()?;
        match address.ip().is_unspecified() {
            true => destinations::tell(self.as_fd(), address.is_ipv4()),
            false => Ok(()),
        }
    }

    /// As [`UdpDevice::try_receive`], and `note` is given the sender of each segment batch, and to
    /// which of our addresses it came if the kernel tells.
    pub(crate) fn try_receive_told(
        &self,
        batch: &mut RxBatch,
        note: impl FnMut(SocketAddr, Option<SocketAddr>),
    ) -> io::Result<usize> {
        destinations::receive(self.as_fd(), batch, note)?;
        Ok(batch.count())
    }

    /// Sends one datagram from this of our addresses, as [`destinations::send_from`] does.
    pub(crate) fn send_from(&self, message: &Message<'_>, source: SocketAddr) -> Transmitted {
        send_all(std::slice::from_ref(message), |_| {
            destinations::send_from(self.as_fd(), message, source).map(|()| 1)
        })
    }
}

fn bound(address: SocketAddr, is_shared: bool) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::DGRAM, flags, None)?;
    if is_shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

/// Any free port of the address's family.
fn any(address: &SocketAddr) -> SocketAddr {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    (any, 0).into()
}

impl AsFd for UdpDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl PacketSender for UdpDevice {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        send_all(messages, |messages| {
            self.try_send(messages).or_else(|error| {
                let is_sent = self.send_apart(&messages[0], &error);
                if is_sent { Ok(1) } else { Err(error) }
            })
        })
    }
}

impl PacketDevice for UdpDevice {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        // An error is one that an earlier datagram met on its way out: it is reported once, and
        // concerns nothing that was received.
        self.try_receive(batch).unwrap_or(0)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.as_fd())
    }

    fn address(&self) -> io::Result<SocketAddr> {
        UdpDevice::address(self)
    }

    /// A process that may not have the kernel look at the queue still asks without a pause.
    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        let _ = options::poll_busily(self.as_fd(), time_us);
        Ok(())
    }

    fn report_arrivals(&self) -> io::Result<()> {
        tell_arrivals(self.as_fd())
    }

    fn report_refusals(&self) -> io::Result<()> {
        refusals::report(self.as_fd(), UdpDevice::address(self)?.is_ipv4())
    }

    #[cold]
    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        while let Some(report) = refusals::take(self.as_fd(), quoted) {
            if report.is_refusal {
                return Some((report.peer, report.bytes));
            }
        }
        None
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
