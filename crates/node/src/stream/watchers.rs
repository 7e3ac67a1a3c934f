//! Watchers: connections that are shown what happens and ask for nothing more.

use glimmer_base::limits::{WATCH_FULL_MS_MAX, WATCHER_BYTES_PER_TURN};
use glimmer_base::sync::weakened;
use glimmer_proto::text::lines;
use glimmer_transport::Readiness;

use super::Streams;
use super::key::ConnectionKey;
use super::phase::Phase;
use super::registry::Activity;
use crate::core::Core;

impl Streams {
    /// Makes a watcher of a connection that asked for it, or tells it that there are too many.
    pub fn begin_to_watch(&mut self, key: ConnectionKey, interests: u32, core: &mut Core) {
        let feed = core.shared.observers().add(core.me, interests);
        let connection = &mut self.connections[key];
        let line = match feed {
            Some(_) => lines::OK,
            None => lines::TOO_MANY_WATCHERS,
        };
        connection.tx.bytes.extend_from_slice(line.as_bytes());
        if let Some(feed) = feed {
            // What has arrived after the command is passed over as well.
            connection.rx.start = connection.rx.bytes.len();
            connection.rx.trim(&mut core.memory.pool);
            connection.phase.begin(Phase::Watching(feed));
            connection.entry.note(Activity::Watch);
            self.watchers.push(key);
        }
    }

    /// Sends what happened to the watchers of this worker that have taken what they were sent
    /// before.
    pub fn serve_watchers(&mut self, core: &mut Core) {
        if !self.heard.is_empty() {
            self.settle_heard(core);
        }
        if !core.shared.observers().take_pending(core.me) {
            return;
        }
        for index in 0..self.watchers.len() {
            let key = self.watchers[index];
            if self.connections.get(key).is_some_and(|it| it.tx.is_empty()) {
                self.feed_watcher(key, core);
            }
        }
        let connections = &self.connections;
        self.watchers.retain(|&key| connections.contains_key(key));
    }

    /// Sends what a watcher has yet to be sent; it has taken what it was sent before.
    pub fn feed_watcher(&mut self, key: ConnectionKey, core: &mut Core) {
        // As often as it takes all at once, it gets what has come meanwhile.
        for _ in 0..2 {
            let Some(connection) = self.connections.get_mut(key) else {
                return;
            };
            let Some(feed) = connection.phase.feed().cloned() else {
                return;
            };
            if !connection.tx.is_empty() {
                return;
            }
            let out = connection.tx.buffer(&mut core.memory.pool);
            core.shared.observers().take(&feed, out);
            if out.is_empty() {
                connection.tx.clear(&mut core.memory.pool);
                return;
            }
            self.send_and_settle(key, core);
        }
    }

    /// Whether there are watchers, whose feeds are looked at with every tick.
    pub fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Closes the watchers whose feeds have been full for too long: they read too slowly, or not at
    /// all.
    pub fn close_full_watchers(&mut self, core: &mut Core) {
        for index in 0..self.watchers.len() {
            let key = self.watchers[index];
            let feed = self.connections.get(key).and_then(|it| it.phase.feed());
            if feed.is_some_and(|feed| feed.full_ms(core.now.ms) >= WATCH_FULL_MS_MAX) {
                core.tally.stalled_kicks += 1;
                self.close(key, core);
            }
        }
        let connections = &self.connections;
        self.watchers.retain(|&key| connections.contains_key(key));
    }

    /// Passes over some of what a watcher sends, and notes when it is gone. What follows waits for
    /// the next turn: a client that never stops sending keeps nobody waiting. Returns the number of
    /// bytes.
    pub(super) fn hear_watcher(&mut self, key: ConnectionKey, core: &mut Core) -> usize {
        let mut passed = 0;
        let mut scratch = core.memory.pool.take();
        let connection = &mut self.connections[key];
        loop {
            passed += connection.pass_over(&mut scratch, WATCHER_BYTES_PER_TURN);
            if !(weakened("watcher_heard_to_its_end") && connection.input.is_readable()) {
                break;
            }
        }
        core.memory.pool.give(scratch);
        core.tally.bytes_read += passed as u64;
        self.heard.push(key);
        passed
    }

    /// Decides what the watchers wait for that were heard in this turn.
    fn settle_heard(&mut self, core: &mut Core) {
        let mut heard = std::mem::take(&mut self.heard);
        for key in heard.drain(..) {
            self.settle(key, core);
        }
        self.heard = heard;
    }

    /// Notes what the poller reported of a watcher.
    #[cold]
    pub fn note_watchers_readiness(
        &mut self,
        key: ConnectionKey,
        ready: Readiness,
        core: &mut Core,
    ) {
        if ready.writable {
            self.send_and_settle(key, core);
            self.feed_watcher(key, core);
        } else {
            self.settle(key, core);
        }
    }
}
