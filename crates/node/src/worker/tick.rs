//! What a worker does once a second.

use glimmer_base::limits::DUMP_CHAINS_PER_TURN;
use glimmer_engine::{ListCursor, ListScope};

use crate::admin::observe::CloseReason;
use crate::stream::connection::Connection;
use crate::stream::key::ConnectionKey;
use crate::worker::Worker;

impl Worker {
    /// Looks at timers.
    #[cold]
    pub fn tick(&mut self) {
        self.ticked_ms = self.now.ms;
        self.tick_native();
        if self.pool.take_freed() {
            glimmer_transport::give_back_freed();
        }
        self.listen_again();
        if let Some(idle) = self.shared.config.idle_timeout {
            let idle_ms = idle.as_millis() as u64;
            let now_ms = self.now.ms;
            let is_idle = |connection: &Connection| {
                connection.feed.is_none() && now_ms - connection.progress_ms >= idle_ms
            };
            self.close_where(CloseReason::IdleTimeout, is_idle);
        }
    }

    /// Goes on looking for expired items, if that was asked for.
    pub fn crawl_on(&mut self) {
        let asked = self.shared.switches.crawls();
        if self.crawls != asked {
            self.crawls = asked;
            self.crawl = Some(ListCursor::new(ListScope::Owned));
        }
        let Some(cursor) = self.crawl.as_mut() else {
            return;
        };
        match self.engine.expire(self.now, cursor, DUMP_CHAINS_PER_TURN) {
            Some(removed) => {
                self.tally.crawler_reclaimed += removed;
                self.tally.crawler_items_checked += removed;
            }
            None => {
                self.crawl = None;
                // The crawl has looked at everything that is left.
                let figures = self.engine.figures().table();
                self.tally.crawler_items_checked += figures.store.items;
                self.shared.switches.end_crawl();
            }
        }
    }

    pub fn close_where(
        &mut self,
        reason: CloseReason,
        mut condition: impl FnMut(&Connection) -> bool,
    ) {
        let chosen: Vec<ConnectionKey> = self
            .connections
            .iter()
            .filter(|(_, c)| condition(c))
            .map(|(key, _)| key)
            .collect();
        for key in chosen {
            self.connections[key].reason = reason;
            self.tally.idle_kicks += u64::from(reason == CloseReason::IdleTimeout);
            self.close(key);
        }
    }
}
