//! This worker's part in a change of the access mode while the server runs.
//!
//! Under the interim plan, the owner of a partition executes its requests, which every access mode
//! allows. What was forwarded to others under an earlier plan has to be answered first, because
//! they may not be allowed to execute it afterwards. Then the workers meet in an
//! [`Exchange`](crate::dispatch::exchange::Exchange): each hands in its engine and rests until it
//! has the new one. A worker that rests polls no events, so that it misses none.

use glimmer_base::Moment;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_dispatch::Layout;
use glimmer_engine::{Done, Engine, Figures, Job, LentParts, ListCursor, Listed};
use std::sync::Arc;

use super::Worker;

/// Where a worker is in a change of the access mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It serves, and others may still need its engine as it is.
    Serving,
    /// It serves, and has no request left with others that they might not execute later.
    Settled,
    /// It has handed in its engine.
    HandedIn,
}

impl Worker {
    /// Whether the worker has handed in its engine. Then it does nothing but ask for the new one.
    #[inline(always)]
    pub fn has_handed_in(&self) -> bool {
        self.core.plan.is_interim() && self.stage == Stage::HandedIn
    }

    /// Whether all workers have settled, so that this one can hand in its engine.
    #[inline]
    pub(super) fn can_hand_in(&self) -> bool {
        self.stage == Stage::Settled && self.core.shared.engines.have_settled()
    }

    /// Takes part in the change, at the end of a turn under the interim plan.
    #[cold]
    #[inline(never)]
    pub(super) fn prepare_access(&mut self) {
        let shared = &self.core.shared;
        if shared.stopping.load(Relaxed) {
            return;
        }
        if self.stage == Stage::Serving && !self.port.awaits_others_than_owners() {
            self.stage = Stage::Settled;
            if shared.engines.settle() {
                shared.wake_all();
            }
        }
        if self.can_hand_in() {
            self.hand_in_engine();
        }
    }

    fn hand_in_engine(&mut self) {
        let core = &mut self.core;
        self.stage = Stage::HandedIn;
        let engine = std::mem::replace(&mut core.engine, Box::new(NoEngine));
        let Some(engines) = core.shared.engines.hand_in(core.me, engine) else {
            return;
        };
        let plans = &core.shared.plans;
        let modes = core.shared.config.access_modes.as_ref();
        let engines = match modes.zip(plans.next_access()) {
            Some((modes, access)) => modes.rebuild(engines, access),
            None => engines,
        };
        // A worker that has its engine back goes by the plan after the interim plan.
        plans.end_access(core.now.ms);
        core.shared.engines.put_back(engines);
        // What groups a worker has yet to sweep, it may not have owned before.
        core.shared.switches.call_walks();
        core.shared.wake_all();
    }

    /// Takes the new engine, if it is there. If the server stops, it takes the old one.
    #[cold]
    #[inline(never)]
    pub(super) fn take_engine_back(&mut self) {
        let core = &mut self.core;
        let is_stopping = core.shared.stopping.load(Relaxed);
        let engines = &core.shared.engines;
        let new = engines.take_back(core.me);
        let engine = match is_stopping {
            true => new.or_else(|| engines.withdraw(core.me)),
            false => new,
        };
        if let Some(engine) = engine {
            core.engine = engine;
            self.stage = Stage::Serving;
        }
    }
}

/// What a worker has while its engine is with the others.
struct NoEngine;

const ABSENT: &str = "a worker that has handed in its engine executes nothing";

impl Engine for NoEngine {
    fn layout(&self) -> Layout {
        unreachable!("{ABSENT}")
    }

    fn run_with(
        &mut self,
        _: Moment,
        _: &[Job<'_>],
        _: &mut [Vec<u8>],
        _: &mut LentParts,
        _: &mut [Done],
    ) {
        unreachable!("{ABSENT}")
    }

    fn flush(&mut self, _: Moment, _: u64) {
        unreachable!("{ABSENT}")
    }

    fn list(
        &mut self,
        _: Moment,
        _: &mut ListCursor,
        _: usize,
        _: &mut dyn FnMut(&Listed<'_>),
    ) -> bool {
        unreachable!("{ABSENT}")
    }

    fn expire(&mut self, _: Moment, _: &mut ListCursor, _: usize) -> Option<u64> {
        unreachable!("{ABSENT}")
    }

    fn figures(&self) -> Arc<dyn Figures> {
        unreachable!("{ABSENT}")
    }
}
