//! Decides how long the worker may sleep.

use std::time::Duration;

use glimmer_base::limits::SHORT_TICK_MS;

use super::{TICK, Worker};
use crate::busy_poll::BusyPoll;

const MILLISECOND: Duration = Duration::from_millis(1);
const SHORT_TICK: Duration = Duration::from_millis(SHORT_TICK_MS);

/// What a worker does between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It only polls for events, because there is something to do.
    Busy,
    /// It sleeps until an event or its bell, up to this time; `None` means without a time limit.
    Asleep(Option<Duration>),
}

impl Worker {
    /// Sleeps until there is something to do.
    pub(super) fn wait(&mut self) {
        let timeout = match self.rest() {
            Rest::Busy => Some(Duration::ZERO),
            Rest::Asleep(timeout) => timeout,
        };
        self.poll(timeout);
    }

    /// Decides whether the worker may sleep. If so, the bell rings for everything that arrives from
    /// here on.
    #[inline(always)]
    pub fn rest(&mut self) -> Rest {
        if self.has_handed_in() {
            return Rest::Busy;
        }
        let never_sleeps = self.core.shared.config.busy_poll == BusyPoll::Always;
        let is_busy = self.is_busy();
        if is_busy || self.idle_turns_left > 0 || never_sleeps {
            if !is_busy {
                self.naps.idle();
            }
            self.idle_turns_left = self.idle_turns_left.saturating_sub(1);
            return Rest::Busy;
        }
        self.is_resting = true;
        let doorbell = &self.core.shared.doorbells[self.core.me];
        match doorbell.may_sleep(|| self.has_mail()) {
            true => {
                self.naps.begin(&*self.core.shared.config.clock);
                Rest::Asleep(self.timer())
            }
            false => Rest::Busy,
        }
    }

    /// Waits for events up to this time, and records which sources are ready.
    pub fn poll(&mut self, timeout: Option<Duration>) {
        self.poller.wait(timeout).expect("the poller is sound");
        if std::mem::take(&mut self.is_resting) {
            self.core.shared.doorbells[self.core.me].awake();
            self.core.counting.sleeps();
            self.naps.end(&*self.core.shared.config.clock);
        }
    }

    /// Whether connections, or possibly datagrams, wait to be served.
    fn is_busy(&self) -> bool {
        let core = &self.core;
        self.streams.is_busy(core)
            || (self.walks.is_busy() && !core.allowance.is_overdrawn())
            || self.packets.is_busy()
            || (self.acceptor.has_more(core) && !self.acceptor.is_deaf())
            || self.streams.can_relieve(core)
    }

    /// Whether another thread has left something for this worker.
    fn has_mail(&self) -> bool {
        let core = &self.core;
        let from_workers = || self.port.has_incoming() || self.streams.has_travellers(core);
        core.shared.has_mail(core.me)
            || (!core.is_alone && (from_workers() || self.packets.has_news_of_calls(core)))
            || core.has_another_plan()
            || self.can_hand_in()
            || self.is_told_to_stop()
            || (!core.allowance.is_overdrawn() && self.has_walks())
            || self.streams.has_news(core)
            || (self.streams.has_shaking() && core.shared.shakers.has_any(core.me))
            || self.has_news_of_drain()
    }

    /// Whether a list or a walk waits for an allowance.
    fn has_walks(&self) -> bool {
        let core = &self.core;
        core.shared.has_dump(core.me) || self.walks.is_called(core)
    }

    /// Whether administrative commands wait until they may cost more.
    fn awaits_allowance(&self) -> bool {
        self.core.allowance.is_overdrawn()
            && (self.streams.has_postponed() || self.walks.is_busy() || self.has_walks())
    }

    /// How long the worker may sleep if no other thread wakes it; `None` means without a limit.
    fn timer(&self) -> Option<Duration> {
        let core = &self.core;
        let watches_idlers = core.shared.config.idle_timeout.is_some() && !self.streams.is_empty();
        let has_tick = self.acceptor.is_deaf()
            || core.is_alarmed
            || watches_idlers
            || core.shared.switches.is_gathering()
            || self.streams.has_watchers()
            || self.streams.awaits_handshakes()
            || self.streams.may_hold_encrypted()
            || core.memory.pool.has_large()
            || core.memory.pool.has_freed();
        let is_soon = core.is_draining
            || core.memory.is_short
            || self.streams.awaits_news()
            || self.streams.has_borrowers()
            || self.streams.has_refused()
            || core.shared.places.are_awaited();
        let tick = if self.awaits_allowance() {
            Some(MILLISECOND)
        } else if is_soon || self.acceptor.has_more(core) {
            Some(SHORT_TICK)
        } else {
            has_tick.then_some(TICK)
        };
        let withheld = self.streams.withheld_until_ms();
        let answers = withheld.into_iter().chain(self.streams.throttled_due_ms());
        let answer = answers.min().map(|until_ms| {
            // Sleeping for zero milliseconds would cost an empty turn.
            Duration::from_millis(until_ms.saturating_sub(core.now.ms).max(1))
        });
        let credit = core.tender.as_ref().and_then(|tender| tender.timer());
        tick.into_iter().chain(answer).chain(credit).min()
    }
}
