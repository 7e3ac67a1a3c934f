//! How long the worker may sleep.

use std::time::Duration;

use glimmer_base::limits::SHORT_TICK_MS;

use super::{TICK, Worker};

const SHORT_TICK: Duration = Duration::from_millis(SHORT_TICK_MS);

impl Worker {
    /// Sleeps until there is something to do.
    pub(super) fn wait(&mut self) {
        let busy_poll = self.core.shared.config.busy_poll;
        if self.is_busy() || self.idle_turns_left > 0 || busy_poll {
            self.idle_turns_left = self.idle_turns_left.saturating_sub(1);
            self.poll(Some(Duration::ZERO));
        } else {
            let doorbell = self.core.shared.doorbells[self.core.me].clone();
            let may_sleep = doorbell.may_sleep(|| self.has_mail());
            let timeout = if may_sleep {
                self.timer()
            } else {
                Some(Duration::ZERO)
            };
            self.poll(timeout);
            doorbell.awake();
        }
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        self.poller.wait(timeout).expect("the poller is sound");
    }

    /// Whether connections wait to be served, or datagrams may.
    fn is_busy(&self) -> bool {
        let core = &self.core;
        self.streams.is_busy()
            || self.crawler.is_busy()
            || self.packets.is_busy()
            || (self.acceptor.has_more(core) && !self.acceptor.is_deaf())
            || self.streams.can_relieve(core)
    }

    /// Whether another thread has put something where this one looks.
    fn has_mail(&self) -> bool {
        let core = &self.core;
        self.port.has_incoming()
            || core.shared.has_mail(core.me)
            || self.is_told_to_stop()
            || self.crawler.is_asked(core)
            || self.has_news_of_drain()
    }

    /// How long the worker may sleep although no other thread wakes it; `None`: for ever.
    fn timer(&self) -> Option<Duration> {
        let core = &self.core;
        let watches_idlers = core.shared.config.idle_timeout.is_some() && !self.streams.is_empty();
        let has_tick = self.acceptor.is_deaf()
            || core.is_draining
            || core.is_alarmed
            || watches_idlers
            || core.memory.pool.has_freed();
        let tick = if core.memory.is_short || self.acceptor.has_more(core) {
            Some(SHORT_TICK)
        } else {
            has_tick.then_some(TICK)
        };
        let answer = self.streams.withheld_until_ms().map(|until_ms| {
            // Not at all would be a turn for nothing.
            Duration::from_millis(until_ms.saturating_sub(core.now.ms).max(1))
        });
        tick.into_iter().chain(answer).min()
    }
}
