//! What a worker sends and receives by: a queue of a port, and a port of UDP.
//!
//! A queue is looked at by all devices of its worker. Whoever looks takes its own datagrams, leaves
//! those of others in their mailboxes, and answers or drops the rest.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_base::sync::{Mutex, Ordering::Relaxed};

use super::eal;
use super::mailbox::Mailbox;
use super::nic::{Held, Outgoing, Received};
use super::port::{Port, Registration};
use crate::bypass::routes::Routes;
use crate::bypass::wire::{self, Ends, Reason};
use crate::packet::{Message, PacketDevice, PacketSender, RxBatch, Transmitted, Wakeup, send_each};
use crate::sys::frames::Lender;

/// Bursts that one call takes from its queue at most, while others' frames fill them.
const BURSTS: usize = 2;
/// A device looks after its port once in this many calls. Each time, it reads the clock. A worker
/// on a busy core makes a few hundred calls a second, so its port is still looked after.
const TENDS_EVERY: u32 = 1 << 8;

/// A queue and a port of UDP. Twins share them.
#[derive(Clone)]
pub struct DpdkDevice(Arc<Shared>);

/// What twins share. The mailbox is closed with the registration, and the port is closed last.
struct Shared {
    state: Mutex<State>,
    mailbox: Arc<Mailbox>,
    registration: Arc<Registration>,
    /// The same as `port`, as batches know it.
    lender: Arc<dyn Lender>,
    port: Arc<Port>,
}

/// What one thread at a time uses.
#[derive(Default)]
struct State {
    routes: Routes,
    calls: u32,
    /// What the driver has dropped, as far as no other device of the port reports it.
    drops: u32,
}

/// What is sent with one call of the driver, and the payload's length of each datagram among it.
#[derive(Default)]
struct Burst<'p> {
    frames: Outgoing<'p>,
    payloads: ArrayVec<usize, PACKET_BATCH_MAX>,
}

impl<'p> Burst<'p> {
    fn push(&mut self, frame: Held<'p>, payload_bytes: usize) {
        self.frames.push(frame);
        self.payloads.push(payload_bytes);
    }
}

/// Whose a datagram is.
enum Owner {
    /// The device that looks at the queue.
    Own,
    Other(Arc<Mailbox>),
}

impl DpdkDevice {
    /// A device with this mailbox, which is registered.
    pub fn new(port: &Arc<Port>, registration: &Arc<Registration>, mailbox: Arc<Mailbox>) -> Self {
        DpdkDevice(Arc::new(Shared {
            state: Mutex::default(),
            mailbox,
            registration: registration.clone(),
            lender: port.clone(),
            port: port.clone(),
        }))
    }
}

impl Shared {
    fn queue(&self) -> usize {
        self.mailbox.home
    }

    /// Lends what others have left for this device.
    fn receive_left(&self, state: &mut State, batch: &mut RxBatch) {
        while self.mailbox.count() > 0 && batch.count() < batch.most() {
            let Some(parked) = self.mailbox.next() else {
                break;
            };
            let frame = self.port.unparked(&parked);
            state.routes.learn(&parked.ends, 0);
            Port::lend(&self.lender, frame, (&parked.ends, parked.payload), batch);
        }
    }

    /// Lends what waits at the queue for this device.
    fn receive_frames(&self, state: &mut State, batch: &mut RxBatch) {
        let Some(mut queue) = self.port.nic.receiver(self.queue()) else {
            return;
        };
        // Whoever had the queue before may have left what arrived earlier than what waits there.
        self.receive_left(state, batch);
        if batch.count() >= batch.most() {
            return;
        }
        let mut out = Outgoing::new();
        let (mut taken, mut elsewhere) = (0, 0);
        for _ in 0..BURSTS {
            let received = queue.receive();
            let is_last = received.len() < PACKET_BATCH_MAX;
            for received in received {
                let Some((frame, owner, ends, payload)) = self.sort(received, &mut out) else {
                    continue;
                };
                let mailbox = match &owner {
                    Owner::Own if batch.count() < batch.most() => {
                        state.routes.learn(&ends, 0);
                        Port::lend(&self.lender, frame, (&ends, payload), batch);
                        taken += 1;
                        continue;
                    }
                    Owner::Own => &self.mailbox,
                    Owner::Other(other) => other,
                };
                if mailbox.leave(frame, ends, payload) {
                    let is_far = mailbox.is_alone && mailbox.home != self.queue();
                    elsewhere += u64::from(is_far);
                    taken += 1;
                } else {
                    self.port.asked.full.fetch_add(1, Relaxed);
                }
            }
            if is_last || batch.count() >= batch.most() {
                break;
            }
        }
        drop(queue);
        if taken > 0 {
            self.port.counts.note_burst(taken, elsewhere);
        }
        if !out.is_empty() {
            self.port.nic.send(self.queue(), &mut out);
        }
    }

    /// Whose datagram a frame is; `None` if it is none, and has been answered or counted.
    #[inline]
    fn sort<'p>(
        &'p self,
        received: Received<'p>,
        out: &mut Outgoing<'p>,
    ) -> Option<(Held<'p>, Owner, Ends, Range<usize>)> {
        let Received {
            frame,
            sum,
            is_usable,
            was_tagged,
        } = received;
        let port = &*self.port;
        let own = &*self.registration;
        let owner = |ip: &IpAddr, to| {
            if to == own.address.port() && own.addresses.contains(ip) {
                return Some(Owner::Own);
            }
            port.owner(*ip, to, self.queue()).map(Owner::Other)
        };
        let parsed = if !is_usable {
            Err(Reason::Length)
        } else if was_tagged {
            Err(Reason::NotOurs)
        } else {
            wire::parse_for(frame.bytes(), &port.rules, sum, owner)
        };
        match parsed {
            Ok((owner, ends, payload)) => Some((frame, owner, ends, payload)),
            Err(reason) => {
                let may_ask = reason == Reason::NotOurs && !was_tagged;
                if !may_ask || !port.attend(frame.bytes(), self.queue(), out) {
                    port.counts.refuse(reason);
                }
                None
            }
        }
    }

    /// The ends of a datagram to a peer. `None`: nobody knows the way, and the neighbour by whom it
    /// is reached is asked. That is also done where peers do not answer any more, as they may have
    /// got other hardware addresses.
    fn ends(&self, state: &mut State, peer: SocketAddr) -> Option<Ends> {
        let known = state.routes.find(&peer);
        if let Some(known) = known
            && !known.is_doubted
        {
            return Some(known.ends);
        }
        let ours = (
            &*self.registration.addresses,
            self.registration.address.port(),
        );
        let mut question = None;
        let is_doubted = known.is_some();
        let found = self.port.resolve(peer, ours, is_doubted, &mut question);
        if let Some(question) = question {
            self.port.tell(self.queue(), &question);
        }
        let Some(known) = known.map(|known| known.ends) else {
            return found;
        };
        let their_mac = found.map_or(known.their_mac, |found| found.their_mac);
        let now = Ends { their_mac, ..known };
        if now != known {
            state.routes.learn(&now, 0);
        }
        Some(now)
    }

    /// Adds a datagram to a burst. False: it is too long, nobody knows the way, or there is no free
    /// frame.
    fn put<'p>(&'p self, state: &mut State, message: &Message<'_>, burst: &mut Burst<'p>) -> bool {
        let bytes = wire::header_bytes(message.to.ip()) + message.bytes();
        let nic = &self.port.nic;
        if bytes > nic.frame_bytes_max {
            return false;
        }
        let Some(ends) = self.ends(state, message.to) else {
            self.port.asked.unresolved.fetch_add(1, Relaxed);
            return false;
        };
        let Some(mut frame) = nic.take() else {
            return false;
        };
        let parts = (message.header(), message.payload);
        let Some(bytes) = wire::fill_by(frame.bytes_mut(), &ends, parts, nic.sums()) else {
            return false;
        };
        self.suit_path(frame.bytes_mut(), message.to, bytes);
        frame.finish(bytes, nic.sums(), message.to.is_ipv6());
        burst.push(frame, message.bytes());
        true
    }

    /// Lets routers fragment a packet of this length if the path to its peer may not take it whole.
    /// There is no kernel that learns what a path takes.
    #[inline]
    fn suit_path(&self, frame: &mut [u8], peer: SocketAddr, frame_bytes: usize) {
        if !self.port.rules.fits_path(&peer.ip(), frame_bytes) {
            let identification = self.port.identification.fetch_add(1, Relaxed);
            wire::allow_fragments(frame, identification as u16);
        }
    }

    /// Sends a burst, and counts it.
    fn flush(&self, burst: &mut Burst<'_>, transmitted: &mut Transmitted) {
        let count = burst.frames.len();
        if count == 0 {
            return;
        }
        let sent = self.port.nic.send(self.queue(), &mut burst.frames);
        let bytes: usize = burst.payloads[..sent].iter().sum();
        burst.payloads.clear();
        transmitted.datagrams += sent as u64;
        transmitted.bytes += bytes as u64;
        if sent < count {
            transmitted.lost += (count - sent) as u64;
            transmitted.is_full = true;
            self.port
                .asked
                .full
                .fetch_add((count - sent) as u64, Relaxed);
        }
    }

    /// What the driver has dropped, as of late. Each frame is reported by one device of the port.
    fn drops(&self, state: &mut State) -> Option<u32> {
        state.calls = state.calls.wrapping_add(1);
        if state.calls.is_multiple_of(TENDS_EVERY) {
            let dropped = self.port.tend(self.queue());
            state.drops = state.drops.wrapping_add(dropped as u32);
        }
        (state.drops > 0).then_some(state.drops)
    }
}

impl PacketSender for DpdkDevice {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        eal::enter();
        let shared = &*self.0;
        let mut transmitted = Transmitted::default();
        let mut burst = Burst::default();
        let mut state = shared.state.lock();
        for message in messages {
            for datagram in message.apart() {
                if burst.frames.is_full() {
                    shared.flush(&mut burst, &mut transmitted);
                }
                if !shared.put(&mut state, &datagram, &mut burst) {
                    transmitted.lost += 1;
                }
            }
        }
        shared.flush(&mut burst, &mut transmitted);
        shared
            .port
            .counts
            .sent
            .fetch_add(transmitted.datagrams, Relaxed);
        transmitted
    }

    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        eal::enter();
        let shared = &*self.0;
        let frames = batch.frames.take_lent(&shared.lender);
        if frames.is_empty() {
            return send_each(self, batch);
        }
        let mut transmitted = Transmitted::default();
        let mut burst = Burst::default();
        let sums = shared.port.nic.sums();
        for (index, (frame, bytes)) in frames.into_iter().enumerate() {
            let peer = batch.peer(index);
            let header_bytes = wire::header_bytes(peer.ip());
            let mut frame = shared.port.returned(frame, header_bytes, bytes);
            if bytes == 0 {
                continue;
            }
            let whole = frame.bytes_mut();
            let our_port = shared.registration.address.port();
            let ends = wire::ends_of(whole, peer, our_port, &shared.port.rules);
            wire::finish_by(whole, &ends, bytes, sums);
            shared.suit_path(whole, peer, header_bytes + bytes);
            frame.finish(header_bytes + bytes, sums, peer.is_ipv6());
            burst.push(frame, bytes);
        }
        shared.flush(&mut burst, &mut transmitted);
        shared
            .port
            .counts
            .sent
            .fetch_add(transmitted.datagrams, Relaxed);
        transmitted
    }
}

impl PacketDevice for DpdkDevice {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        eal::enter();
        batch.clear();
        let shared = &*self.0;
        let mut state = shared.state.lock();
        shared.receive_left(&mut state, batch);
        if batch.count() < batch.most() {
            shared.receive_frames(&mut state, batch);
        }
        let drops = shared.drops(&mut state);
        batch.note_drops(drops);
        batch.count()
    }

    /// Drivers write to memory, and nothing tells of it.
    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Poll
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.0.registration.address)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(self.clone())
    }
}
