//! A worker's sockets at the queues of an interface as one packet device.
//!
//! A device has a socket of the kernel's as well, bound to the same address. It keeps the address
//! from others, and carries what the queues cannot: datagrams in fragments, those longer than a
//! frame or than a path may take whole, and those to hosts that have not sent anything of late, or
//! by another interface. So the device receives whatever reaches the address, by any interface, and
//! sends to whatever the kernel can reach, from the address that was asked. The first datagram of a
//! client goes this way, too: the kernel asks for the server's hardware address, and the reply,
//! which arrives at a queue, shows it.

#![allow(unsafe_code, reason = "frames are known by addresses")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::{PACKET_BATCH_MAX, XDP_RING_ENTRIES};
use glimmer_base::sync::{Mutex, Ordering::Relaxed};
use rustix::event::epoll;

use super::attached::{Attached, Flushed};
use super::port::{Port, Registration};
use super::socket::{self, Descriptor};
use crate::bypass::figures::Counted;
use crate::bypass::routes::{BY_KERNEL, Routes};
use crate::bypass::wire::{self, Ends, Reason, Rules};
use crate::packet::{
    Bypass, Message, PacketDevice, PacketSender, RxBatch, Transmitted, Wakeup, send_each,
};
use crate::sys::frames::{Frame, Lender};
use crate::sys::options;
use crate::udp::UdpDevice;

/// While frames arrive without a pause, the kernel's socket has its turn once in so many calls.
const KERNEL_EVERY: u32 = 32;
/// The kernel is asked what it has dropped once in so many calls.
const DROPS_EVERY: u32 = 1 << 10;

/// Sockets at queues of an interface, and one of the kernel's. Twins share them.
#[derive(Clone)]
pub struct XdpDevice(Arc<Shared>);

/// What twins share.
struct Shared {
    state: Mutex<State>,
    /// Readable while something waits at any of the sockets.
    waiting: OwnedFd,
    kernel: UdpDevice,
    rules: Rules,
    address: SocketAddr,
    /// The queue whose frames are meant for this worker, if its port is its own.
    home: Option<usize>,
    /// The same as `port`, as batches know it.
    lender: Arc<dyn Lender>,
    /// `None` from when the device closes: its routes end first.
    registration: Option<Arc<Registration>>,
    port: Arc<Port>,
}

/// What one thread at a time uses.
struct State {
    sockets: Vec<Attached>,
    /// The socket at each queue.
    by_queue: Vec<Option<usize>>,
    routes: Routes,
    /// The socket that is asked first.
    first: usize,
    calls: u32,
    /// Whether the kernel looks at the queues when a socket is asked.
    is_busy_polling: bool,
    /// What the queues and the kernel's socket have dropped.
    drops: [u32; 2],
}

/// What devices are made of.
pub struct Parts {
    pub sockets: Vec<Attached>,
    pub kernel: UdpDevice,
    pub rules: Rules,
    pub registration: Arc<Registration>,
    /// The queue whose frames are meant for the device, if no other one shares its port.
    pub home: Option<usize>,
}

impl XdpDevice {
    /// A device of these sockets.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn new(port: &Arc<Port>, parts: Parts) -> io::Result<XdpDevice> {
        // A kernel that cannot tell chooses the address of a reply.
        let _ = parts.kernel.tell_destinations();
        let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |fd| {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&waiting, fd, data, epoll::EventFlags::IN)
        };
        watch(parts.kernel.as_fd())?;
        let mut by_queue = vec![None; port.queues.len()];
        for (index, attached) in parts.sockets.iter().enumerate() {
            watch(attached.socket.as_fd())?;
            by_queue[attached.queue] = Some(index);
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                sockets: parts.sockets,
                by_queue,
                routes: Routes::default(),
                first: 0,
                calls: 0,
                is_busy_polling: false,
                drops: [0; 2],
            }),
            waiting,
            address: parts.kernel.address()?,
            kernel: parts.kernel,
            rules: parts.rules,
            home: parts.home,
            lender: port.clone(),
            registration: Some(parts.registration),
            port: port.clone(),
        });
        let mut devices = port.devices.lock();
        devices.retain(|device| device.strong_count() > 0);
        let counted: Arc<dyn Counted> = shared.clone();
        devices.push(Arc::downgrade(&counted));
        Ok(XdpDevice(shared))
    }
}

impl Shared {
    /// Lends what waits at the queues to the batch.
    fn receive_frames(&self, state: &mut State, batch: &mut RxBatch) -> usize {
        let sockets = state.sockets.len();
        let mut elsewhere = 0;
        for step in 0..sockets {
            let index = (state.first + step) % sockets;
            let before = batch.count();
            self.receive_at(state, index, batch);
            let queue = state.sockets[index].queue;
            if self.home.is_some_and(|home| queue != home) {
                elsewhere += (batch.count() - before) as u64;
            }
        }
        state.first = (state.first + 1) % sockets.max(1);
        if batch.count() > 0 {
            self.port.counts.note_burst(batch.count(), elsewhere);
            if self.port.is_away.load(Relaxed) {
                self.port.is_away.store(false, Relaxed);
            }
        }
        batch.count()
    }

    /// Lends what waits at one socket, and gives back what is not answered: not more frames than a
    /// batch has.
    fn receive_at(&self, state: &mut State, index: usize, batch: &mut RxBatch) {
        let Attached { socket, queue, .. } = &mut state.sockets[index];
        self.port.queues[*queue].recycle();
        let mut refused: ArrayVec<u64, PACKET_BATCH_MAX> = ArrayVec::new();
        while batch.count() < batch.most() && !refused.is_full() {
            let Some(frame) = socket.rx.next() else { break };
            match self.lend(*queue, frame, batch) {
                Ok(ends) => state.routes.learn(&ends, index as u32),
                Err(reason) => {
                    self.port.counts.refuse(reason);
                    refused.push(frame.addr);
                }
            }
        }
        socket.rx.tell();
        if !refused.is_empty() {
            self.port.queues[*queue].give_back(refused.into_iter());
        }
    }

    /// Adds the datagram in a frame to the batch.
    #[inline]
    fn lend(&self, queue: usize, frame: Descriptor, batch: &mut RxBatch) -> Result<Ends, Reason> {
        let umem = &self.port.queues[queue].umem;
        // SAFETY: the kernel has passed the frame to us with this entry of the ring, and nothing
        // else refers to it yet.
        let bytes = unsafe { umem.bytes_mut(frame.addr, frame.len as usize) };
        let bytes = bytes.ok_or(Reason::Length)?;
        let (ends, payload) = wire::parse(bytes, &self.rules)?;
        let payload = &mut bytes[payload];
        let count = payload.len();
        let lent = Frame {
            at: std::ptr::NonNull::from(payload).cast(),
            id: Port::frame_id(queue, umem.frame_of(frame.addr)),
        };
        // SAFETY: the memory is initialised and stays mapped as long as the port, which the lender
        // is. The frame is ours, its slice above is not used any more, and it returns to the pool
        // of free frames only when the lender takes it back.
        unsafe { batch.frames.lend(&self.lender, lent, count) };
        batch.describe(batch.count() - 1, ends.theirs, count.max(1));
        Ok(ends)
    }

    /// Has the kernel take what the NIC has received, and run the program on it, within this call.
    fn look_at_queues(&self, state: &State) {
        for attached in &state.sockets {
            // There is nothing to be done about a driver that does not.
            let _ = socket::kick_fill(attached.socket.as_fd());
        }
    }

    /// Receives by the kernel's socket, by which the replies leave, too.
    fn receive_kernel(&self, state: &mut State, batch: &mut RxBatch) -> usize {
        let routes = &mut state.routes;
        let received = self.kernel.try_receive_told(batch, |theirs, ours| {
            let mut ours = ours.unwrap_or(self.address);
            ours.set_port(self.address.port());
            let ends = Ends {
                our_mac: [0; 6],
                their_mac: [0; 6],
                ours,
                theirs,
            };
            routes.learn(&ends, BY_KERNEL);
        });
        let received = received.unwrap_or(0);
        if received > 0 {
            if let Some(Attached { socket, .. }) = state.sockets.first() {
                let looked = socket::kick_fill(socket.as_fd());
                let is_away = looked.is_err_and(|error| socket::is_away(&error));
                self.port.is_away.store(is_away, Relaxed);
            }
            let datagrams = (0..received)
                .map(|index| batch.datagrams(index) as u64)
                .sum();
            self.port
                .counts
                .kernel_received
                .fetch_add(datagrams, Relaxed);
            state.drops[1] = batch.drops().unwrap_or(state.drops[1]);
        }
        received
    }

    /// What the queues have dropped of the device's frames.
    #[cold]
    fn dropped(&self, state: &State) -> u32 {
        let of = |attached: &Attached| {
            let statistics = socket::statistics(attached.socket.as_fd());
            statistics.map_or(0, |told| told.rx_dropped + told.rx_ring_full)
        };
        state.sockets.iter().map(of).sum::<u64>() as u32
    }

    /// Whether a frame of this length goes to a peer by a queue. Otherwise the kernel cuts it up,
    /// learns which packets the path takes, or finds another way.
    #[inline]
    fn is_for_queue(&self, peer: IpAddr, bytes: usize) -> bool {
        bytes <= self.port.frame_bytes_max
            && self.rules.fits_path(&peer, bytes)
            && !self.port.is_away.load(Relaxed)
    }

    /// Puts a datagram into the ring of the socket that its peer's last one arrived at.
    ///
    /// # Errors
    ///
    /// It is not for a queue, the peer is unknown, or there is no free frame or place. The address
    /// of ours that the peer last sent to, if that is known.
    fn put(&self, state: &mut State, message: &Message<'_>) -> Result<(), Option<SocketAddr>> {
        // Of a peer that is doubted, the kernel finds out where it is now, and by which address of
        // ours it is reached. Its answer shows both.
        let found = state.routes.find(&message.to);
        let found = found.filter(|found| !found.is_doubted).ok_or(None)?;
        let ends = &found.ends;
        let by_kernel = Err(Some(ends.ours));
        let bytes = wire::header_bytes(ends.theirs.ip()) + message.bytes();
        if found.socket == BY_KERNEL || !self.is_for_queue(ends.theirs.ip(), bytes) {
            return by_kernel;
        }
        let Attached { socket, queue, .. } = &mut state.sockets[found.socket as usize];
        let queue = &self.port.queues[*queue];
        let Some(address) = queue.take() else {
            return by_kernel;
        };
        // SAFETY: the frame was free, so nothing else refers to it.
        let frame = unsafe { queue.umem.bytes_mut(address, bytes) };
        let frame = frame.expect("the longest frame fits into a frame");
        let filled = wire::fill(frame, ends, message.header(), message.payload);
        let is_put = filled.is_some() && socket.tx.push(descriptor(address, bytes));
        if !is_put {
            queue.give_back([address].into_iter());
            return by_kernel;
        }
        Ok(())
    }

    /// Puts a reply that lies in the frame of its request into the ring of the socket that the
    /// request arrived at.
    ///
    /// # Errors
    ///
    /// It is not for a queue, that ring is full, or the device has no socket at the queue. The
    /// reply is still whole. The address of ours that the request came to.
    fn put_back(
        &self,
        state: &mut State,
        frame: Frame,
        peer: SocketAddr,
        bytes: usize,
    ) -> Result<(), Option<SocketAddr>> {
        let (queue, address) = Port::of_frame_id(frame.id);
        let umem = &self.port.queues[queue].umem;
        let header_bytes = wire::header_bytes(peer.ip());
        let start = umem.address_of(frame.at) - header_bytes as u64;
        debug_assert_eq!(umem.frame_of(start), address);
        // SAFETY: the batch has given the frame up, so nothing else refers to it.
        let whole = unsafe { umem.bytes_mut(start, header_bytes + bytes) }.ok_or(None)?;
        let ends = wire::ends_of(whole, peer, self.address.port(), &self.rules);
        let by_kernel = Some(ends.ours);
        let index = state.by_queue.get(queue).copied().flatten();
        let index = index.filter(|_| self.is_for_queue(peer.ip(), whole.len()));
        let socket = &mut state.sockets[index.ok_or(by_kernel)?];
        wire::finish(whole, &ends, bytes);
        let entry = descriptor(start, whole.len());
        if socket.socket.tx.push(entry) {
            return Ok(());
        }
        socket.flush();
        let is_put = socket.socket.tx.push(entry);
        is_put.then_some(()).ok_or(by_kernel)
    }

    /// Sends a datagram by the kernel's socket, from this of its addresses if it has several.
    #[cold]
    fn send_by_kernel(&self, message: &Message<'_>, ours: Option<SocketAddr>) -> Transmitted {
        match ours.filter(|_| self.address.ip().is_unspecified()) {
            Some(ours) => self.kernel.send_from(message, ours),
            None => self.kernel.clone().send(&[*message]),
        }
    }

    /// Has the kernel send what was put into the rings. What it does not take it gets with the next
    /// call, for which the worker is woken. False: the interface is down or gone.
    #[inline]
    fn flush(&self, state: &mut State) -> bool {
        let mut is_there = true;
        for attached in &mut state.sockets {
            let flushed = attached.flush();
            is_there &= flushed != Flushed::Nowhere;
            let has_rest = flushed == Flushed::Part;
            if has_rest != attached.has_rest {
                self.watch_room(attached, has_rest);
            }
        }
        if !is_there {
            self.port.is_away.store(true, Relaxed);
        }
        is_there
    }

    /// Has the kernel send what was put into the rings, and counts that with what its socket has
    /// sent. If the interface has just been lost, so is what was put into the rings.
    #[inline]
    fn finish(
        &self,
        state: &mut State,
        by_queues: Transmitted,
        by_kernel: Transmitted,
    ) -> Transmitted {
        let mut transmitted = by_queues;
        if !self.flush(state) {
            transmitted = Transmitted {
                lost: by_queues.datagrams,
                ..Transmitted::default()
            };
        }
        let counts = &self.port.counts;
        counts.sent.fetch_add(transmitted.datagrams, Relaxed);
        if by_kernel.datagrams > 0 {
            counts.kernel_sent.fetch_add(by_kernel.datagrams, Relaxed);
        }
        transmitted.add(by_kernel);
        transmitted
    }

    /// Has the worker woken, or not any more, while there is room in a socket's TX ring.
    #[cold]
    fn watch_room(&self, attached: &mut Attached, is_watched: bool) {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, is_watched);
        let data = epoll::EventData::new_u64(0);
        let changed = epoll::modify(&self.waiting, attached.socket.as_fd(), data, flags);
        if changed.is_ok() {
            attached.has_rest = is_watched;
        }
    }
}

impl Drop for Shared {
    /// Sends what is to be sent, and gives back what waits to be received: the port may live on.
    fn drop(&mut self) {
        self.registration = None;
        let mut state = self.state.lock();
        self.flush(&mut state);
        for Attached { socket, queue, .. } in &mut state.sockets {
            let waiting = std::iter::from_fn(|| socket.rx.next().map(|frame| frame.addr));
            self.port.queues[*queue].give_back(waiting);
        }
    }
}

impl Counted for Shared {
    fn add_to(&self, figures: &mut Bypass) {
        let state = self.state.lock();
        for attached in &state.sockets {
            figures.rx_waiting += u64::from(attached.socket.rx.waiting());
            figures.tx_waiting += u64::from(attached.socket.tx.waiting());
            if let Ok(told) = socket::statistics(attached.socket.as_fd()) {
                figures.dropped_full += told.rx_ring_full;
                figures.dropped_no_frame += told.rx_dropped;
            }
        }
    }
}

fn descriptor(addr: u64, bytes: usize) -> Descriptor {
    Descriptor {
        addr,
        len: bytes as u32,
        options: 0,
    }
}

const _: () = assert!(XDP_RING_ENTRIES.is_power_of_two());

impl PacketSender for XdpDevice {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        let shared = &*self.0;
        let (mut by_queues, mut by_kernel) = <(Transmitted, Transmitted)>::default();
        let mut state = shared.state.lock();
        for message in messages {
            for datagram in message.apart() {
                match shared.put(&mut state, &datagram) {
                    Ok(()) => by_queues.count(&datagram),
                    Err(ours) => by_kernel.add(shared.send_by_kernel(&datagram, ours)),
                }
            }
        }
        shared.finish(&mut state, by_queues, by_kernel)
    }

    fn send_back(&mut self, batch: &mut RxBatch) -> Transmitted {
        let frames = batch.frames.take_lent(&self.0.lender);
        if frames.is_empty() {
            return send_each(self, batch);
        }
        let shared = &*self.0;
        let (mut by_queues, mut by_kernel) = <(Transmitted, Transmitted)>::default();
        let mut unused: ArrayVec<Frame, PACKET_BATCH_MAX> = ArrayVec::new();
        let mut state = shared.state.lock();
        for (index, (frame, bytes)) in frames.into_iter().enumerate() {
            let peer = batch.peer(index);
            if bytes > 0 {
                let Err(ours) = shared.put_back(&mut state, frame, peer, bytes) else {
                    by_queues.datagrams += 1;
                    by_queues.bytes += bytes as u64;
                    continue;
                };
                // SAFETY: the batch has given the frame up with as many initialised bytes, and
                // nothing else refers to it before it is taken back below.
                let reply = unsafe { std::slice::from_raw_parts(frame.at.as_ptr(), bytes) };
                by_kernel.add(shared.send_by_kernel(&Message::alone(peer, reply), ours));
            }
            unused.push(frame);
        }
        let transmitted = shared.finish(&mut state, by_queues, by_kernel);
        drop(state);
        if !unused.is_empty() {
            shared.lender.take_back(&unused);
        }
        transmitted
    }
}

impl PacketDevice for XdpDevice {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        batch.clear();
        let shared = &*self.0;
        let mut state = shared.state.lock();
        shared.flush(&mut state);
        state.calls = state.calls.wrapping_add(1);
        if state.calls.is_multiple_of(DROPS_EVERY) {
            state.drops[0] = shared.dropped(&state);
        }
        let mut received = 0;
        if state.calls.is_multiple_of(KERNEL_EVERY) {
            received = shared.receive_kernel(&mut state, batch);
        }
        if received == 0 {
            received = shared.receive_frames(&mut state, batch);
        }
        if received == 0 && state.is_busy_polling {
            shared.look_at_queues(&state);
            received = shared.receive_frames(&mut state, batch);
        }
        if received == 0 && !state.calls.is_multiple_of(KERNEL_EVERY) {
            received = shared.receive_kernel(&mut state, batch);
        }
        let drops = state.drops[0].wrapping_add(state.drops[1]);
        batch.note_drops((drops > 0).then_some(drops));
        received
    }

    fn wakeup(&self) -> Wakeup<'_> {
        Wakeup::Descriptor(self.0.waiting.as_fd())
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.0.address)
    }

    fn poll_busily(&self, time_us: u32) -> io::Result<()> {
        let mut state = self.0.state.lock();
        for attached in &state.sockets {
            options::poll_busily(attached.socket.as_fd(), time_us).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!(
                        "xdp:{}: the kernel does not look at queues for a socket \
                         (SO_PREFER_BUSY_POLL: {error}): leave --busy-poll out, or give \
                         --busy-poll always",
                        self.0.port.interface.name
                    ),
                )
            })?;
        }
        state.is_busy_polling = !state.sockets.is_empty();
        drop(state);
        self.0.kernel.poll_busily(time_us)
    }

    /// The kernel learns of them also where the datagram went by a queue: its own socket has the
    /// address.
    fn report_refusals(&self) -> io::Result<()> {
        self.0.kernel.report_refusals()
    }

    fn take_refusal(&self, quoted: &mut [u8]) -> Option<(SocketAddr, usize)> {
        self.0.kernel.take_refusal(quoted)
    }

    fn twin(&self) -> Box<dyn PacketDevice> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
