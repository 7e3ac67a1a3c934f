//! Connections that any worker may serve: hand-off and stealing.
//!
//! A worker that hands on, or lets others steal, puts the connections that are ready into its
//! software queue. A worker that has nothing to do takes one connection at a time from such a
//! queue, serves it for what has arrived, and sends it home. A connection that waits in the queue
//! is away, as one that visits another worker (`journey`), so that the order of its replies follows
//! the same way.
//!
//! - A queue holds [`SOFTWARE_QUEUE_MAX`] connections. Further ones stay ready at home, and those
//!   that hold much memory, watch, or have a command for their home alone are served there.
//! - When the plan changes, and when the server stops, a worker takes back what waits in its queue.

use glimmer_base::limits::{DISPATCH_BATCH, SOFTWARE_QUEUE_MAX};
use glimmer_dispatch::Intake;

use super::Streams;
use super::ready::Lane;
use crate::core::Core;
use crate::forward::port::Port;

impl Streams {
    /// Puts the connections that are ready into the software queue, if this worker's role says so.
    /// A worker that serves its queue itself begins with the first one at once.
    #[cold]
    #[inline(never)]
    pub fn share_ready(&mut self, core: &mut Core) {
        let intake = core.plan.role(core.me).intake;
        if intake == Intake::Execute || core.is_draining {
            return;
        }
        let waiting = self.travels.queues[core.me].len();
        let mut keeps_one = intake == Intake::Enqueue && waiting == 0;
        let mut room = SOFTWARE_QUEUE_MAX.saturating_sub(waiting);
        let room_before = room;
        for lane in [Lane::Small, Lane::Large] {
            for _ in 0..self.ready.len(lane) {
                let Some(key) = self.ready.first(lane) else {
                    break;
                };
                self.ready.remove_first(lane);
                let Some(connection) = self.connections.get(key) else {
                    continue;
                };
                if room == 0 || !connection.may_be_shared() || keeps_one {
                    keeps_one &= !connection.may_be_shared();
                    self.ready.push(key, lane);
                    continue;
                }
                room -= 1;
                let traveller = self.leave_home(key, false, core);
                core.shared.plans.queue(core.me).enter();
                self.travels.queues[core.me].put(traveller);
            }
        }
        let shared = room_before - room;
        core.tally.handed_on += shared as u64;
        self.wake_takers(shared, core);
    }

    /// Wakes as many workers that sleep and take from this one's queue.
    fn wake_takers(&self, mut count: usize, core: &Core) {
        for (worker, role) in core.plan.roles().iter().enumerate() {
            if count == 0 {
                return;
            }
            if worker != core.me && role.takes.queues.contains(&core.me) {
                count -= usize::from(self.travels.doorbells[worker].wake());
            }
        }
    }

    /// Serves what waits in this worker's software queue, and in those of others while it has
    /// nothing else to do, one connection after the other.
    #[cold]
    #[inline(never)]
    pub fn serve_shared(&mut self, core: &mut Core, port: &mut Port) {
        for _ in 0..DISPATCH_BATCH {
            if self.is_busy(core) {
                return;
            }
            let Some(queue) = self.queue_to_take(core) else {
                return;
            };
            let Some(traveller) = self.travels.queues[queue].take() else {
                // Another worker was faster.
                continue;
            };
            core.shared.plans.queue(queue).leave();
            core.tally.taken += u64::from(queue != core.me);
            self.receive_traveller(traveller, core);
            for lane in [Lane::Small, Lane::Large] {
                if self.ready.len(lane) > 0 {
                    self.serve_burst(lane, core, port);
                    break;
                }
            }
        }
    }

    /// The software queue that this worker takes from next: its own first, if it serves that.
    fn queue_to_take(&self, core: &Core) -> Option<usize> {
        if core.shared.homeward.is_full(core.me) {
            return None;
        }
        let role = core.plan.role(core.me);
        let own = (role.serves_queue() || core.is_draining).then_some(core.me);
        let others = role.takes.queues.iter().copied();
        own.into_iter()
            .chain(others)
            .find(|&of| !self.travels.queues[of].is_empty())
    }

    /// Whether a connection waits in a software queue from which this worker takes.
    #[inline]
    pub fn has_shared(&self, core: &Core) -> bool {
        core.plan.has_queues() && self.queue_to_take(core).is_some()
    }

    /// Takes back what waits in this worker's queue: under another plan no worker might take it.
    pub fn take_back_shared(&mut self, core: &mut Core) {
        while let Some(traveller) = self.travels.queues[core.me].take() {
            core.shared.plans.queue(core.me).leave();
            self.receive_traveller(traveller, core);
        }
    }
}
