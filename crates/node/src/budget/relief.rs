//! What a worker does when memory for buffers is short: it takes it from those who hold some and
//! make no progress, and gives it to those who wait.
//!
//! A connection holds memory while its client has yet to send the rest of a request or to take
//! replies. [`Worker::bound_held`] keeps what all of them hold within the budget, whatever that
//! takes: the rest of the budget serves everybody else. Within it, a connection that needs more
//! than an ordinary buffer *claims* it, and waits if those who hold it have not been stalled for
//! long enough to be closed.

use glimmer_base::limits::{REPLY_BYTES_HIGH, SHORT_TICK_MS, STALLED_MS_MAX, STALLED_MS_MIN};

use crate::forward::batch::CompletionTag;
use crate::stream::key::ConnectionKey;
use crate::stream::ready::ReplyClass;
use crate::worker::Worker;

/// What is held beyond the budget is brought down to this part below it, so that stalled
/// connections are not looked for again with the next byte.
const SLACK_SHARE: usize = 8;

/// After a search for stalled connections in vain, the next follows after this many milliseconds, or
/// when as much more is held as the slack.
const SHED_MS: u64 = 5;

impl Worker {
    /// Brings what connections hold down to what they may.
    #[inline]
    pub fn bound_held(&mut self) {
        let excess = self.budget.excess();
        let is_in_vain = self.now.ms - self.shed_ms < SHED_MS
            && excess <= self.unshed_excess + self.budget.held_max() / SLACK_SHARE;
        if excess > 0 && !is_in_vain {
            self.shed(excess + self.budget.held_max() / SLACK_SHARE);
        }
    }

    #[cold]
    fn shed(&mut self, bytes: usize) {
        self.pool.clear();
        let holders = self.connections.values();
        let holders = holders.filter(|connection| connection.counted.bytes > 0);
        // One alone takes nothing from anybody: the turn has memory of its own.
        if self.starved.is_empty() && holders.take(2).count() < 2 {
            return;
        }
        self.take_from_stalled(bytes, STALLED_MS_MIN, |_| true);
        let excess = self.budget.excess();
        let coming = self.refuse_values(excess);
        if coming < excess {
            self.take_from_stalled(excess - coming, 0, |_| true);
        }
        if self.budget.excess() > 0 {
            // Those who hold the rest are about to be served.
            self.shed_ms = self.now.ms;
        }
        self.unshed_excess = self.budget.excess();
    }

    /// Makes room for so many bytes that a connection needs in one piece. Returns whether there is.
    #[cold]
    pub fn claim(&mut self, key: ConnectionKey, bytes: usize) -> bool {
        let room = self.room();
        if room < bytes && self.searched_ms != self.now.ms {
            let patience_ms = self.patience_ms();
            if !self.take_from_stalled(bytes - room, patience_ms, |other| other != key) {
                // There is nobody to take it from until time has passed.
                self.searched_ms = self.now.ms;
            }
        }
        self.room() >= bytes
    }

    /// How long a connection that holds memory may be stalled before it is closed for another.
    fn patience_ms(&self) -> u64 {
        let waiting = self.starved.len() as u64;
        (STALLED_MS_MAX / (1 + waiting)).max(STALLED_MS_MIN)
    }

    /// Has stalled connections hold no more than what is in their buffers. If that does not yield
    /// as many bytes, closes those that have been stalled for at least `stalled_ms` and that `may`
    /// be closed, the longest-stalled first. Returns whether that was enough.
    fn take_from_stalled(
        &mut self,
        bytes: usize,
        stalled_ms: u64,
        may: impl Fn(ConnectionKey) -> bool,
    ) -> bool {
        let now_ms = self.now.ms;
        let (room, excess) = (self.budget.room(), self.budget.excess());
        let mut stalled = Vec::new();
        for (key, connection) in &mut self.connections {
            if let Some(ms) = connection.stalled_ms(now_ms) {
                connection.compact(&mut self.pool);
                connection.recharge(&mut self.budget);
                if ms >= stalled_ms && may(key) {
                    stalled.push((ms, connection.held_since_ms, key));
                }
            }
        }
        // What is held beyond the budget is no room yet.
        let wanted = (room + bytes).saturating_sub(excess);
        let is_enough = |worker: &Worker| worker.budget.excess() == 0 && worker.room() >= wanted;
        // Of those that have been stalled for as long as each other, the newest goes first: it has
        // got least far.
        stalled.sort_unstable_by(|a, b| b.cmp(a));
        for (_, _, key) in stalled {
            if is_enough(self) {
                break;
            }
            self.tally.stalled_kicks += 1;
            self.close(key);
        }
        self.pool.clear();
        is_enough(self)
    }

    /// Memory is short: takes it from the stalled, and gives what there is to those who wait.
    #[cold]
    pub fn relieve(&mut self) {
        let is_due = self.now.ms - self.searched_ms >= self.patience_ms().min(SHORT_TICK_MS);
        let (wanted, room) = (self.bytes_wanted(), self.room());
        // Replies to forwarded requests need memory of the turn, which batches and what is held share.
        let room = match self.port.has_unfinished() {
            true => room.min(self.bytes_free()),
            false => room,
        };
        if room < wanted && is_due {
            let patience_ms = self.patience_ms();
            self.searched_ms = self.now.ms;
            let is_enough = match self.starved.is_empty() {
                false => self.take_from_stalled(wanted - room, patience_ms, |_| true),
                true => self.take_for_forwarded(wanted - room, patience_ms),
            };
            if !is_enough {
                self.refuse_newest();
            }
        }
        if self.port.has_unfinished() {
            // One at a time, because what it brings home is counted only then. Without memory,
            // still the reply that a client waits for which has taken all before it: later replies
            // of its reorder buffer may be what takes the memory, and they can leave only after
            // this one.
            let has_memory = self.bytes_free() >= REPLY_BYTES_HIGH;
            let connections = &self.connections;
            let is_awaited = |tag: CompletionTag| {
                let connection = connections.get(tag.connection);
                connection.is_none_or(|connection| connection.awaits(tag.slot))
            };
            self.port.resume_one(|tag| has_memory || is_awaited(tag));
            self.port.wake_peers();
        }
        // Those who want little need not wait behind those who want much.
        let (mut room, now_ms) = (self.room(), self.now.ms);
        let (ready, connections) = (&mut self.ready, &self.connections);
        self.starved.retain(|&(key, bytes)| {
            let Some(connection) = connections.get(key) else {
                return false;
            };
            let stays = bytes > room && !connection.has_waited_enough(now_ms);
            if !stays {
                room = room.saturating_sub(bytes);
                ready.push(key, ReplyClass::of(connection.burst_reply_bytes));
            }
            stays
        });
        self.is_short = !self.starved.is_empty() || self.port.has_unfinished();
    }

    /// If the one who has waited for longest could not go on even after everybody who does not wait
    /// had freed what they hold, refuses the values of others who wait, the newest first.
    fn refuse_newest(&mut self) {
        let Some(&(_, wanted)) = self.starved.front() else {
            return;
        };
        let held_by = |&(key, _): &(ConnectionKey, usize)| {
            let connection = self.connections.get(key);
            connection.map_or(0, |connection| connection.counted.bytes)
        };
        let by_waiting: usize = self.starved.iter().map(held_by).sum();
        let by_others = self.budget.held().saturating_sub(by_waiting);
        self.refuse_values(wanted.saturating_sub(self.room() + by_others));
    }

    /// Refuses values of those who wait for memory, the newest first and never the oldest one's,
    /// until as many bytes are about to become free. Returns how many are.
    fn refuse_values(&mut self, bytes: usize) -> usize {
        let mut coming = 0;
        for index in (1..self.starved.len()).rev() {
            if coming >= bytes {
                break;
            }
            let (key, _) = self.starved[index];
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if connection.awaits_value() && connection.counted.bytes > 0 {
                coming += connection.counted.bytes;
                connection.refuse_value();
                connection.end_wait();
                self.tally.values_refused += 1;
                self.starved.remove(index);
                self.ready
                    .push(key, ReplyClass::of(connection.burst_reply_bytes));
            }
        }
        coming
    }

    /// Whether there is what somebody waits for.
    #[inline]
    pub fn can_relieve(&self) -> bool {
        let room = self.room();
        (self.starved.front()).is_some_and(|&(_, bytes)| bytes <= room)
    }

    /// Bytes of memory that those who wait want, as many as they may hold together.
    fn bytes_wanted(&self) -> usize {
        let starved: usize = self.starved.iter().map(|&(_, bytes)| bytes).sum();
        let batches = match self.port.has_unfinished() {
            true => REPLY_BYTES_HIGH,
            false => 0,
        };
        starved.max(batches).min(self.budget.held_max())
    }

    /// Closes stalled connections for batches that wait for memory. A client that is alone in
    /// waiting for them waits for nobody but itself: it gets its replies when it takes those it
    /// has.
    fn take_for_forwarded(&mut self, bytes: usize, patience_ms: u64) -> bool {
        let with_window: Vec<ConnectionKey> = (self.connections.iter())
            .filter(|(_, connection)| connection.reorder.is_some())
            .map(|(key, _)| key)
            .take(2)
            .collect();
        // What crossed behind an unfinished batch waits with it, whoever sent it.
        let others_wait = |key| with_window.iter().any(|&other| other != key);
        self.take_from_stalled(bytes, patience_ms, others_wait)
    }
}
