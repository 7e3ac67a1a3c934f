//! Takes memory for buffers from connections that make no progress and gives it to connections that
//! wait, when a worker is short of it.
//!
//! A connection holds memory while its client has yet to send the rest of a request or to read
//! replies. [`Streams::bound_held`] keeps the total of held memory within the budget by any means;
//! the rest of the budget serves all other connections. Within it, a connection that needs more
//! than an ordinary buffer *claims* memory, and waits if the holders have not been stalled for long
//! enough to be closed.

use glimmer_base::limits::{
    BUFFER_BYTES, QUEUE_MS_MAX, RECEIVE_BYTES_SCARCE, REPLY_BYTES_HIGH, SHORT_TICK_MS,
    STALLED_MS_MAX, STALLED_MS_MIN,
};

use super::Streams;
use super::key::ConnectionKey;
use super::receive_buffer::Room;
use crate::core::Core;
use crate::forward::batch::Asker;
use crate::forward::port::Port;

/// When too much is held, the total is reduced to this fraction (1 / n) below the budget, so that
/// the next byte does not cause another search for stalled connections.
const SLACK_SHARE: usize = 8;

/// Milliseconds between two searches for stalled connections, if the first found none. The next one
/// also follows when the held memory has grown by the slack.
const SHED_MS: u64 = 5;

impl Streams {
    /// Reduces the memory that connections hold to their budget. While much of it is held, no large
    /// buffers are kept beside it.
    #[inline]
    pub fn bound_held(&mut self, core: &mut Core) {
        core.memory.bound_kept(core.now.ms);
        let excess = core.memory.budget.excess();
        let slack = core.memory.budget.held_max() / SLACK_SHARE;
        let is_in_vain = core.now.ms - core.memory.shed_ms < SHED_MS
            && excess <= core.memory.unshed_excess + slack;
        if excess > 0 && !is_in_vain {
            self.shed(excess + slack, core);
        }
    }

    #[cold]
    fn shed(&mut self, bytes: usize, core: &mut Core) {
        core.memory.pool.clear();
        let holders = self.connections.values();
        let holders = holders.filter(|connection| connection.counted.bytes > 0);
        // A single connection takes nothing from others: the turn has its own memory.
        if self.starved.is_empty() && holders.take(2).count() < 2 {
            return;
        }
        self.take_from_stalled(bytes, STALLED_MS_MIN, |_| true, core);
        let excess = core.memory.budget.excess();
        if excess > 0 {
            self.take_from_stalled(excess, 0, |_| true, core);
        }
        if core.memory.budget.excess() > 0 {
            // The remaining holders are about to be served.
            core.memory.shed_ms = core.now.ms;
        }
        core.memory.unshed_excess = core.memory.budget.excess();
    }

    /// Makes room for `bytes` in one piece that a connection needs. Returns whether there is room.
    #[cold]
    pub fn claim(&mut self, key: ConnectionKey, bytes: usize, core: &mut Core) -> bool {
        let room = core.memory.room();
        if room < bytes && core.memory.searched_ms != core.now.ms {
            let patience_ms = self.patience_ms(core.now.ms);
            if !self.take_from_stalled(bytes - room, patience_ms, |other| other != key, core) {
                // No holder can be closed before some time has passed.
                core.memory.searched_ms = core.now.ms;
            }
        }
        core.memory.room() >= bytes
    }

    /// Makes room for a connection to receive into. A connection without room waits. After
    /// `MEMORY_WAIT_MS_MAX` the value or the command that it sends is refused. It is closed if it
    /// sends a line. Returns whether it goes on.
    #[inline]
    pub(super) fn make_room(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let connection = &mut self.connections[key];
        if !core.memory.budget.is_scarce() && connection.rx.take_ordinary(&mut core.memory.pool) {
            if connection.rx.capacity() > BUFFER_BYTES {
                connection.recharge(&mut core.memory.budget);
            }
            return true;
        }
        self.make_more_room(key, core)
    }

    /// [`make_room`](Self::make_room) where an ordinary buffer is not enough, or too much.
    #[inline(never)]
    fn make_more_room(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let Room::Missing(bytes) = self.grow(key, core) else {
            return true;
        };
        if self.claim(key, bytes, core) && self.grow(key, core) == Room::Made {
            return true;
        }
        let connection = &mut self.connections[key];
        if !connection.patience.has_waited_enough(core.now.ms) {
            self.starve(key, bytes, core);
            return false;
        }
        if connection.rx.awaits_value() || connection.session.parser.keeps_commands() {
            connection.refuse_value();
            core.tally.values_refused += 1;
            core.show_figures();
            return true;
        }
        core.tally.stalled_kicks += 1;
        self.close(key, core);
        false
    }

    /// Makes room for a connection to receive into, if there is memory for it.
    fn grow(&mut self, key: ConnectionKey, core: &mut Core) -> Room {
        let (room, is_scarce) = (core.memory.room(), core.memory.budget.is_scarce());
        let connection = &mut self.connections[key];
        let pool = &mut core.memory.pool;
        let made = connection.rx.make_room(pool, room, is_scarce);
        if made == Room::Made && connection.rx.capacity() > BUFFER_BYTES {
            // Others of the burst may want to grow as well.
            connection.recharge(&mut core.memory.budget);
        }
        made
    }

    /// How long a connection that holds memory may be stalled before it is closed in favour of
    /// another. A queue of connections that wait is no reason for haste as long as it moves.
    fn patience_ms(&self, now_ms: u64) -> u64 {
        let first = self.starved.front();
        let first = first.and_then(|&(key, _)| self.connections.get(key));
        let waiting =
            match first.is_some_and(|first| first.patience.waited_ms(now_ms) >= QUEUE_MS_MAX) {
                true => self.starved.len() as u64,
                false => 0,
            };
        (STALLED_MS_MAX / (1 + waiting)).max(STALLED_MS_MIN)
    }

    /// Reduces the buffers of stalled connections to their contents. If that does not free enough
    /// bytes, closes connections that have been stalled for at least `stalled_ms` and for which
    /// `may` returns true, the longest-stalled first. Returns whether that was enough.
    fn take_from_stalled(
        &mut self,
        bytes: usize,
        stalled_ms: u64,
        may: impl Fn(ConnectionKey) -> bool,
        core: &mut Core,
    ) -> bool {
        let now_ms = core.now.ms;
        let (room, excess) = (core.memory.budget.room(), core.memory.budget.excess());
        let mut stalled = Vec::new();
        for (key, connection) in &mut self.connections {
            if connection.counted.bytes > 0
                && let Some(ms) = connection.stalled_ms(now_ms)
            {
                connection.compact(&mut core.memory.pool);
                connection.recharge(&mut core.memory.budget);
                // It would not help to close one whose reply lies in the table, or in a copy.
                let holds_little =
                    connection.tx.borrows() && connection.counted.bytes <= RECEIVE_BYTES_SCARCE;
                if ms >= stalled_ms && !holds_little && may(key) {
                    stalled.push((ms, connection.patience.held_since_ms, key));
                }
            }
        }
        // Bytes held beyond the budget do not count as room.
        let wanted = (room + bytes).saturating_sub(excess);
        let is_enough =
            |core: &Core| core.memory.budget.excess() == 0 && core.memory.room() >= wanted;
        // Of connections stalled for the same time, the newest is closed first, because it has made
        // the least progress.
        stalled.sort_unstable_by(|a, b| b.cmp(a));
        for (_, _, key) in stalled {
            if is_enough(core) {
                break;
            }
            core.tally.stalled_kicks += 1;
            self.close(key, core);
        }
        core.memory.pool.clear();
        core.memory.return_freed(now_ms);
        is_enough(core)
    }

    /// Memory is short: takes it from stalled connections and gives it to waiting ones.
    #[cold]
    pub fn relieve(&mut self, core: &mut Core, port: &Port) {
        core.memory.pool.free_large();
        let is_due = core.now.ms - core.memory.searched_ms
            >= self.patience_ms(core.now.ms).min(SHORT_TICK_MS);
        let (wanted, room) = (self.bytes_wanted(core, port), core.memory.room());
        // Replies to forwarded requests need memory of the turn, which forwarded batches and held
        // memory share.
        let room = match port.has_unfinished() {
            true => room.min(core.memory.bytes_free()),
            false => room,
        };
        if room < wanted && is_due {
            let patience_ms = self.patience_ms(core.now.ms);
            core.memory.searched_ms = core.now.ms;
            match self.starved.is_empty() {
                false => self.take_from_stalled(wanted - room, patience_ms, |_| true, core),
                true => self.take_for_forwarded(wanted - room, patience_ms, core),
            };
        }
        // Connections that need little do not wait for those that need much.
        let (mut room, now_ms) = (core.memory.room(), core.now.ms);
        self.starved_room = Some(room);
        let (ready, connections) = (&mut self.ready, &self.connections);
        self.starved.retain(|&(key, bytes)| {
            let Some(connection) = connections.get(key) else {
                return false;
            };
            let stays = bytes > room && !connection.patience.has_waited_enough(now_ms);
            if !stays {
                room = room.saturating_sub(bytes);
                ready.push(key, connection.lane());
            }
            stays
        });
        core.memory.is_short = !self.starved.is_empty() || port.has_unfinished();
    }

    /// Sends the oldest forwarded batch again of which a reply is wanted now: one at a time, as the
    /// memory of its replies is counted only after it has returned. `datagram_awaits` knows whether
    /// the reply of a slot of a datagram is awaited next.
    #[cold]
    pub fn resume_forwarded(
        &mut self,
        datagram_awaits: impl Fn(u64, u16) -> bool,
        core: &Core,
        port: &mut Port,
    ) {
        let has_memory = core.memory.bytes_free() >= REPLY_BYTES_HIGH;
        // Even without memory, the reply is resumed for a client that has read all earlier replies:
        // later replies in its reorder buffer may occupy the memory, and they can be sent only
        // after this one. A client that has much to take already, which takes no memory if it is
        // lent, gets more only if others wait behind it.
        port.resume_one(|tag, others_wait| match tag.asker {
            Asker::Connection(key) => self.connections.get(key).is_none_or(|connection| {
                let has_little = || connection.lent_bytes() < REPLY_BYTES_HIGH;
                let goes_on = has_memory && (others_wait || has_little());
                goes_on || connection.awaits(tag.slot)
            }),
            Asker::Datagram(number) => has_memory || datagram_awaits(number, tag.slot),
        });
    }

    /// Whether there is memory for the connection that has waited longest.
    #[inline]
    pub fn can_relieve(&self, core: &Core) -> bool {
        let room = core.memory.room();
        let is_new = self.starved_room.is_none_or(|before| before < room);
        is_new && (self.starved.front()).is_some_and(|&(_, bytes)| bytes <= room)
    }

    /// Bytes that waiting connections need, limited by what they may hold together.
    fn bytes_wanted(&self, core: &Core, port: &Port) -> usize {
        let starved: usize = self.starved.iter().map(|&(_, bytes)| bytes).sum();
        let batches = match port.has_unfinished() {
            true => REPLY_BYTES_HIGH,
            false => 0,
        };
        starved.max(batches).min(core.memory.budget.held_max())
    }

    /// Closes stalled connections in favour of waiting forwarded batches. A client that is the only
    /// one waiting for them gets its replies when it reads those it has.
    fn take_for_forwarded(&mut self, bytes: usize, patience_ms: u64, core: &mut Core) -> bool {
        let with_window: Vec<ConnectionKey> = (self.connections.iter())
            .filter(|(_, connection)| connection.phase.reorder().is_some())
            .map(|(key, _)| key)
            .take(2)
            .collect();
        // Requests forwarded after an unfinished batch wait with it, whichever connection sent
        // them.
        let others_wait = |key| with_window.iter().any(|&other| other != key);
        self.take_from_stalled(bytes, patience_ms, others_wait, core)
    }
}
