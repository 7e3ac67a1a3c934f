//! Serves native clients over a worker's packet devices.

use std::sync::Arc;

use glimmer_transport::packet::{PacketDevice, PacketSender, RxBatch};

use super::completions::CompletionTables;
use super::endpoint::NativeEndpoint;
use super::figures::NativeFigures;
use super::handover::Handover;
use super::rules::Rules;
use crate::admin::stats::Tally;
use crate::budget::pool::{Budget, Charge};
use crate::core::Core;
use crate::forward::port::Port;
use crate::packet::source::{PacketSource, Service, count_sent};

/// A worker's state for serving native clients.
pub(crate) struct NativeServer {
    endpoint: NativeEndpoint,
    /// Present if the server directs requests and there is another worker.
    handover: Option<Handover>,
    /// The endpoint's counters at the last publication.
    figures: NativeFigures,
    /// Bytes of the native endpoint that are charged to the worker's budget.
    counted: Charge,
}

impl NativeServer {
    /// The state of worker `me`, which may keep `bytes_max` bytes for clients.
    pub fn new(
        rules: Rules,
        me: usize,
        bytes_max: usize,
        completions: Arc<CompletionTables>,
    ) -> NativeServer {
        let handover_bytes_max = rules.handover_bytes_max(bytes_max);
        let endpoint_bytes_max = bytes_max - handover_bytes_max;
        NativeServer {
            endpoint: NativeEndpoint::new(rules, me, endpoint_bytes_max, completions),
            handover: (handover_bytes_max > 0)
                .then(|| Handover::new(rules, me, handover_bytes_max)),
            figures: NativeFigures::default(),
            counted: Charge::default(),
        }
    }

    /// Publishes the counts since the last call.
    fn publish(&mut self, tally: &mut Tally) {
        let figures = self.endpoint.figures();
        let before = std::mem::replace(&mut self.figures, figures);
        tally.datagrams_dropped += figures.dropped - before.dropped;
        tally.requests += figures.requests - before.requests;
        tally.batches += figures.batches - before.batches;
        tally.native_requests = figures.requests;
        tally.native_misdirected = figures.misdirected;
        tally.native_unproven = figures.unproven;
        tally.native_repeated = figures.repeated;
        tally.native_superseded = figures.superseded;
        tally.native_in_place = figures.in_place;
        if let Some(handover) = &self.handover {
            tally.native_handed_over = handover.datagrams;
            tally.native_handover_batches = handover.batches;
        }
    }

    fn charge(&mut self, budget: &mut Budget) {
        let batches = self.handover.as_ref().map_or(0, |handover| handover.bytes);
        let charge = Charge {
            bytes: self.endpoint.bytes() + batches,
            buffers: 0,
        };
        budget.recharge(self.counted, charge);
        self.counted = charge;
    }

    /// Answers the segment batches received at a device: the index of the source, the device, and
    /// the ports of all workers at its address.
    pub fn answer(
        &mut self,
        received: &mut RxBatch,
        (source, device, ports): (usize, &mut dyn PacketDevice, &[u16]),
        core: &mut Core,
        port: &mut Port,
    ) {
        if let Some(handover) = &mut self.handover {
            handover.direct(received, source, port);
        }
        self.execute(received, ports, device, core);
    }

    /// Answers requests that other workers have handed over, each batch through the device at which
    /// it arrived, and takes back own batches. All workers have the same sources in the same order.
    /// Returns whether there was anything to answer.
    pub fn take_handed_over(
        &mut self,
        sources: &mut [PacketSource],
        core: &mut Core,
        port: &mut Port,
    ) -> bool {
        if self.handover.is_none() {
            return false;
        }
        let mut any = false;
        while let Some((from, mut batch)) = port.next_datagrams() {
            let home = batch.home();
            if home == core.me {
                if let Some(handover) = &mut self.handover {
                    handover.welcome(from, batch);
                }
                continue;
            }
            if let Service::Native { ports, senders } = &mut sources[batch.source].service {
                self.execute(&mut batch.received, ports, &mut *senders[home], core);
            }
            port.send_datagrams(from, batch);
            any = true;
        }
        if any {
            self.settle(core);
        }
        any
    }

    /// Gives up requests that native clients have stopped sending.
    pub fn expire(&mut self, core: &mut Core) {
        self.endpoint.expire(core.now);
        self.charge(&mut core.memory.budget);
    }

    /// Publishes counters, including losses.
    pub fn settle(&mut self, core: &mut Core) {
        self.publish(&mut core.tally);
        self.charge(&mut core.memory.budget);
    }

    /// Executes requests, and sends the replies through the device at which the requests arrived.
    fn execute(
        &mut self,
        received: &mut RxBatch,
        ports: &[u16],
        sender: &mut dyn PacketSender,
        core: &mut Core,
    ) {
        let engine = &mut *core.engine;
        let sent = (self.endpoint).answer(received, engine, core.now, ports, sender);
        count_sent(sent, core);
    }
}
