//! A device with faults, all of which follow from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glimmer_base::limits::{PACKET_BATCH_MAX, SWITCH_QUEUE_PACKETS};
use glimmer_base::sync::{AtomicU64, Ordering};

use crate::chance::Chance;

use super::{Message, PacketDevice, PacketSender, RxBatch, Transmitted, TxBatch, Wakeup};

/// What happens to datagrams on their way. Probabilities are between 0 and 1, and are drawn for
/// each datagram; the default is that nothing happens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The datagram is lost.
    pub loss: f64,
    /// It arrives twice. The copy meets delay, reordering and truncation of its own.
    pub duplication: f64,
    /// It is held back by an additional time between 0 and `reordering_us_max`, so that later ones
    /// overtake it.
    pub reordering: f64,
    /// How long a datagram is held back at most, in microseconds.
    pub reordering_us_max: u64,
    /// Its end is missing: any number of bytes is left, but not all.
    pub truncation: f64,
    /// How long every datagram is under way at least, in microseconds.
    pub delay_us_min: u64,
    /// How long it is under way at most, unless it is reordered; evenly distributed.
    pub delay_us_max: u64,
}

/// A time in microseconds that somebody moves on and others read.
#[derive(Clone, Debug, Default)]
pub struct Microseconds(Arc<AtomicU64>);

impl Microseconds {
    /// The time.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves it on. Time that went back would keep packets back, and nothing else.
    pub fn set(&self, now_us: u64) {
        self.0.store(now_us, Ordering::Relaxed);
    }
}

/// Another device, in front of which datagrams are lost, repeated, reordered, delayed and truncated
/// in either direction. What happens to the n-th datagram of a direction follows from the seed, its
/// length, and the time; the wrapped device sees no fault.
///
/// Every datagram is judged by itself, also those of a segment batch, and is copied once. Datagrams
/// that arrive together and are of one length travel on as a segment batch.
///
/// Nothing wakes the worker when a delay has passed, so such a device is polled. What is to be sent
/// later leaves with the next call of [`PacketDevice::receive`] or [`PacketSender::send`].
/// [`FaultInjector::next_us`] says when that should be.
pub struct FaultInjector<D> {
    device: D,
    time: Microseconds,
    /// Twins draw faults from one sequence.
    receiving: Arc<Mutex<Network>>,
    sending: Arc<Mutex<Network>>,
    /// What the device brings.
    batch: RxBatch,
}

/// One direction.
struct Network {
    faults: Faults,
    random: Chance,
    under_way: BinaryHeap<Reverse<Packet>>,
    /// Packets so far.
    count: u64,
}

/// Ordered by the time at which it arrives, then by the order in which packets were put in.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    due_us: u64,
    number: u64,
    peer: SocketAddr,
    bytes: Vec<u8>,
}

impl Network {
    fn new(faults: Faults, seed: u64) -> Network {
        Network {
            faults,
            random: Chance::new(seed),
            under_way: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Takes a datagram in.
    fn put(&mut self, peer: SocketAddr, datagram: &[u8], now_us: u64) {
        if self.random.happens(self.faults.loss) {
            return;
        }
        let copies = 1 + usize::from(self.random.happens(self.faults.duplication));
        for _ in 0..copies {
            let delays_us = self.faults.delay_us_min..=self.faults.delay_us_max;
            let mut delay_us = self.random.within(delays_us);
            if self.random.happens(self.faults.reordering) {
                delay_us += self.random.within(0..=self.faults.reordering_us_max);
            }
            let mut bytes = datagram.to_vec();
            if !bytes.is_empty() && self.random.happens(self.faults.truncation) {
                let longest = bytes.len() as u64 - 1;
                bytes.truncate(self.random.within(0..=longest) as usize);
            }
            self.under_way.push(Reverse(Packet {
                due_us: now_us.saturating_add(delay_us),
                number: self.count,
                peer,
                bytes,
            }));
            self.count += 1;
        }
    }

    /// The next packet that has arrived by now.
    fn next(&mut self, now_us: u64) -> Option<Packet> {
        let Reverse(first) = self.under_way.peek()?;
        (first.due_us <= now_us).then(|| self.under_way.pop().expect("there is a first").0)
    }

    /// When the next packet arrives.
    fn next_us(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse(packet)| packet.due_us)
    }

    /// Sends messages: what has arrived by now leaves by `sender`.
    fn send(
        &mut self,
        messages: &[Message<'_>],
        now_us: u64,
        sender: &mut (impl PacketSender + ?Sized),
    ) -> Transmitted {
        let mut transmitted = Transmitted::default();
        for message in messages {
            transmitted.count(message);
            for segment in message.apart() {
                let datagram = [segment.header(), segment.payload].concat();
                self.put(message.to, &datagram, now_us);
            }
        }
        self.deliver(now_us, sender);
        transmitted
    }

    /// Sends what has arrived by now.
    fn deliver(&mut self, now_us: u64, sender: &mut (impl PacketSender + ?Sized)) {
        let arrived: Vec<Packet> = std::iter::from_fn(|| self.next(now_us)).collect();
        let mut out = TxBatch::new(sender);
        for packet in &arrived {
            out.push(Message::alone(packet.peer, &packet.bytes));
        }
        // What the device does not take is lost, as by any other fault.
        out.finish();
    }
}

impl<D: PacketDevice> FaultInjector<D> {
    /// Wraps a device. Different faults may happen to what is received and to what is sent. The
    /// time is read whenever something is received or sent.
    ///
    /// # Panics
    ///
    /// If a probability is not between 0 and 1.
    pub fn new(
        device: D,
        (receiving, sending): (Faults, Faults),
        seed: u64,
        time: Microseconds,
    ) -> FaultInjector<D> {
        for faults in [&receiving, &sending] {
            for probability in [
                faults.loss,
                faults.duplication,
                faults.reordering,
                faults.truncation,
            ] {
                assert!((0.0..=1.0).contains(&probability), "{probability}");
            }
        }
        FaultInjector {
            device,
            time,
            receiving: Arc::new(Mutex::new(Network::new(receiving, seed))),
            // Another sequence, so that what is sent does not change what happens to what is
            // received.
            sending: Arc::new(Mutex::new(Network::new(sending, seed ^ u64::MAX))),
            batch: RxBatch::default(),
        }
    }

    /// When the next datagram arrives here or leaves, if one is under way, in microseconds.
    pub fn next_us(&self) -> Option<u64> {
        let sending_us = lock(&self.sending).next_us();
        let receiving_us = lock(&self.receiving).next_us();
        receiving_us.into_iter().chain(sending_us).min()
    }

    /// What happens from here on to datagrams in either direction. Those that are under way arrive
    /// as they would have.
    pub fn set_faults(&mut self, faults: Faults) {
        lock(&self.receiving).faults = faults;
        lock(&self.sending).faults = faults;
    }

    /// The device that is wrapped.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
}

impl<D: PacketDevice> PacketSender for FaultInjector<D> {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        lock(&self.sending).send(messages, self.time.now(), &mut self.device)
    }
}

impl<D: PacketDevice> PacketDevice for FaultInjector<D> {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        batch.clear();
        let now_us = self.time.now();
        lock(&self.sending).deliver(now_us, &mut self.device);
        let mut drops = None;
        let mut receiving = lock(&self.receiving);
        // As much as may wait at a device of this process: a sender that never stops waits for the
        // next call.
        for _ in 0..SWITCH_QUEUE_PACKETS / PACKET_BATCH_MAX {
            if self.device.receive(&mut self.batch) == 0 {
                break;
            }
            drops = self.batch.drops().or(drops);
            for index in 0..self.batch.count() {
                let peer = self.batch.peer(index);
                for datagram in self.batch.segments(index) {
                    receiving.put(peer, datagram, now_us);
                }
            }
        }
        while batch.count() < batch.most()
            && let Some(packet) = receiving.next(now_us)
        {
            let is_of_last =
                (batch.count().checked_sub(1)).is_some_and(|last| batch.peer(last) == packet.peer);
            if !is_of_last || !batch.extend_last(&packet.bytes) {
                batch.push(packet.peer, &packet.bytes, packet.bytes.len().max(1));
            }
        }
        batch.note_drops(drops);
        batch.count()
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Poll
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.device.address()
    }

    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        self.device.poll_busily(time_us)
    }

    fn report_arrivals(&self) -> io::Result<()> {
        self.device.report_arrivals()
    }

    fn report_refusals(&self) -> io::Result<()> {
        self.device.report_refusals()
    }

    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        self.device.take_refusal(quoted)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(FaultInjector {
            device: self.device.twin(),
            time: self.time.clone(),
            receiving: self.receiving.clone(),
            sending: self.sending.clone(),
            batch: RxBatch::default(),
        })
    }
}

fn lock(network: &Mutex<Network>) -> MutexGuard<'_, Network> {
    network.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
