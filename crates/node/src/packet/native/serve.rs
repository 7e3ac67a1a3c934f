//! Serves native clients over a worker's packet devices.

use std::sync::Arc;

use glimmer_base::limits::FORWARD_DATAGRAM_BYTES_MAX;
use glimmer_dispatch::{Layout, Plan};
use glimmer_transport::packet::{PacketDevice, RxBatch};

use super::admission::{Dispatch, HandTo};
use super::completions::CompletionTables;
use super::endpoint::NativeEndpoint;
use super::figures::NativeFigures;
use super::rules::Rules;
use crate::admin::stats::Counts;
use crate::budget::pool::{Budget, Charge};
use crate::core::Core;
use crate::dispatch::counting::NativeCount;
use crate::forward::batch::ForwardedBatch;
use crate::forward::port::Port;
use crate::packet::source::{PacketSource, Service, count_sent};

/// A worker's state for serving native clients.
pub(crate) struct NativeServer {
    endpoint: NativeEndpoint,
    /// The access mode alone decides on what has been handed over.
    by_keyhash: Plan,
    /// What has been handed over to this worker.
    received: RxBatch,
    /// The endpoint's counters at the last publication.
    figures: NativeFigures,
    /// Bytes of the native endpoint that are charged to the worker's budget.
    counted: Charge,
}

impl NativeServer {
    /// The state of worker `me` of a store of this layout, which may keep `bytes_max` bytes for
    /// clients. The layout in the rules is what the first plan made of it. Another plan may hand
    /// requests over that the first one would not have.
    pub fn new(
        rules: Rules,
        layout: Layout,
        me: usize,
        bytes_max: usize,
        completions: Arc<CompletionTables>,
    ) -> NativeServer {
        NativeServer {
            endpoint: NativeEndpoint::new(rules, me, bytes_max, completions),
            by_keyhash: Plan::by_keyhash(layout),
            received: RxBatch::default(),
            figures: NativeFigures::default(),
            counted: Charge::default(),
        }
    }

    /// The worker goes by another plan, and possibly another engine, from now on.
    pub fn note_plan(&mut self, core: &Core) {
        self.by_keyhash = Plan::by_keyhash(core.engine.layout());
        if let Some(native) = &core.shared.config.native {
            self.endpoint.set_rules(native.rules.under(&core.plan));
        }
    }

    /// Publishes the counts since the last call.
    fn publish(&mut self, tally: &mut Counts) {
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
    }

    fn charge(&mut self, budget: &mut Budget) {
        let charge = Charge {
            bytes: self.endpoint.bytes(),
            buffers: 0,
        };
        budget.recharge(self.counted, charge);
        self.counted = charge;
    }

    /// Answers the segment batches received at a device: the index of the source, the device, and
    /// the ports of all workers at its address. Hands over what other workers have to execute, and
    /// fragments to the device's `home` if that is another worker. Returns the number of requests
    /// that were executed here.
    pub fn answer(
        &mut self,
        received: &mut RxBatch,
        (source, device, ports): (usize, &mut dyn PacketDevice, &[u16]),
        home: Option<usize>,
        core: &mut Core,
        port: &mut Port,
    ) -> u64 {
        let requests_before = self.endpoint.figures().requests;
        let has_room = core.memory.bytes_free() >= FORWARD_DATAGRAM_BYTES_MAX;
        let mut has_left = false;
        let mut hand_to = |worker: usize, peer, datagram: &[u8], segment_bytes| {
            let is_put =
                has_room && port.put_datagram(worker, source, peer, datagram, segment_bytes);
            has_left |= is_put;
            is_put
        };
        let hand_to: Option<&mut HandTo<'_>> = match core.is_alone {
            true => None,
            false => Some(&mut hand_to),
        };
        let profile = core.shared.plans.profile(core.me);
        let mut dispatch = Dispatch {
            plan: &core.plan,
            hand_to,
            fragments_to: home,
            tap: Some(NativeCount::of(&mut core.counting, profile, true)),
        };
        let engine = &mut *core.engine;
        let sent = (self.endpoint).answer(received, engine, core.now, &mut dispatch, ports, device);
        count_sent(sent, core);
        core.end_burst();
        if has_left {
            port.ship();
            port.wake_peers();
        }
        self.endpoint.figures().requests - requests_before
    }

    /// Answers requests that another worker has handed over, through the device at which they
    /// arrived. All workers have the same sources in the same order.
    pub fn answer_forwarded(
        &mut self,
        batch: &ForwardedBatch,
        sources: &mut [PacketSource],
        core: &mut Core,
    ) {
        batch.unload(&mut self.received);
        let PacketSource {
            service, device, ..
        } = &mut sources[batch.source()];
        let Service::Native { ports } = service else {
            return;
        };
        let profile = core.shared.plans.profile(core.me);
        let mut dispatch = Dispatch {
            plan: &self.by_keyhash,
            hand_to: None,
            fragments_to: None,
            tap: Some(NativeCount::of(&mut core.counting, profile, false)),
        };
        let (received, engine) = (&mut self.received, &mut *core.engine);
        let sent = (self.endpoint).answer(received, engine, core.now, &mut dispatch, ports, device);
        count_sent(sent, core);
        self.settle(core);
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
}
