//! One packet device, and how a worker learns about arriving datagrams.
//!
//! Each worker has a twin of every device of every worker, in the same order. A twin that the
//! worker does not receive from only sends: replies leave through the device at which their
//! requests arrived.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_base::limits::{DATAGRAM_REQUESTS_PER_TURN_MAX, PACKET_BATCH_MAX};
use glimmer_base::sync::{AtomicU32, Ordering::Relaxed};
use glimmer_transport::Poller;
use glimmer_transport::packet::{PacketDevice, RxBatch, Transmitted, Wakeup};

use crate::admin::alarm::Failure;
use crate::core::Core;
use crate::stream::registry::SocketEntry;

/// Who watches for arriving datagrams.
///
/// The kernel reports every datagram that arrives or was sent to a poller that watches the socket.
/// With full bursts, these reports cost both ends more time than the server's own work, and they
/// are not needed. The worker then polls the device itself in every turn, until a poll finds
/// nothing, or with busy polling until it has found nothing for a while. A device without wake-ups
/// is always polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Poller,
    Worker,
    /// The worker receives nothing from it.
    Off,
}

/// What a worker does about a device under the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// It receives nothing.
    None,
    /// It receives all that arrives, and no other worker does.
    Alone,
    /// It receives in each turn, at most requests of this number, and others receive as well.
    Read(usize),
    /// It receives while it has nothing else to do.
    Take,
}

/// The service at a packet device.
pub(crate) enum Service {
    /// memcached's UDP protocol.
    Memcached,
    /// The native protocol.
    Native {
        /// The ports of all workers at this address.
        ports: Arc<[u16]>,
    },
}

impl Service {
    fn twin(&self) -> Service {
        match self {
            Service::Memcached => Service::Memcached,
            Service::Native { ports } => Service::Native {
                ports: ports.clone(),
            },
        }
    }
}

/// The requests in a segment batch before the first is received.
const UNKNOWN: usize = usize::MAX;

/// A packet device that receives requests.
pub(crate) struct PacketSource {
    pub(super) device: Box<dyn PacketDevice>,
    pub(super) service: Service,
    /// The worker whose RX queue this is.
    pub rx: usize,
    pub(super) duty: Duty,
    /// Something may wait: the poller has said so, or not all has been received yet.
    pub(super) is_called: bool,
    /// Requests that may still be received in this round; below zero, what was received beyond
    /// the budget of earlier ones.
    pub(super) credit: isize,
    /// Requests in a segment batch, as of the last ones received, or of late where no other worker
    /// receives from it.
    pub(super) segments: usize,
    watched_by: Watch,
    /// With busy polling, when the worker has received something, if it looks for more.
    heard_ns: Option<u64>,
    /// The device's last reported count of dropped datagrams, of all twins.
    drops: Arc<AtomicU32>,
    /// Its token in the poller.
    token: u64,
}

impl PacketSource {
    /// A device of this worker.
    pub fn new(rx: usize, device: Box<dyn PacketDevice>, service: Service) -> PacketSource {
        PacketSource {
            device,
            service,
            rx,
            duty: Duty::None,
            is_called: false,
            credit: 0,
            segments: UNKNOWN,
            watched_by: Watch::Off,
            heard_ns: None,
            drops: Arc::default(),
            token: 0,
        }
    }

    /// The same device for another worker.
    pub fn twin(&self) -> PacketSource {
        PacketSource {
            drops: self.drops.clone(),
            ..PacketSource::new(self.rx, self.device.twin(), self.service.twin())
        }
    }

    /// The same source, with its token in the poller.
    pub fn with_token(self, token: u64) -> PacketSource {
        PacketSource { token, ..self }
    }

    /// Has the kernel look at the NIC's queue while the worker looks at the device.
    ///
    /// # Errors
    ///
    /// The device's address, and why that is not possible.
    pub fn poll_busily(&self, us: u32) -> Result<(), (SocketAddr, io::Error)> {
        self.device.poll_busily(us).map_err(|error| {
            let address = self.device.address();
            (address.unwrap_or(([0; 4], 0).into()), error)
        })
    }

    /// Whether the worker must poll the device itself.
    #[inline]
    pub fn is_looked_at(&self) -> bool {
        self.watched_by == Watch::Worker
    }

    /// Whether something may wait that this worker receives.
    #[inline]
    pub fn may_have(&self) -> bool {
        self.is_called || self.is_looked_at()
    }

    /// Segment batches that one call may bring to a worker that is the only one to receive from it:
    /// with more requests than a turn has in as many of late, it is fewer.
    #[inline]
    pub(super) fn affords_alone(&self) -> usize {
        match self.segments {
            UNKNOWN => PACKET_BATCH_MAX,
            segments => {
                (DATAGRAM_REQUESTS_PER_TURN_MAX as usize / segments).clamp(1, PACKET_BATCH_MAX)
            }
        }
    }

    /// Notes what such a call brought. Long segment batches are forgotten slowly, so that a
    /// sender that mixes them with short ones gains little.
    #[inline]
    pub(super) fn note_segments(&mut self, received: usize, requests: u64) {
        if received > 0 {
            let before = if self.segments == UNKNOWN {
                1
            } else {
                self.segments
            };
            let segments = (requests as usize).div_ceil(received);
            self.segments = segments.max(before - before / 8);
        }
    }

    /// Whether the device has no wake-ups.
    pub fn is_polled(&self) -> bool {
        matches!(self.device.wakeup(), Wakeup::Poll)
    }

    /// Changes who watches the device. If the kernel refuses, the worker looks at it, or goes on
    /// to be told of it.
    #[inline]
    pub(super) fn watch_by(&mut self, who: Watch, poller: &Poller) {
        if self.watched_by != who {
            self.change_watch(who, poller);
        }
    }

    #[cold]
    fn change_watch(&mut self, who: Watch, poller: &Poller) {
        self.watched_by = match (who, self.device.wakeup()) {
            (Watch::Poller, Wakeup::Poll) => Watch::Worker,
            (Watch::Poller, wakeup) => match poller.watch_shared(wakeup, self.token) {
                Ok(()) => Watch::Poller,
                Err(_) => Watch::Worker,
            },
            (Watch::Worker | Watch::Off, wakeup) if self.watched_by == Watch::Poller => {
                match poller.forget(wakeup) {
                    Ok(()) => who,
                    Err(_) => Watch::Poller,
                }
            }
            (Watch::Worker | Watch::Off, _) => who,
        };
    }

    /// Whether the worker, which has looked and found this, looks again without being called: with
    /// busy polling, until it has found nothing for a while.
    #[inline]
    pub(super) fn looks_again(&mut self, received: usize, core: &Core) -> bool {
        let config = &core.shared.config;
        let busy_poll_ns = config.busy_poll.ns();
        if busy_poll_ns == 0 {
            return false;
        }
        let now_ns = config.clock.ns();
        if received > 0 {
            self.heard_ns = Some(now_ns);
            return true;
        }
        let is_soon = |heard_ns: &u64| now_ns - *heard_ns < busy_poll_ns;
        self.heard_ns = self.heard_ns.filter(is_soon);
        self.heard_ns.is_some()
    }

    /// Adds the device to the connection registry.
    pub fn register(&self, core: &Core) {
        let registry = &core.shared.registry;
        let number = registry.number(self.device.wakeup());
        let address = self.device.address().ok();
        let entry = SocketEntry::packets(number, address, core.now.ms);
        registry.add(Arc::new(entry));
    }

    /// Receives and counts one burst, as many segment batches as the batch is bounded to. Returns
    /// their number and that of the datagrams.
    #[inline]
    pub(super) fn receive(&mut self, batch: &mut RxBatch, core: &mut Core) -> (usize, u64) {
        let received = self.device.receive(batch);
        let mut datagrams = 0;
        for index in 0..received {
            datagrams += batch.datagrams(index) as u64;
            core.tally.bytes_read += batch.bytes(index).len() as u64;
        }
        core.tally.datagrams_received += datagrams;
        core.tally.drained += if self.rx == core.me { 0 } else { datagrams };
        if let Service::Native { .. } = self.service {
            core.tally.native_receives += u64::from(received > 0);
            core.tally.native_datagrams += datagrams;
        }
        if let Some(drops) = batch.drops()
            && drops != self.drops.load(Relaxed)
        {
            self.note_drops(drops, core);
        }
        (received, datagrams)
    }

    #[cold]
    fn note_drops(&mut self, drops: u32, core: &mut Core) {
        // A twin may have been told a later count already.
        let is_later = |before: u32| drops.wrapping_sub(before) as i32 > 0;
        let later = |before| is_later(before).then_some(drops);
        if let Ok(before) = self.drops.fetch_update(Relaxed, Relaxed, later) {
            let dropped = drops.wrapping_sub(before);
            core.note_failure(Failure::Overflow, dropped.into(), None);
        }
    }
}

/// Counts sent and lost datagrams.
#[inline]
pub(super) fn count_sent(sent: Transmitted, core: &mut Core) {
    core.tally.datagrams_sent += sent.datagrams;
    core.tally.bytes_written += sent.bytes;
    if sent.lost > 0 {
        core.note_failure(Failure::Send, sent.lost, None);
    }
}
