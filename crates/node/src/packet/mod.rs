//! Requests that arrive in datagrams: memcached's UDP protocol and the native protocol.
//!
//! | file | idea |
//! | --- | --- |
//! | `source` | one packet device of a worker, and who watches it |
//! | `memcached` | memcached's UDP protocol |
//! | `pending` | datagrams of it that wait for other workers |
//! | [`native`] | the native protocol |

pub(crate) mod memcached;
pub mod native;
mod pending;
pub(crate) mod source;

use std::io;

use glimmer_base::limits::{DATAGRAM_BURSTS_PER_TURN_MAX, PACKET_BATCH_MAX};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_transport::Poller;
use glimmer_transport::packet::RxBatch;

use crate::core::Core;
use crate::forward::batch::ForwardedBatch;
use crate::forward::port::Port;
use memcached::Memcached;
use native::NativeServer;
use source::{PacketSource, Service, Watch};

/// The packet devices of one worker and their services.
pub(crate) struct Packets {
    sources: Vec<PacketSource>,
    memcached: Memcached,
    native: Option<Box<NativeServer>>,
    /// The packets of the last receive call.
    batch: RxBatch,
}

impl Packets {
    /// `native` serves the sources for native clients.
    pub fn new(sources: Vec<PacketSource>, native: Option<Box<NativeServer>>) -> Packets {
        Packets {
            sources,
            memcached: Memcached::new(),
            native,
            batch: RxBatch::default(),
        }
    }

    /// Starts to watch the devices, and adds them to the connection registry.
    pub fn watch(&mut self, core: &Core, poller: &Poller) -> io::Result<()> {
        for source in &mut self.sources {
            source.watch(poller)?;
            source.register(core);
        }
        Ok(())
    }

    /// The number of devices.
    pub fn count(&self) -> usize {
        self.sources.len()
    }

    /// Whether the worker must poll this device itself.
    #[inline]
    pub fn is_looked_at(&self, index: usize) -> bool {
        self.sources[index].is_looked_at()
    }

    /// Whether the worker must poll any device itself, or go on with a datagram.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.sources.iter().any(PacketSource::is_looked_at) || self.memcached.pending.has_ready()
    }

    /// Answers the datagrams that wait at one device. Returns whether the device is for native
    /// clients, whose next datagrams soon follow.
    pub fn serve(
        &mut self,
        index: usize,
        core: &mut Core,
        port: &mut Port,
        poller: &Poller,
    ) -> bool {
        let source = &mut self.sources[index];
        for burst in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = source.receive(&mut self.batch, core);
            if received > 0 {
                core.note_small_request();
                let (batch, device) = (&mut self.batch, &mut *source.device);
                match &source.service {
                    Service::Memcached => {
                        (self.memcached).answer(batch, (index, device), core, port);
                    }
                    Service::Native { ports, .. } => {
                        if let Some(native) = &mut self.native {
                            native.answer(batch, (index, device, ports), core, port);
                        }
                    }
                }
            }
            if received < PACKET_BATCH_MAX {
                if burst == 0 && received == 0 {
                    source.watch_by(Watch::Poller, poller);
                }
                break;
            }
            source.watch_by(Watch::Worker, poller);
        }
        let is_native = matches!(source.service, Service::Native { .. });
        if is_native && let Some(native) = &mut self.native {
            native.settle(core);
        }
        is_native
    }

    /// The worker goes by another plan from now on.
    pub fn note_plan(&mut self, core: &Core) {
        if let Some(native) = &mut self.native {
            native.note_plan(core);
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

    /// Accepts no more datagrams. The devices stay open for outstanding replies.
    pub fn forget(&mut self, poller: &Poller) {
        for source in &mut self.sources {
            source.watch_by(Watch::Off, poller);
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
