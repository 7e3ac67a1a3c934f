//! What a worker does once a second, and how it leaves.

use glimmer_base::limits::{BUFFER_BYTES, DRAIN_MS_MAX, REPLY_BYTES_HIGH, SHORT_TICK_MS};
use glimmer_base::sync::Ordering;

use crate::connection::{Connection, ConnectionKey};
use crate::worker::Worker;

impl Worker {
    /// Looks at timers.
    #[cold]
    pub fn tick(&mut self) {
        self.ticked_ms = self.now.ms;
        self.listen_again();
        if let Some(idle) = self.shared.config.idle_timeout {
            let idle_ms = idle.as_millis() as u64;
            let now_ms = self.now.ms;
            self.tally.idle_kicks +=
                self.close_where(|connection| now_ms - connection.progress_ms >= idle_ms);
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
        if self.port.has_unfinished() && self.bytes_free() >= REPLY_BYTES_HIGH {
            // One at a time: what it brings home is counted only then.
            self.port.resume_one();
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

    /// Of the connections that hold much and make no headway, closes the one that holds most. Returns whether there was one.
    fn close_largest_stalled(&mut self) -> bool {
        let now_ms = self.now.ms;
        let stalled = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.is_stalled(now_ms));
        let Some((key, _)) = stalled.max_by_key(|(_, connection)| connection.counted) else {
            return false;
        };
        self.tally.stalled_kicks += 1;
        self.close(key);
        true
    }

    fn close_where(&mut self, mut condition: impl FnMut(&Connection) -> bool) -> u64 {
        let chosen: Vec<ConnectionKey> = self
            .connections
            .iter()
            .filter(|(_, c)| condition(c))
            .map(|(key, _)| key)
            .collect();
        for &key in &chosen {
            self.close(key);
        }
        chosen.len() as u64
    }

    /// Begins to stop: no more connections, and one more look at each that is open for what has already arrived.
    pub fn begin_to_drain(&mut self) {
        self.listeners.clear();
        self.deaf = false;
        self.drain_until_ms = Some(self.now.ms + DRAIN_MS_MAX);
        let keys: Vec<ConnectionKey> = self.connections.keys().collect();
        for key in keys {
            let connection = &mut self.connections[key];
            connection.readable |= !connection.ended;
            self.settle(key);
        }
    }

    /// Closes what has nothing left to be done, and says whether the worker can go: when no worker has a connection any more, because until then
    /// others may send requests across, or when clients have had time enough.
    pub fn may_leave(&mut self) -> bool {
        self.close_where(|c| c.is_settled() && !c.is_runnable());
        let is_late = self
            .drain_until_ms
            .is_some_and(|until_ms| self.now.ms >= until_ms);
        if is_late {
            self.close_where(|_| true);
        }
        if self.connections.is_empty() && !self.has_drained {
            self.has_drained = true;
            self.shared.note_drained();
        }
        is_late || (self.has_drained && self.shared.all_drained())
    }

    /// Whether the server has been told to stop and this worker has yet to begin.
    pub fn is_told_to_stop(&self) -> bool {
        self.drain_until_ms.is_none() && self.shared.stopping.load(Ordering::Relaxed)
    }
}
