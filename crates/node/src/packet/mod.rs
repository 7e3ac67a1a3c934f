//! Requests that arrive in datagrams: memcached's UDP protocol and the native protocol.
//!
//! | file | idea |
//! | --- | --- |
//! | `source` | one packet device of a worker, and who watches it |
//! | `memcached`, `answer` | memcached's UDP protocol |
//! | [`native`] | the native protocol |

pub(crate) mod answer;
pub(crate) mod memcached;
pub mod native;
pub(crate) mod source;

use std::io;

use glimmer_base::limits::{DATAGRAM_BURSTS_PER_TURN_MAX, PACKET_BATCH_MAX};
use glimmer_transport::Poller;
use glimmer_transport::packet::RxBatch;

use crate::core::Core;
use crate::forward::port::Port;
use crate::stream::Streams;
use answer::Answer;
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

    /// Whether the worker must poll any device itself.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.sources.iter().any(PacketSource::is_looked_at)
    }

    /// Answers the datagrams that wait at one device. Returns whether the device is for native
    /// clients, whose next datagrams soon follow.
    pub fn serve(
        &mut self,
        index: usize,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
        poller: &Poller,
    ) -> bool {
        let source = &mut self.sources[index];
        for burst in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = source.receive(&mut self.batch, core);
            if received > 0 {
                let (batch, device) = (&mut self.batch, &mut *source.device);
                match &source.service {
                    Service::Memcached => {
                        (self.memcached).answer(batch, (index, device), core, streams, port);
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

    /// Answers native datagrams that came in elsewhere, and takes home the batches of those that
    /// came in here. Returns whether there was anything to answer.
    pub fn take_handed_over(&mut self, core: &mut Core, port: &mut Port) -> bool {
        match &mut self.native {
            Some(native) => native.take_handed_over(&mut self.sources, core, port),
            None => false,
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

    /// Sends replies to datagrams that became connections.
    pub fn send_answers(&mut self, answers: impl Iterator<Item = Answer>, core: &mut Core) {
        for answer in answers {
            memcached::send_answer(&answer, &mut *self.sources[answer.source].device, core);
        }
    }
}
