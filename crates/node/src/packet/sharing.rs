//! Packet devices from which several workers receive.
//!
//! A socket's queue in the kernel is a software queue that any worker can take from: each worker
//! has a twin of every device. So hand-off, stealing, and the RX queues of workers that serve large
//! requests alone need no further queue for datagrams. A datagram stays in the socket until a
//! worker that executes it takes it, and the reply leaves through the same device.
//!
//! - **Who receives** is in the plan ([`Plan::drains`](glimmer_dispatch::Plan::drains)). Budgets
//!   count requests. One segment batch can hold more than a budget; what is beyond it is taken off
//!   the worker's next rounds at this device.
//! - **Order.** The protocols promise none between datagrams. Retransmitted mutations are found by
//!   the records of their partitions, whichever worker executes them (`native/completions/`).
//! - **Fragments** of a request go to the worker whose RX queue it is, so that they meet.
//!
//! # Who is woken
//!
//! All workers that receive from a device watch it, and the kernel wakes one that sleeps. It passes
//! over those that are busy, so that a worker without work is called for what a busy one leaves.
//! With busy polling, a worker goes on to look for a while, and others are called all the same.
//!
//! **No datagram waits for a worker that does not look.** A worker that was called goes on to look
//! until it has found the device empty. Two cannot do this: one that stops to receive from the
//! device, because the plan has changed, and one that receives only while it has nothing else to
//! do, and now has. Both pass each call on (`../dispatch/calls.rs`): they count it, and wake
//! workers that receive from the device. A worker that sees another count looks at each of its
//! devices. A worker that sleeps has looked at the count after it said so, as at everything else
//! that others leave it (`../forward/doorbell.rs`).

use glimmer_base::limits::{PACKET_BATCH_MAX, SHARED_PACKETS_MAX};
use glimmer_base::sync::weakened;
use glimmer_dispatch::Intake;
use glimmer_transport::Poller;

use super::Packets;
use super::source::{Duty, PacketSource, Watch};
use crate::core::Core;
use crate::forward::port::Port;

/// What a worker knows about devices that it shares.
#[derive(Default)]
pub(super) struct Sharing {
    /// Under the plan, some device is received from by several workers.
    is_on: bool,
    /// The sources that it reads in each turn, in order.
    reads: Vec<usize>,
    /// The sources that it takes from while it has nothing else to do.
    takes: Vec<usize>,
    /// Other workers that receive from the latter.
    others: Vec<usize>,
    /// Most segment batches that it receives with one call of what it reads.
    read_max: usize,
    /// The same of what it takes: more where more waits.
    take_max: usize,
    /// The one of `takes` that is looked at first.
    first: usize,
    /// It has passed on what it was called for last.
    has_passed_on: bool,
    /// The calls that were passed on when it last looked.
    calls_seen: u64,
}

impl Sharing {
    /// Whether each device has a worker of its own under the plan.
    #[inline(always)]
    pub fn is_off(&self) -> bool {
        !self.is_on
    }

    /// The poller says that something waits at a device. What the worker passed on before, another
    /// one may have received meanwhile, and this is to be passed on as well. A call that another
    /// worker has passed on is not, so that two busy ones do not call each other.
    #[inline]
    pub fn note_call(&mut self) {
        self.has_passed_on = false;
    }
}

impl Packets {
    /// Under the plan, the worker receives from these devices from now on.
    #[cold]
    pub(super) fn take_duties(&mut self, core: &Core, poller: &Poller) {
        let (me, plan) = (core.me, &core.plan);
        let drains: Vec<_> = (0..plan.roles().len()).map(|of| plan.drains(of)).collect();
        let is_shared = |rx| drains.iter().filter(|drains| drains.has(rx)).count() > 1;
        let own = &drains[me];
        let is_alone = (own.reads.iter()).all(|read| read.rx == me && !is_shared(read.rx));
        let sharing = &mut self.sharing;
        sharing.is_on = !(is_alone && own.takes.is_empty());
        sharing.read_max = match plan.role(me).intake {
            Intake::Execute => PACKET_BATCH_MAX,
            Intake::Enqueue | Intake::HandOff => SHARED_PACKETS_MAX,
        };
        (sharing.take_max, sharing.first) = (1, 0);
        sharing.reads.clear();
        sharing.takes.clear();
        let mut has_left = false;
        for (index, source) in self.sources.iter_mut().enumerate() {
            let before = source.duty;
            source.credit = 0;
            source.duty = match own.reads.iter().find(|read| read.rx == source.rx) {
                Some(_) if !sharing.is_on => Duty::Alone,
                Some(read) => Duty::Read(read.budget),
                None if own.takes.contains(&source.rx) => Duty::Take,
                None => Duty::None,
            };
            match source.duty {
                Duty::None => {
                    source.is_called = false;
                    source.watch_by(Watch::Off, poller);
                    has_left |= before != Duty::None;
                }
                // Who looks at the device itself goes on until it is empty.
                Duty::Alone if source.is_looked_at() => {}
                Duty::Alone | Duty::Read(_) | Duty::Take => {
                    source.is_called |= source.is_looked_at();
                    source.watch_by(Watch::Poller, poller);
                }
            }
            match source.duty {
                Duty::Read(_) => sharing.reads.push(index),
                Duty::Take => sharing.takes.push(index),
                Duty::None | Duty::Alone => {}
            }
        }
        let place = |&index: &usize| {
            let rx = self.sources[index].rx;
            own.reads.iter().position(|read| read.rx == rx)
        };
        sharing.reads.sort_by_key(place);
        let takes_too = |of: &usize| *of != me && own.takes.iter().any(|&rx| drains[*of].has(rx));
        sharing.others = (0..drains.len()).filter(takes_too).collect();
        self.count_calls();
        if has_left && !weakened("call_not_passed_on") {
            // Another worker may have slept through what this one was called for.
            core.shared.calls.pass_on();
            core.shared.wake_all();
        }
    }

    /// Whether another worker has passed on a call that this one has yet to look after.
    #[inline(always)]
    pub fn has_news_of_calls(&self, core: &Core) -> bool {
        core.shared.calls.count() != self.sharing.calls_seen
    }

    /// Another worker was called for datagrams that it does not take.
    #[cold]
    pub fn note_calls(&mut self, core: &Core) {
        self.sharing.calls_seen = core.shared.calls.count();
        for source in &mut self.sources {
            source.is_called = source.duty != Duty::None;
        }
        self.calls = self.sources.len();
    }

    /// Receives from shared devices at which something may wait: from each up to its budget, and
    /// without anything else to do from one more.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_shared(
        &mut self,
        core: &mut Core,
        port: &mut Port,
        is_idle: impl FnOnce(&Core, &Port) -> bool,
    ) {
        self.begin_round();
        for place in 0..self.sharing.reads.len() {
            let index = self.sharing.reads[place];
            while self.sources[index].may_have() && self.sources[index].credit > 0 {
                let most = self.sources[index].affords().min(self.sharing.read_max);
                let (received, requests) = self.receive_most(index, most, core, port);
                let source = &mut self.sources[index];
                source.note_received(received, requests);
                source.is_called = source.looks_again(received, core) || received == most;
                if received < most {
                    break;
                }
            }
        }
        if self
            .sharing
            .takes
            .iter()
            .any(|&index| self.sources[index].may_have())
        {
            match is_idle(core, port) {
                true => self.take_one(core, port),
                false => self.pass_on(core),
            }
        }
        if let Some(native) = &mut self.native {
            native.settle(core);
        }
    }

    /// Each device gets its budget for another round. Devices that have had so much that they have
    /// to wait do so only for others.
    fn begin_round(&mut self) {
        let sources = &mut self.sources;
        let mut rounds_lacking = None;
        for &index in &self.sharing.reads {
            let source = &mut sources[index];
            source.grant(1);
            if source.may_have() {
                let rounds = source.rounds_lacking();
                rounds_lacking = Some(rounds_lacking.unwrap_or(rounds).min(rounds));
            }
        }
        if let Some(rounds @ 1..) = rounds_lacking {
            for &index in &self.sharing.reads {
                sources[index].grant(rounds);
            }
        }
    }

    fn take_one(&mut self, core: &mut Core, port: &mut Port) {
        let sharing = &mut self.sharing;
        sharing.has_passed_on = false;
        let (count, first, most) = (sharing.takes.len(), sharing.first, sharing.take_max);
        for place in (first..first + count).map(|place| place % count) {
            let index = self.sharing.takes[place];
            if !self.sources[index].may_have() {
                continue;
            }
            let (received, _) = self.receive_most(index, most, core, port);
            let is_more = received == most;
            let source = &mut self.sources[index];
            source.is_called = source.looks_again(received, core) || is_more;
            if received > 0 {
                self.sharing.first = (place + 1) % count;
                self.sharing.take_max = match is_more {
                    true => (2 * most).min(SHARED_PACKETS_MAX),
                    false => 1,
                };
                return;
            }
        }
        self.sharing.take_max = 1;
    }

    /// Has another worker look at what this one was called for and has no time for.
    fn pass_on(&mut self, core: &Core) {
        if std::mem::replace(&mut self.sharing.has_passed_on, true)
            || weakened("call_not_passed_on")
        {
            return;
        }
        let shared = &core.shared;
        shared.calls.pass_on();
        // If none of them sleeps, all of them look before they do.
        let mut others = self.sharing.others.iter();
        others.any(|&worker| shared.doorbells[worker].wake());
    }

    fn receive_most(
        &mut self,
        index: usize,
        most: usize,
        core: &mut Core,
        port: &mut Port,
    ) -> (usize, u64) {
        self.batch.bound(most);
        self.receive(index, core, port)
    }
}

impl PacketSource {
    fn budget(&self) -> isize {
        match self.duty {
            Duty::Read(budget) => budget.max(1) as isize,
            Duty::None | Duty::Alone | Duty::Take => 1,
        }
    }

    /// Allows the requests of these rounds, but no more than those of one.
    fn grant(&mut self, rounds: isize) {
        let budget = self.budget();
        self.credit = (self.credit + rounds * budget).min(budget);
    }

    /// Segment batches that it may have now, at least one: the more requests the last ones had,
    /// the fewer.
    fn affords(&self) -> usize {
        (self.credit.max(0) as usize / self.segments).max(1)
    }

    fn note_received(&mut self, received: usize, requests: u64) {
        self.credit -= requests as isize;
        if received > 0 {
            self.segments = (requests as usize).div_ceil(received).max(1);
        }
    }

    /// Rounds after which it may have a request.
    fn rounds_lacking(&self) -> isize {
        let budget = self.budget();
        (budget - self.credit).max(0) / budget
    }
}
