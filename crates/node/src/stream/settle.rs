//! What a connection waits for next, and how it ends.

use glimmer_base::limits::DRAIN_MS_MAX;
use glimmer_base::sync::weakened;

use super::Streams;
use super::connection::{Connection, Input, Turn};
use super::key::ConnectionKey;
use super::phase::Phase;
use super::ready::Lane;
use crate::admin::observe::CloseReason;
use crate::budget::pool::Charge;
use crate::core::Core;

/// A server that stops waits for the rest of a request while its client sends more of it within
/// this many milliseconds.
const DRAIN_IDLE_MS_MAX: u64 = DRAIN_MS_MAX / 25;

impl Streams {
    /// Decides what a connection waits for: its next turn, the poller, a reorder buffer, or nothing
    /// any more.
    pub fn settle(&mut self, key: ConnectionKey, core: &mut Core) {
        let is_scarce = core.memory.budget.is_scarce();
        let Some(mut connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.visit.is_some() {
            if self.goes_home(key, core) {
                return;
            }
            connection = &mut self.connections[key];
        }
        if connection.is_finished() {
            self.close(key, core);
            return;
        }
        if connection.turn == Turn::Queued {
            // It has its turn already.
        } else if connection.tx.takes_turns() {
            connection.turn = Turn::Queued;
            self.ready.push_first(key, Lane::Large);
        } else if connection.is_runnable() || connection.should_produce() {
            connection.turn = Turn::Queued;
            let lane = connection.lane();
            self.ready.push(key, lane);
        } else if connection.reads_ahead(core.memory.room()) {
            connection.turn = Turn::Queued;
            self.ready.push(key, Lane::Large);
        }
        if is_scarce {
            connection.compact(&mut core.memory.pool);
        }
        connection.recharge(&mut core.memory.budget);
        let mut holds = connection.counted.bytes > 0;
        if core.shared.config.encryption.is_some() && connection.stream.held_bytes() > 0 {
            // No part of the memory for buffers.
            holds = true;
            self.encrypted.may_hold = true;
        }
        connection.patience.note_held(holds, core.now.ms);
        connection.patience.note_served(core.now.ms);
    }

    /// Sets a connection aside until this many bytes of memory are free.
    pub fn starve(&mut self, key: ConnectionKey, bytes: usize, core: &mut Core) {
        core.memory.pool.clear();
        core.memory.is_short = true;
        let connection = &mut self.connections[key];
        connection.turn = Turn::Queued;
        connection.patience.note_wait(core.now.ms);
        self.starved.push_back((key, bytes));
        self.starved_room = None;
    }

    /// Ends a connection. What it has crossing is executed all the same, and the replies are
    /// dropped when they come home.
    pub fn close(&mut self, key: ConnectionKey, core: &mut Core) {
        if self.close_at_home(key, core) {
            return;
        }
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        if !weakened("budget_not_returned") {
            (core.memory.budget).recharge_held(connection.counted, Charge::default());
        }
        if connection.rx.is_in_place() {
            drop(connection.rx.value);
            core.shared.end_upload();
        }
        core.memory.pool.give(connection.rx.bytes);
        core.memory.pool.give(connection.tx.bytes);
        let shared = &core.shared;
        shared.registry.remove(connection.entry.fd);
        shared.config.tenants.leave(connection.session.user);
        if let Some(feed) = connection.phase.feed() {
            shared.observers().remove(feed);
        }
        let reason = connection.closes.unwrap_or(CloseReason::Normal);
        (shared.observers()).show_connection(&connection.entry, Some(reason));
        shared.balancer.release(core.me);
        core.tally.curr_connections -= 1;
        core.tally.error_kicks += u64::from(reason == CloseReason::Error);
        // The client must not see the end of its connection before its place among those of its
        // address is free, and before it is counted: it may connect again or ask for the figures
        // next. The stream is open until this function returns.
        drop(connection.entry);
        core.show_figures();
        if let Phase::Reordering(mut reorder) = connection.phase {
            core.memory.pool.give(reorder.take_local());
            self.burst.recycle(reorder);
        }
        self.has_closed = true;
    }

    /// Closes the connections that meet a condition.
    pub fn close_where(
        &mut self,
        reason: CloseReason,
        mut condition: impl FnMut(&Connection) -> bool,
        core: &mut Core,
    ) {
        let chosen: Vec<ConnectionKey> = self
            .connections
            .iter()
            .filter(|(_, c)| condition(c))
            .map(|(key, _)| key)
            .collect();
        for key in chosen {
            self.connections[key].closes = Some(reason);
            core.tally.idle_kicks += u64::from(reason == CloseReason::IdleTimeout);
            self.close(key, core);
        }
    }

    /// Closes the connections that have been idle for too long, if there is a limit. One that has
    /// replies to send is not idle: its client may take them slowly, from the kernel's buffers. Nor
    /// is one that waits for this server.
    pub fn close_idle(&mut self, core: &mut Core) {
        let Some(idle) = core.shared.config.idle_timeout else {
            return;
        };
        let (idle_ms, now_ms) = (idle.as_millis() as u64, core.now.ms);
        let is_idle = |connection: &Connection| {
            connection.awaits_client() && connection.patience.idle_ms(now_ms) >= idle_ms
        };
        self.close_where(CloseReason::IdleTimeout, is_idle, core);
    }

    /// The server stops: has one more look at each connection for what has already arrived.
    pub fn begin_to_drain(&mut self, core: &mut Core) {
        self.end_handshakes();
        self.send_withheld(u64::MAX, usize::MAX, core);
        self.release_throttled(core);
        let keys: Vec<ConnectionKey> = self.connections.keys().collect();
        for key in keys {
            let connection = &mut self.connections[key];
            connection.input = connection.input.max(Input::Readable);
            self.settle(key, core);
        }
    }

    /// The server stops: closes what has nothing left to be done. The rest of a request may be on
    /// its way, and a client that has sent all of it awaits the reply.
    pub fn close_settled(&mut self, core: &mut Core) {
        let now_ms = core.now.ms;
        let is_under_way = |c: &Connection| {
            let is_served = c.turn == Turn::Queued;
            c.awaits_rest() && (is_served || c.patience.idle_ms(now_ms) < DRAIN_IDLE_MS_MAX)
        };
        let is_done = |c: &Connection| c.is_settled() && !c.is_runnable() && !is_under_way(c);
        self.close_where(CloseReason::Shutdown, is_done, core);
    }
}
