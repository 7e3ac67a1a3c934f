//! Connections that get another home, because the plan has changed.
//!
//! A plan says which workers are homes of connections: a worker that serves large requests alone is
//! none, and under hand-off only the dispatching workers are. When the set of homes changes, each
//! worker gives connections away until the homes have about the same number.
//!
//! A connection moves when all that it has asked is answered and sent. The poller of its new home
//! reports at once what can be received, so that nothing is lost. One that cannot move yet is tried
//! again in later turns; one that watches stays.

use std::collections::VecDeque;

use glimmer_base::limits::MOVES_PER_TURN_MAX;
use glimmer_base::sync::weakened;
use glimmer_dispatch::Plan;
use glimmer_transport::Poller;
use slotmap::Key;

use super::Streams;
use super::connection::Input;
use super::journey::release;
use super::key::ConnectionKey;
use super::throttle::seat;
use crate::admin::alarm::Failure;
use crate::core::Core;

/// Connections that may get another home.
#[derive(Default)]
pub(super) struct Leaving {
    keys: VecDeque<ConnectionKey>,
    /// The first keys of the list have not been looked at since the plan changed.
    unseen: usize,
}

impl Leaving {
    /// Whether some connection has not been looked at.
    pub fn is_busy(&self) -> bool {
        self.unseen > 0
    }
}

impl Streams {
    /// The worker goes by another plan than this one from now on.
    pub fn note_plan(&mut self, before: &Plan, core: &mut Core) {
        if !weakened("left_in_the_queue") {
            self.take_back_shared(core);
        }
        if core.is_alone {
            // There is nobody to move a connection to.
            return;
        }
        let plan = &core.plan;
        let is_as_before = |worker| before.is_home(worker) == plan.is_home(worker);
        if !(0..plan.roles().len()).all(is_as_before) {
            self.leaving.keys = self.connections.keys().collect();
            self.leaving.unseen = self.leaving.keys.len();
        }
    }

    /// Gives connections to other workers, as many as one turn may.
    #[inline]
    pub fn move_leaving(&mut self, core: &mut Core, poller: &Poller) {
        if !self.leaving.keys.is_empty() {
            self.move_some(core, poller);
        }
    }

    #[cold]
    fn move_some(&mut self, core: &mut Core, poller: &Poller) {
        if core.is_draining {
            self.leaving = Leaving::default();
            return;
        }
        for _ in 0..MOVES_PER_TURN_MAX.min(self.leaving.keys.len()) {
            let Some(key) = self.leaving.keys.pop_front() else {
                return;
            };
            self.leaving.unseen = self.leaving.unseen.saturating_sub(1);
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            if connection.visit.is_some() {
                continue;
            }
            if !connection.may_move() {
                self.leaving.keys.push_back(key);
                continue;
            }
            match core.shared.balancer.reassign(core.me, &core.plan) {
                Some(worker) => self.send_away(key, worker, core, poller),
                None => self.leaving = Leaving::default(),
            }
        }
    }

    fn send_away(&mut self, key: ConnectionKey, worker: usize, core: &mut Core, poller: &Poller) {
        let Some(mut connection) = self.connections.remove(key) else {
            return;
        };
        // A descriptor that cannot be removed was not watched.
        let _ = poller.forget(connection.stream.wakeup());
        release(&mut connection, core);
        core.tally.curr_connections -= 1;
        core.tally.moved += 1;
        self.travels.movers[worker].put(Box::new(connection));
        self.travels.doorbells[worker].wake();
    }

    /// Whether a connection that is at home here from now on has yet to be taken.
    #[inline]
    pub fn has_movers(&self, core: &Core) -> bool {
        !self.travels.movers[core.me].is_empty()
    }

    /// Takes connections that are at home here from now on, as many as one turn may.
    pub fn take_movers(&mut self, core: &mut Core, poller: &Poller) {
        for _ in 0..MOVES_PER_TURN_MAX {
            let Some(connection) = self.travels.movers[core.me].take() else {
                return;
            };
            let key = self.connections.insert(*connection);
            core.tally.curr_connections += 1;
            let connection = &mut self.connections[key];
            connection.recharge(&mut core.memory.budget);
            // Both workers may have looked at new limits while it was on its way.
            seat(connection, true, core);
            // Data that has already arrived is read once, as for the connections that were open.
            if core.is_draining {
                connection.input = connection.input.max(Input::Readable);
            }
            if weakened("moved_without_its_input") {
                connection.input = Input::Nothing;
                connection.rx.bytes.clear();
            }
            let wakeup = connection.stream.wakeup();
            if let Err(error) = poller.watch_edges(wakeup, key.data().as_ffi()) {
                core.note_failure(Failure::Accept, 1, error.raw_os_error());
                self.close(key, core);
                continue;
            }
            self.settle(key, core);
        }
    }
}
