//! Packet devices: where datagrams come in and go out, whatever carries them.
//!
//! A worker drives a [`PacketDevice`] in bursts: one call receives up to [`PACKET_BATCH_MAX`]
//! segment batches into an [`RxBatch`], one call sends up to as many [`Message`]s. A device says
//! how it is waited for with [`PacketDevice::wakeup`]. Devices are trait objects, and what they
//! implement is called once per burst; the accessors of both batches are plain functions.
//!
//! | device | what it is |
//! | --- | --- |
//! | [`UdpDevice`](crate::udp::UdpDevice) | a UDP socket, with segmentation offload |
//! | `XdpDevice` | a queue of a network interface past the kernel's stack (feature `xdp`) |
//! | `DpdkDevice` | a queue of a NIC that this process drives itself (feature `dpdk`) |
//! | [`SwitchPort`] | one end of a network inside this process |
//! | [`FaultInjector`] | another device, with faults drawn from a seed |
//!
//! # Who owns the memory
//!
//! What was received lies where the device left it, and the batch alone may read and write it until
//! it is cleared, received into again, or dropped. There are two ways to fill a batch. A socket
//! needs memory to write into: it uses the batch's own slots, and when the next call overwrites
//! them, nothing has to be returned. A device that receives into memory of its own *lends* buffers:
//! the batch holds pointers to them, and returns all of them with one call. That is how the
//! in-process device works, whose buffers are vectors, and how a driver's would: a UMEM frame of
//! AF_XDP returns to the fill ring, an mbuf of DPDK to its pool.
//!
//! What is sent is borrowed for the call alone. A device that completes a send later copies what it
//! is given into a buffer of its own, except for [`PacketSender::send_back`]: there the batch holds
//! the reply in the very buffers in which the request came, and the device may take them instead of
//! copying. The in-process device, AF_XDP and DPDK do.
//!
//! # What a burst costs
//!
//! | step | UDP socket |
//! | --- | --- |
//! | receive | one `recvmmsg`; no copy but the kernel's; one address read per segment batch |
//! | send | one `sendmmsg` per 32 messages; no copy but the kernel's; one address written each |
//! | either | one dynamic call; no allocation |

use std::io;
use std::net::SocketAddr;

mod faults;
mod rx;
mod steering;
mod switch;
pub(crate) mod transport;
mod tx;

pub use glimmer_base::limits::PACKET_BATCH_MAX;

pub use crate::wakeup::Wakeup;
pub use faults::{FaultInjector, Faults, Microseconds};
pub use rx::RxBatch;
pub use steering::Instruction;
pub use switch::{Switch, SwitchPort};
pub use transport::{Bypass, Named, PacketTransport, TransportKind};
pub use tx::{Message, SEGMENTED_BYTES_MAX, SEGMENTS_MAX, TxBatch};

/// What became of messages that were to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Datagrams that left.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams that did not.
    pub lost: u64,
    /// The device takes no more for now: another attempt would only cost a call.
    pub is_full: bool,
}

impl Transmitted {
    /// Adds what a later call transmitted.
    #[inline]
    pub fn add(&mut self, later: Transmitted) {
        self.datagrams += later.datagrams;
        self.bytes += later.bytes;
        self.lost += later.lost;
        self.is_full |= later.is_full;
    }

    /// One message that left.
    #[inline]
    pub(crate) fn count(&mut self, message: &Message<'_>) {
        self.datagrams += message.datagrams() as u64;
        self.bytes += message.bytes() as u64;
    }
}

/// What datagrams can be sent by.
pub trait PacketSender: Send {
    /// Sends up to [`PACKET_BATCH_MAX`] messages. What cannot be sent now is lost, as datagrams may
    /// be.
    ///
    /// # Panics
    ///
    /// Perhaps, if there are more messages than that, or one is longer than [`TxBatch`] makes them.
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted;

    /// Sends every segment batch that has bytes back to its sender, as the caller has rewritten and
    /// [truncated](RxBatch::truncate) it. The batch keeps its senders, and may have lost its bytes.
    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        send_each(self, batch)
    }
}

/// Sends every segment batch that has bytes back to its sender, as messages.
pub(crate) fn send_each<S: PacketSender + ?Sized>(sender: &mut S, batch: &RxBatch) -> Transmitted {
    let mut out = TxBatch::new(sender);
    for index in 0..batch.count() {
        let bytes = batch.bytes(index);
        if !bytes.is_empty() {
            let segment_bytes = batch.segment_bytes(index);
            out.push(Message::segments(batch.peer(index), bytes, segment_bytes));
        }
    }
    out.finish()
}

/// Where datagrams come in and go out.
pub trait PacketDevice: PacketSender {
    /// Replaces what is in the batch by what waits, as much as one call brings and the batch is
    /// [bounded](RxBatch::bound) to, and returns how many segment batches that are. Of a
    /// [socket](PacketTransport::are_sockets), fewer than [`RxBatch::most`] say that nothing more
    /// waited.
    fn receive(&mut self, batch: &mut RxBatch) -> usize;

    /// How to wait for what is to be received. A descriptor is readable for as long as something
    /// waits.
    fn wakeup(&self) -> Wakeup<'_>;

    /// The address at which others reach it.
    fn address(&self) -> io::Result<SocketAddr>;

    /// Has the kernel look at the NIC's queue when the device is asked and has nothing, instead of
    /// waiting for an interrupt. The caller asks for this time without a pause. Does nothing where
    /// that is of no use.
    ///
    /// # Errors
    ///
    /// One line that says what to do, if the kernel cannot, or does not let this process.
    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        let _ = time_us;
        Ok(())
    }

    /// Has the kernel tell when it received each datagram (`SO_TIMESTAMPNS`), for batches that keep
    /// it ([`RxBatch::keep_arrivals`]).
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if the kernel does not receive them.
    fn report_arrivals(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Has the kernel report datagrams that reached a host where nothing listens at their port, as
    /// it does unasked for a connected socket. [`PacketDevice::take_refusal`] has to be called
    /// whenever the device is ready and has nothing to receive, or it goes on being ready.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if the device does not learn of them.
    fn report_refusals(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The next datagram that was refused: where it went, and how many bytes of it the network
    /// returned, which are written to `quoted`. Entries that report anything else are dropped.
    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let _ = quoted;
        None
    }

    /// The same device for another thread. It sends from the same address, and receives from the
    /// same queue: what one of them has received, the others do not receive.
    fn twin(&self) -> Box<dyn PacketDevice>;
}

impl<S: PacketSender + ?Sized> PacketSender for Box<S> {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        (**self).send(messages)
    }

    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        (**self).send_back(batch)
    }
}

impl<D: PacketDevice + ?Sized> PacketDevice for Box<D> {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        (**self).receive(batch)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        (**self).wakeup()
    }

    fn address(&self) -> io::Result<SocketAddr> {
        (**self).address()
    }

    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        (**self).poll_busily(time_us)
    }

    fn report_arrivals(&self) -> io::Result<()> {
        (**self).report_arrivals()
    }

    fn report_refusals(&self) -> io::Result<()> {
        (**self).report_refusals()
    }

    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        (**self).take_refusal(quoted)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        (**self).twin()
    }
}
