//! What a worker does once a second, and when memory is short.

use glimmer_base::limits::{BUFFER_BYTES, DUMP_CHAINS_PER_TURN, REPLY_BYTES_HIGH, SHORT_TICK_MS};
use glimmer_engine::{ListCursor, ListScope};

use crate::connection::{Connection, ConnectionKey};
use crate::mesh::parcel::Ticket;
use crate::observe::CloseReason;
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

    /// Memory is short: gives what there is to those who wait for it, and takes it from those who hold much of it and make no headway.
    #[cold]
    pub fn relieve(&mut self) {
        if self.bytes_free() < self.bytes_wanted()
            && self.now.ms - self.searched_ms >= SHORT_TICK_MS
        {
            self.searched_ms = self.now.ms;
            self.pool.clear();
            while self.bytes_free() < self.bytes_wanted() && self.close_largest_stalled() {}
        }
        if self.port.has_unfinished() {
            // One at a time: what it brings home is counted only then. Without memory, still what a client waits for that has taken all
            // before it: later replies of its window may be what takes the memory, and they go only behind this one.
            let has_memory = self.bytes_free() >= REPLY_BYTES_HIGH;
            let connections = &self.connections;
            let is_awaited = |ticket: Ticket| {
                let connection = connections.get(ticket.connection);
                connection.is_none_or(|connection| connection.awaits(ticket.hole))
            };
            self.port
                .resume_one(|ticket| has_memory || is_awaited(ticket));
            self.port.wake_peers();
        }
        // Those who want little need not wait behind those who want much.
        let free = self.bytes_free();
        let ready = &mut self.ready;
        self.starved.retain(|&(key, bytes)| {
            let stays = bytes > free;
            if !stays {
                ready.push_back(key);
            }
            stays
        });
        self.is_short = !self.starved.is_empty() || self.port.has_unfinished();
    }

    /// Bytes of memory that whoever waits for longest needs.
    fn bytes_wanted(&self) -> usize {
        match self.starved.front() {
            _ if self.port.has_unfinished() => REPLY_BYTES_HIGH,
            Some(&(_, bytes)) => bytes,
            None => self.reply_bytes_guess.max(BUFFER_BYTES),
        }
    }

    /// Of the connections that hold much and make no headway while others go without, closes the one that holds most. Returns whether there
    /// was one.
    fn close_largest_stalled(&mut self) -> bool {
        let now_ms = self.now.ms;
        let stalled = self
            .connections
            .iter()
            .filter(|&(key, connection)| connection.is_stalled(now_ms) && self.others_lack(key));
        let Some((key, _)) = stalled.max_by_key(|(_, connection)| connection.counted.bytes) else {
            return false;
        };
        self.tally.stalled_kicks += 1;
        self.close(key);
        true
    }

    /// Whether somebody beside this connection lacks memory. A client that is alone in lacking it waits for nobody but itself: it gets its
    /// replies when it takes those it has.
    fn others_lack(&self, key: ConnectionKey) -> bool {
        let others_starve = self.starved.iter().any(|&(starved, _)| starved != key);
        // What crossed behind an unfinished parcel waits with it, whoever sent it.
        let others_wait = || {
            let mut others = self.connections.iter().filter(|&(other, _)| other != key);
            others.any(|(_, connection)| connection.window.is_some())
        };
        others_starve || (self.port.has_unfinished() && others_wait())
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
