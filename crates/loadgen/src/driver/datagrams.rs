//! memcached over UDP. Every datagram begins with a frame of eight bytes. A request is one
//! datagram; a reply is one or more.

use std::{collections::VecDeque, io::ErrorKind, net::SocketAddr};

use anyhow::{Context, Result, bail, ensure};
use arrayvec::ArrayVec;
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_transport::Wakeup;
use glimmer_transport::packet::{Message, PacketDevice, PacketSender, PacketTransport, RxBatch};
use glimmer_transport::udp::UdpDevice;

use super::{Awaited, Link, Protocol, Reply, pending::Queue};
use crate::workload::Ask;

/// Request id, number of this datagram, number of datagrams, reserved: 16 bits each, big-endian.
const FRAME_BYTES: usize = 8;
/// Maximum number of requests in flight. Ids have 16 bits and must not be reused while a late reply
/// may arrive.
const IN_FLIGHT_MAX: usize = 1 << 14;
/// Full receive calls before the loop continues with other work.
const RECEIVES_MAX: usize = 4;

/// A request in flight and the part of its reply that has arrived.
#[derive(Default)]
struct InFlight {
    queue: Queue,
    /// The datagrams of a reply, by number; empty until they arrive.
    parts: Vec<Vec<u8>>,
    ended: bool,
}

/// How requests that are sent with one system call pass through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Each datagram separately.
    Plain,
    /// Datagrams of equal length as one segment batch (`UDP_SEGMENT`).
    Segmented,
}

/// By what requests leave and replies arrive.
enum Way {
    /// A socket that is connected to the server.
    Socket(UdpDevice),
    /// A device of another transport. What it cannot send now is lost.
    Device(Box<dyn PacketDevice>),
}

/// A UDP socket, or another device, with requests in flight.
pub struct Datagrams<P> {
    way: Way,
    server: SocketAddr,
    protocol: P,
    /// Unsent requests, one after the other.
    out: Vec<u8>,
    /// The frame of each unsent request, and where it ends in `out`.
    unsent: VecDeque<([u8; FRAME_BYTES], usize)>,
    written: usize,
    /// Requests in flight in the order of their ids; the first one has `first_id`.
    requests: VecDeque<InFlight>,
    first_id: u16,
    under_way: usize,
    spare: Vec<Queue>,
    received: RxBatch,
    joined: Vec<u8>,
}

impl<P: Protocol> Datagrams<P> {
    /// Opens a socket connected to a server.
    pub fn open(address: SocketAddr, sending: Sending) -> Result<Datagrams<P>> {
        let device =
            UdpDevice::connect(address).with_context(|| format!("a UDP socket to {address}"))?;
        let device = match sending {
            Sending::Plain => device.without_coalescing(),
            Sending::Segmented => device,
        };
        Ok(Datagrams::by(Way::Socket(device), address))
    }

    /// Opens a device of a transport to reach a server.
    pub fn open_over(transport: &dyn PacketTransport, address: SocketAddr) -> Result<Datagrams<P>> {
        let device = transport.open_towards(address)?;
        Ok(Datagrams::by(Way::Device(device), address))
    }

    fn by(way: Way, server: SocketAddr) -> Datagrams<P> {
        Datagrams {
            way,
            server,
            protocol: P::default(),
            out: Vec::new(),
            unsent: VecDeque::new(),
            written: 0,
            requests: VecDeque::new(),
            first_id: 0,
            under_way: 0,
            spare: Vec::new(),
            received: RxBatch::default(),
            joined: Vec::new(),
        }
    }

    /// Ends a request, and drops ended requests from the front of the queue.
    fn end(&mut self, place: usize) {
        let request = &mut self.requests[place];
        request.ended = true;
        self.under_way -= 1;
        self.spare.push(std::mem::take(&mut request.queue));
        while self.requests.front().is_some_and(|request| request.ended) {
            self.requests.pop_front();
            self.first_id = self.first_id.wrapping_add(1);
        }
    }

    /// Handles a received datagram. Late datagrams of requests that were given up are ignored.
    fn arrived(&mut self, index: usize, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        // A connected socket receives from nobody else.
        if matches!(self.way, Way::Device(_)) && self.received.peer(index) != self.server {
            return Ok(());
        }
        let arrived_ns = self.received.arrived_ns(index);
        let on_step = &mut |reply| {
            on_step(Reply {
                arrived_ns,
                ..reply
            })
        };
        let datagram = self.received.bytes(index);
        let Some((frame, payload)) = datagram.split_first_chunk::<FRAME_BYTES>() else {
            bail!("a datagram of {} bytes has no frame", datagram.len());
        };
        let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let (id, number, count) = (half(0), usize::from(half(2)), usize::from(half(4)));
        // memcached numbers the messages of a read of several keys 0 of 0. Each such message is
        // complete.
        let alone = count <= 1;
        ensure!(alone || number < count, "datagram {number} of {count}");
        let place = usize::from(id.wrapping_sub(self.first_id));
        let Some(request) = self
            .requests
            .get_mut(place)
            .filter(|request| !request.ended)
        else {
            return Ok(());
        };
        let reply = if alone {
            payload
        } else {
            request
                .parts
                .resize(count.max(request.parts.len()), Vec::new());
            request.parts[number] = payload.to_vec();
            if request.parts.iter().any(Vec::is_empty) {
                return Ok(());
            }
            self.joined.clear();
            request
                .parts
                .iter()
                .for_each(|part| self.joined.extend_from_slice(part));
            &self.joined
        };
        // memcached answers a read of several keys with one message per key, all under the
        // request's id. A message always ends with a step.
        let understood = request.queue.take(&self.protocol, reply, on_step)?;
        ensure!(
            understood.bytes == reply.len(),
            "a datagram ends in the middle of a reply"
        );
        request.parts.clear();
        if request.queue.requests() > 0 {
            return Ok(());
        }
        self.end(place);
        Ok(())
    }
}

impl<P> Awaited for Datagrams<P> {
    fn wakeup(&self) -> Wakeup<'_> {
        match &self.way {
            Way::Socket(socket) => socket.wakeup(),
            Way::Device(device) => device.wakeup(),
        }
    }
}

impl Way {
    /// Sends the first of these messages, and returns how many need not be sent again.
    fn send(&mut self, messages: &[Message<'_>]) -> std::io::Result<usize> {
        match self {
            Way::Socket(socket) => socket.try_send(messages),
            Way::Device(device) => {
                device.send(messages);
                Ok(messages.len())
            }
        }
    }

    fn receive(&mut self, batch: &mut RxBatch) -> std::io::Result<usize> {
        match self {
            Way::Socket(socket) => socket.try_receive(batch),
            Way::Device(device) => Ok(device.receive(batch)),
        }
    }
}

impl<P: Protocol> Link for Datagrams<P> {
    fn ask(&mut self, ask: &Ask, tag: u64) {
        let id = self.first_id.wrapping_add(self.requests.len() as u16);
        let [high, low] = id.to_be_bytes();
        let mut queue = self.spare.pop().unwrap_or_default();
        queue.ask(&self.protocol, ask, tag, &mut self.out);
        let frame = [high, low, 0, 0, 0, 1, 0, 0];
        self.unsent.push_back((frame, self.out.len()));
        self.requests.push_back(InFlight {
            queue,
            ..InFlight::default()
        });
        self.under_way += 1;
    }

    fn send(&mut self) -> Result<()> {
        while !self.unsent.is_empty() {
            let mut begin = self.written;
            let outgoing = self
                .unsent
                .iter()
                .take(PACKET_BATCH_MAX)
                .map(|&(header, end)| {
                    let payload = &self.out[begin..end];
                    begin = end;
                    Message::framed(self.server, header, payload)
                });
            let outgoing: ArrayVec<_, PACKET_BATCH_MAX> = outgoing.collect();
            match self.way.send(&outgoing) {
                Ok(count) => {
                    if let Some((_, end)) = self.unsent.drain(..count).next_back() {
                        self.written = end;
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::Interrupted => {}
                    // The kernel's buffers are full: try again next time.
                    _ if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(()),
                    _ if error.raw_os_error() == Some(libc::EMSGSIZE) => bail!(
                        "a request of {} bytes does not fit a datagram",
                        outgoing[0].payload.len()
                    ),
                    _ => return Err(error).context("sending requests"),
                },
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        for _ in 0..RECEIVES_MAX {
            let count = match self.way.receive(&mut self.received) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    bail!("nobody serves datagrams there: {error}; -U starts a server that does")
                }
                Err(error) => return Err(error).context("receiving replies"),
            };
            (0..count).try_for_each(|index| self.arrived(index, on_step))?;
            if count < PACKET_BATCH_MAX {
                return Ok(());
            }
        }
        Ok(())
    }

    fn expire(&mut self, tag: u64, on_step: &mut impl FnMut(Reply)) {
        let overdue = |request: &InFlight| {
            !request.ended && request.queue.tag().is_some_and(|given| given < tag)
        };
        // If ids might be reused because many requests are in flight, the oldest requests are given
        // up.
        while self.requests.len() > IN_FLIGHT_MAX || self.requests.front().is_some_and(overdue) {
            self.requests[0].queue.lose(on_step);
            self.end(0);
        }
    }

    fn under_way(&self) -> usize {
        self.under_way
    }

    fn note_arrivals(&mut self) -> Result<()> {
        let reported = match &self.way {
            Way::Socket(socket) => socket.report_arrivals(),
            Way::Device(device) => device.report_arrivals(),
        };
        reported.context("receive timestamps (SO_TIMESTAMPNS) need sockets")?;
        self.received.keep_arrivals();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Text;
    use crate::workload::{Key, Verb};
    use glimmer_transport::packet::PacketDevice;

    /// Sends eight requests with one system call. Returns the number of datagrams in each segment
    /// batch that arrives.
    fn arrives(sending: Sending) -> Vec<usize> {
        let mut server = UdpDevice::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = server.address().unwrap();
        let mut link = Datagrams::<Text>::open(address, sending).unwrap();
        for number in 0..8 {
            let mut ask = Ask::default();
            ask.one(Verb::Get, Key::new(number, 16));
            link.ask(&ask, number);
        }
        link.send().unwrap();
        let mut received = RxBatch::default();
        let mut lengths = Vec::new();
        while lengths.iter().sum::<usize>() < 8 {
            for batch in 0..server.receive(&mut received) {
                lengths.push(received.datagrams(batch));
            }
            std::thread::yield_now();
        }
        lengths
    }

    fn now_ns() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Two replies that are read 20 ms after each: when they were sent, and the times of their
    /// arrival.
    fn arrivals(
        link: &mut Datagrams<Text>,
        server: &std::net::UdpSocket,
    ) -> Vec<(std::ops::Range<u64>, u64)> {
        let mut sent = Vec::new();
        for number in 0..2 {
            let mut ask = Ask::default();
            ask.one(Verb::Get, Key::new(number, 16));
            link.ask(&ask, number);
            link.send().unwrap();
            let mut datagram = [0; 100];
            let (_, client) = server.recv_from(&mut datagram).unwrap();
            let before = now_ns();
            let reply = [&datagram[..FRAME_BYTES], b"END\r\n"].concat();
            server.send_to(&reply, client).unwrap();
            sent.push(before..now_ns());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let mut told = Vec::new();
        link.receive(&mut |reply| told.push(reply.arrived_ns))
            .unwrap();
        assert_eq!(told.len(), 2);
        sent.into_iter().zip(told).collect()
    }

    /// The time is that of the arrival, however late the client reads.
    #[test]
    fn replies_say_when_the_kernel_received_them() {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut link = Datagrams::<Text>::open(address, Sending::Plain).unwrap();
        link.note_arrivals().unwrap();
        // The kernel begins to note times some while after the first socket has asked for them.
        let mut tries = (0..100).map(|_| arrivals(&mut link, &server));
        let are_told = tries.any(|replies| replies.iter().all(|(sent, told)| sent.contains(told)));
        assert!(are_told);
    }

    #[test]
    fn plain_datagrams_travel_each_by_itself() {
        assert_eq!(arrives(Sending::Plain), [1; 8]);
    }

    #[test]
    fn datagrams_of_one_length_leave_as_one_segment_batch_if_that_is_asked_for() {
        assert_eq!(arrives(Sending::Segmented), [8]);
    }
}
