//! A network inside this process: ports with addresses, and no kernel.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glimmer_base::limits::{PACKET_BATCH_MAX, SWITCH_QUEUE_PACKETS};

use super::{Message, PacketDevice, PacketSender, RxBatch, Transmitted, Wakeup};
use crate::signal::{Ready, Signal};
use crate::sys::buffers::Buffers;

/// Carries packets between attached ports, at once and in order. Ports may be used by several
/// threads. The result depends only on the order of the calls.
#[derive(Clone, Default)]
pub struct Switch(Arc<Mutex<Ports>>);

/// Packets that wait to be received, by the address of the port.
#[derive(Default)]
struct Ports(BTreeMap<SocketAddr, Queue>);

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    /// Readable while packets wait.
    signal: Signal,
    dropped: u32,
    /// Whether segment batches are delivered as single datagrams.
    splits: bool,
    /// Nothing is carried to the port or from it.
    is_cut: bool,
}

struct Packet {
    from: SocketAddr,
    bytes: Vec<u8>,
    segment_bytes: usize,
}

/// One port of a [`Switch`]. Its buffers are vectors, which are lent to the batch that receives,
/// and which [`PacketSender::send_back`] passes on without copying. Sending copies each message
/// once.
pub struct SwitchPort {
    sender: Sender,
    signal: Signal,
    attached: Arc<Attached>,
}

/// A port exists until all its twins are dropped.
struct Attached {
    switch: Switch,
    address: SocketAddr,
}

/// Sends from a port's address.
#[derive(Clone)]
struct Sender {
    switch: Switch,
    address: SocketAddr,
    buffers: Buffers,
}

impl Switch {
    /// A network without ports.
    pub fn new() -> Switch {
        Switch::default()
    }

    /// A port with this address, which exists until it and its twins are dropped. It receives
    /// segment batches as they were sent, like a socket with GRO.
    ///
    /// # Panics
    ///
    /// If there is a port with this address.
    pub fn attach(&self, address: SocketAddr) -> SwitchPort {
        self.attach_port(address, false)
    }

    /// Like [`Switch::attach`], but every datagram is received separately, as by a socket without
    /// GRO.
    ///
    /// # Panics
    ///
    /// If there is a port with this address.
    pub fn attach_splitting(&self, address: SocketAddr) -> SwitchPort {
        self.attach_port(address, true)
    }

    /// From here on nothing is carried to the port with this address, or from it. What waits there
    /// is lost. A port that is attached after it was dropped is another one.
    pub fn cut(&self, address: SocketAddr) {
        if let Some(queue) = self.lock().0.get_mut(&address) {
            queue.is_cut = true;
            queue.packets.clear();
            queue.signal.note(Ready::default());
        }
    }

    fn attach_port(&self, address: SocketAddr, splits: bool) -> SwitchPort {
        let signal = Signal::default();
        let queue = Queue {
            signal: signal.clone(),
            splits,
            ..Queue::default()
        };
        let before = self.lock().0.insert(address, queue);
        assert!(before.is_none(), "{address} is in use");
        SwitchPort {
            sender: Sender {
                switch: self.clone(),
                address,
                buffers: Buffers::new(),
            },
            signal,
            attached: Arc::new(Attached {
                switch: self.clone(),
                address,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ports {
    /// Delivers a packet to a port. A packet to an unknown address is lost and counts as sent,
    /// because a network does not report it.
    fn carry(&mut self, to: SocketAddr, packet: Packet, buffers: &Buffers) {
        let is_from_cut = self.0.get(&packet.from).is_some_and(|queue| queue.is_cut);
        let Some(queue) = self.0.get_mut(&to).filter(|queue| !queue.is_cut) else {
            return;
        };
        if is_from_cut {
            return;
        }
        if !queue.splits || packet.bytes.len() <= packet.segment_bytes {
            return queue.push(packet);
        }
        for segment in packet.bytes.chunks(packet.segment_bytes) {
            let mut bytes = buffers.get();
            bytes.extend_from_slice(segment);
            queue.push(Packet {
                from: packet.from,
                segment_bytes: bytes.len(),
                bytes,
            });
        }
    }
}

/// Packets can be received.
const WAITING: Ready = Ready {
    readable: true,
    writable: false,
    hung_up: false,
};

impl Queue {
    fn push(&mut self, packet: Packet) {
        if self.packets.len() < SWITCH_QUEUE_PACKETS {
            self.packets.push_back(packet);
            self.signal.change(WAITING);
        } else {
            let datagrams = packet.bytes.len().div_ceil(packet.segment_bytes).max(1);
            self.dropped = self.dropped.wrapping_add(datagrams as u32);
        }
    }
}

impl Sender {
    fn transmit(&self, message: &Message<'_>, ports: &mut Ports) {
        let mut bytes = self.buffers.get();
        bytes.extend_from_slice(message.header());
        bytes.extend_from_slice(message.payload);
        let packet = Packet {
            from: self.address,
            segment_bytes: message.segment_bytes.min(bytes.len()).max(1),
            bytes,
        };
        ports.carry(message.to, packet, &self.buffers);
    }
}

impl PacketSender for Sender {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        assert!(messages.len() <= PACKET_BATCH_MAX);
        let mut transmitted = Transmitted::default();
        let mut ports = self.switch.lock();
        for message in messages {
            self.transmit(message, &mut ports);
            transmitted.count(message);
        }
        transmitted
    }

    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        let mut transmitted = Transmitted::default();
        let buffers = self.buffers.take(&mut batch.frames);
        let mut ports = self.switch.lock();
        if buffers.is_empty() {
            // The batch holds packets of a different device.
            for index in 0..batch.count() {
                let size = batch.segment_bytes(index);
                let message = Message::segments(batch.peer(index), batch.bytes(index), size);
                if message.bytes() > 0 {
                    self.transmit(&message, &mut ports);
                    transmitted.count(&message);
                }
            }
            return transmitted;
        }
        for (index, bytes) in buffers.into_iter().enumerate() {
            let (to, segment_bytes) = (batch.peer(index), batch.segment_bytes(index));
            if !bytes.is_empty() {
                transmitted.count(&Message::segments(to, &bytes, segment_bytes));
                let packet = Packet {
                    from: self.address,
                    segment_bytes: segment_bytes.min(bytes.len()),
                    bytes,
                };
                ports.carry(to, packet, &self.buffers);
            }
        }
        transmitted
    }
}

impl PacketSender for SwitchPort {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        self.sender.send(messages)
    }

    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        self.sender.send_back(batch)
    }
}

impl PacketDevice for SwitchPort {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        batch.clear();
        let Sender {
            switch,
            address,
            buffers,
        } = &self.sender;
        let mut ports = switch.lock();
        let Some(queue) = ports.0.get_mut(address) else {
            return 0;
        };
        let count = queue.packets.len().min(batch.most());
        for (index, packet) in queue.packets.drain(..count).enumerate() {
            buffers.lend(&mut batch.frames, packet.bytes);
            batch.describe(index, packet.from, packet.segment_bytes);
        }
        if queue.packets.is_empty() {
            queue.signal.note(Ready::default());
        }
        batch.note_drops((queue.dropped > 0).then_some(queue.dropped));
        count
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Signal(&self.signal)
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.sender.address)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(SwitchPort {
            sender: self.sender.clone(),
            signal: self.signal.clone(),
            attached: self.attached.clone(),
        })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.switch.lock().0.remove(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_to_a_port_that_is_cut_or_from_it() {
        let addresses = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        let switch = Switch::new();
        let [mut kept, mut cut] = addresses.map(|address| switch.attach(address));
        let mut batch = RxBatch::default();
        let [of_kept, of_cut] = addresses;
        kept.send(&[Message::alone(of_cut, b"waits")]);
        cut.send(&[Message::alone(of_kept, b"arrives")]);
        switch.cut(of_cut);
        kept.send(&[Message::alone(of_cut, b"lost")]);
        cut.send(&[Message::alone(of_kept, b"lost")]);
        assert_eq!(cut.receive(&mut batch), 0);
        assert_eq!(kept.receive(&mut batch), 1);
        assert_eq!(batch.bytes(0), b"arrives");
        drop(cut);
        let mut next = switch.attach(of_cut);
        kept.send(&[Message::alone(of_cut, b"to the next")]);
        assert_eq!(next.receive(&mut batch), 1);
    }
}
