//! One packet device of a worker, and how the worker learns about arriving datagrams.

use std::io;
use std::sync::Arc;

use glimmer_transport::Poller;
use glimmer_transport::packet::{PacketDevice, PacketSender, RxBatch, Transmitted, Wakeup};

use crate::admin::alarm::Failure;
use crate::core::Core;
use crate::stream::registry::SocketEntry;

/// Who watches for arriving datagrams.
///
/// The kernel reports every datagram that arrives or was sent to a poller that watches the socket.
/// With full bursts, these reports cost both ends more time than the server's own work, and they
/// are not needed. The worker then polls the device itself in every turn, until a poll finds
/// nothing. A device without wake-ups is always polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Poller,
    Worker,
    /// No more requests are accepted.
    Off,
}

/// The service at a packet device.
pub(crate) enum Service {
    /// memcached's UDP protocol.
    Memcached,
    /// The native protocol.
    Native {
        /// The ports of all workers at this address.
        ports: Arc<[u16]>,
        /// Senders from each worker's device, by worker.
        senders: Vec<Box<dyn PacketSender>>,
    },
}

/// A packet device that receives requests.
pub(crate) struct PacketSource {
    pub(super) device: Box<dyn PacketDevice>,
    pub(super) service: Service,
    watched_by: Watch,
    /// The device's last reported count of dropped datagrams.
    drops: u32,
    /// Its token in the poller.
    token: u64,
}

impl PacketSource {
    pub fn new(device: Box<dyn PacketDevice>, service: Service) -> PacketSource {
        PacketSource {
            device,
            service,
            watched_by: Watch::Off,
            drops: 0,
            token: 0,
        }
    }

    /// The same source, with its token in the poller.
    pub fn with_token(self, token: u64) -> PacketSource {
        PacketSource { token, ..self }
    }

    /// Begins to watch for datagrams.
    pub fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        self.watched_by = match self.device.wakeup() {
            Wakeup::Poll => Watch::Worker,
            wakeup => {
                poller.watch_level(wakeup, self.token)?;
                Watch::Poller
            }
        };
        Ok(())
    }

    /// Whether the worker must poll the device itself.
    #[inline]
    pub fn is_looked_at(&self) -> bool {
        self.watched_by == Watch::Worker
    }

    /// Changes who watches the device. If the kernel refuses, nothing changes until the next
    /// attempt.
    #[inline]
    pub(super) fn watch_by(&mut self, who: Watch, poller: &Poller) {
        if self.watched_by != who {
            self.change_watch(who, poller);
        }
    }

    #[cold]
    fn change_watch(&mut self, who: Watch, poller: &Poller) {
        let changed = match (who, self.device.wakeup()) {
            (Watch::Poller, Wakeup::Poll) => return,
            (Watch::Poller, wakeup) => poller.watch_level(wakeup, self.token),
            (Watch::Worker | Watch::Off, wakeup) if self.watched_by == Watch::Poller => {
                poller.forget(wakeup)
            }
            (Watch::Worker | Watch::Off, _) => Ok(()),
        };
        if changed.is_ok() {
            self.watched_by = who;
        }
    }

    /// Adds the device to the connection registry.
    pub fn register(&self, core: &Core) {
        let registry = &core.shared.registry;
        let number = registry.number(self.device.wakeup());
        let address = self.device.address().ok();
        let entry = SocketEntry::packets(number, address, core.now.ms);
        registry.add(Arc::new(entry));
    }

    /// Receives and counts one burst. Returns the number of segment batches.
    #[inline]
    pub(super) fn receive(&mut self, batch: &mut RxBatch, core: &mut Core) -> usize {
        let received = self.device.receive(batch);
        let mut datagrams = 0;
        for index in 0..received {
            datagrams += batch.datagrams(index) as u64;
            core.tally.bytes_read += batch.bytes(index).len() as u64;
        }
        core.tally.datagrams_received += datagrams;
        if let Service::Native { .. } = self.service {
            core.tally.native_receives += u64::from(received > 0);
            core.tally.native_datagrams += datagrams;
        }
        if let Some(drops) = batch.drops()
            && drops != self.drops
        {
            self.note_drops(drops, core);
        }
        received
    }

    #[cold]
    fn note_drops(&mut self, drops: u32, core: &mut Core) {
        let before = std::mem::replace(&mut self.drops, drops);
        let dropped = drops.wrapping_sub(before);
        core.note_failure(Failure::Overflow, dropped.into(), None);
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
