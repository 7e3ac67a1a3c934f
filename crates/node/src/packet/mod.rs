//! Requests that arrive in datagrams: memcached's UDP protocol and the native protocol.
//!
//! | file | idea |
//! | --- | --- |
//! | `source` | one packet device, and who watches it |
//! | `sharing` | devices from which several workers receive, as the plan says |
//! | `memcached` | memcached's UDP protocol |
//! | `accelerated` | its reads that are answered from the accelerator's slots |
//! | `pending` | datagrams of it that wait for other workers |
//! | [`native`] | the native protocol |

mod accelerated;
pub(crate) mod memcached;
pub mod native;
mod pending;
mod sharing;
pub(crate) mod source;

use std::ops::Range;
use std::sync::Arc;

use glimmer_base::limits::{DATAGRAM_BURSTS_PER_TURN_MAX, DATAGRAM_REQUESTS_PER_TURN_MAX};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_transport::Poller;
use glimmer_transport::packet::RxBatch;

use crate::core::Core;
use crate::forward::batch::ForwardedBatch;
use crate::forward::port::Port;
use crate::hot::Accelerator;
use accelerated::Accelerated;
use memcached::Memcached;
use native::NativeServer;
use sharing::Sharing;
use source::{Duty, PacketSource, Service, Watch};

/// The packet devices from which one worker receives, and their services.
pub(crate) struct Packets {
    /// The devices of all workers, by worker.
    sources: Vec<PacketSource>,
    /// Where those of this worker are.
    own: Range<usize>,
    sharing: Sharing,
    /// Sources that may have something, or that the poller does not watch.
    calls: usize,
    memcached: Memcached,
    native: Option<Box<NativeServer>>,
    /// The packets of the last receive call.
    batch: RxBatch,
}

impl Packets {
    /// `native` serves the sources for native clients.
    pub fn new(
        me: usize,
        sources: Vec<PacketSource>,
        native: Option<Box<NativeServer>>,
        accelerator: Option<&Arc<Accelerator>>,
    ) -> Packets {
        let before = sources.iter().filter(|source| source.rx < me).count();
        let own = sources.iter().filter(|source| source.rx == me).count();
        Packets {
            sources,
            own: before..before + own,
            sharing: Sharing::default(),
            calls: 0,
            memcached: Memcached::new(accelerator.map(|it| Accelerated::new(it, me))),
            native,
            batch: RxBatch::default(),
        }
    }

    /// Starts to watch devices, and adds those of the worker to the connection registry.
    pub fn watch(&mut self, core: &Core, poller: &Poller) {
        self.take_duties(core, poller);
        let own = &self.sources[self.own.clone()];
        own.iter().for_each(|source| source.register(core));
    }

    /// Whether the worker receives from some device without being told by the poller, or goes on
    /// with a datagram.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.calls > 0 || self.memcached.pending.has_ready()
    }

    /// Whether something may wait at a device.
    #[inline(always)]
    pub fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// The poller says that something waits at a device.
    #[inline]
    pub fn call(&mut self, index: usize) {
        let source = &mut self.sources[index];
        source.is_called = source.duty != Duty::None;
        self.sharing.note_call();
        self.calls += 1;
    }

    /// Receives from the devices at which something may wait, and answers. Returns whether one of
    /// them is for native clients alone, whose next datagrams soon follow. `is_idle`: the worker
    /// has nothing else to do.
    pub fn serve(
        &mut self,
        core: &mut Core,
        port: &mut Port,
        poller: &Poller,
        is_idle: impl FnOnce(&Core, &Port) -> bool,
    ) -> bool {
        let mut has_native = false;
        match self.sharing.is_off() {
            true => {
                for index in self.own.clone() {
                    if self.sources[index].may_have() {
                        has_native |= self.serve_alone(index, core, port, poller);
                    }
                }
            }
            false => self.serve_shared(core, port, is_idle),
        }
        self.count_calls();
        has_native
    }

    fn count_calls(&mut self) {
        let sources = match self.sharing.is_off() {
            true => &self.sources[self.own.clone()],
            false => &self.sources[..],
        };
        self.calls = sources.iter().filter(|source| source.may_have()).count();
    }

    /// Whether each device has a worker of its own under the plan.
    pub fn are_apart(&self) -> bool {
        self.sharing.is_off()
    }

    /// Answers what waits at every device from which the worker receives, and receives nothing any
    /// more. The devices stay open for outstanding replies.
    pub fn serve_last(&mut self, core: &mut Core, port: &mut Port, poller: &Poller) {
        for index in 0..self.sources.len() {
            let source = &self.sources[index];
            if source.duty != Duty::None || source.rx == core.me {
                self.serve_alone(index, core, port, poller);
            }
        }
        for source in &mut self.sources {
            source.watch_by(Watch::Off, poller);
            (source.duty, source.is_called) = (Duty::None, false);
        }
        self.calls = 0;
    }

    /// Answers the datagrams that wait at a device. Returns whether it is for native clients.
    fn serve_alone(
        &mut self,
        index: usize,
        core: &mut Core,
        port: &mut Port,
        poller: &Poller,
    ) -> bool {
        self.sources[index].is_called = false;
        let mut left = DATAGRAM_REQUESTS_PER_TURN_MAX;
        for burst in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let most = self.sources[index].affords_alone();
            self.batch.bound(most);
            let (received, requests) = self.receive(index, core, port);
            let source = &mut self.sources[index];
            source.note_segments(received, requests);
            let looks_again = source.looks_again(received, core);
            if received < most {
                if looks_again {
                    source.watch_by(Watch::Worker, poller);
                } else if burst == 0 && received == 0 {
                    source.watch_by(Watch::Poller, poller);
                }
                break;
            }
            source.watch_by(Watch::Worker, poller);
            left = left.saturating_sub(requests);
            if left == 0 {
                break;
            }
        }
        let is_native = matches!(self.sources[index].service, Service::Native { .. });
        if is_native && let Some(native) = &mut self.native {
            native.settle(core);
        }
        is_native
    }

    /// Receives one burst, and answers it. Returns the number of segment batches, and of requests
    /// or at least of datagrams.
    #[inline]
    fn receive(&mut self, index: usize, core: &mut Core, port: &mut Port) -> (usize, u64) {
        let source = &mut self.sources[index];
        let (received, datagrams) = source.receive(&mut self.batch, core);
        if received == 0 {
            return (0, 0);
        }
        core.note_small_request();
        let (batch, device) = (&mut self.batch, &mut *source.device);
        let requests = match &source.service {
            Service::Memcached => {
                let before = core.steps();
                (self.memcached).answer(batch, (index, device), core, port);
                core.steps() - before
            }
            Service::Native { ports } => match &mut self.native {
                Some(native) => {
                    let home = (source.rx != core.me).then_some(source.rx);
                    let requests = native.answer(batch, (index, device, ports), home, core, port);
                    core.pass_time(requests);
                    requests
                }
                None => 0,
            },
        };
        (received, requests.max(datagrams))
    }

    /// The worker goes by another plan from now on.
    pub fn note_plan(&mut self, core: &Core, poller: &Poller) {
        if let Some(native) = &mut self.native {
            native.note_plan(core);
        }
        if !core.is_draining {
            self.take_duties(core, poller);
        }
    }

    /// Answers native datagrams that came in elsewhere.
    pub fn answer_forwarded(&mut self, batch: &ForwardedBatch, core: &mut Core) {
        if let Some(native) = &mut self.native {
            native.answer_forwarded(batch, &mut self.sources, core);
        }
    }

    /// Gives up what native clients have stopped sending.
    pub fn expire(&mut self, core: &mut Core) {
        if let Some(native) = &mut self.native {
            native.expire(core);
        }
    }

    /// A reply of this slot came home for a datagram.
    pub fn join(&mut self, datagram: u64, slot: u16, reply: &[u8], core: &mut Core) {
        let budget = &mut core.memory.budget;
        self.memcached.pending.join(datagram, slot, reply, budget);
    }

    /// A part of a datagram's command that is answered with one sum had this outcome elsewhere.
    pub fn add_part(&mut self, datagram: u64, kind: OutcomeKind) {
        self.memcached.pending.add_part(datagram, kind);
    }

    /// Whether the reply of this slot is the next one that a datagram waits for.
    pub fn awaits(&self, datagram: u64, slot: u16) -> bool {
        self.memcached.pending.awaits(datagram, slot)
    }

    /// Whether datagrams wait for other workers.
    pub fn is_waiting(&self) -> bool {
        !self.memcached.pending.is_empty()
    }

    /// Whether datagrams are out of credit, and none may go on.
    #[inline]
    pub fn awaits_only_credit(&self) -> bool {
        self.memcached.pending.awaits_only_credit()
    }

    /// Lets datagrams that are out of credit try again.
    pub fn resume_out_of_credit(&mut self) {
        self.memcached.pending.resume_out_of_credit();
    }

    /// Goes on with the datagrams that have what they waited for.
    pub fn go_on(&mut self, core: &mut Core, port: &mut Port) {
        if self.memcached.pending.has_ready() {
            self.memcached.go_on(&mut self.sources, core, port);
        }
    }
}
