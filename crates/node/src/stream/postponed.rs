//! Connections with administrative commands that have to wait: until the next turn, because the
//! allowance of this one is spent ([`Allowance`](crate::admin::allowance::Allowance)); or for
//! something that others do, of which nobody tells the worker more than that there is news.
//!
//! What such a connection has sent after its command is not parsed meanwhile.

use std::collections::VecDeque;

use glimmer_base::limits::SHORT_TICK_MS;

use super::Streams;
use super::connection::Turn;
use super::key::ConnectionKey;
use crate::core::Core;
use crate::forward::port::Port;

/// Connections with administrative commands that have to wait.
#[derive(Default)]
pub(super) struct Postponed {
    /// Those that go on when there is an allowance, in the order in which they came.
    next_turn: VecDeque<ConnectionKey>,
    /// Those that go on when there is news, or a short time has passed.
    later: Vec<ConnectionKey>,
    /// The news that the worker knows of.
    news: u64,
    /// When the others are looked at again, in milliseconds since the epoch.
    retry_ms: u64,
}

impl Streams {
    /// Has a connection wait for the next turn.
    pub fn postpone(&mut self, key: ConnectionKey) {
        self.connections[key].turn = Turn::Queued;
        self.postponed.next_turn.push_back(key);
    }

    /// Has a connection wait for news.
    pub fn await_news(&mut self, key: ConnectionKey, core: &Core) {
        self.connections[key].turn = Turn::Queued;
        if self.postponed.later.is_empty() {
            self.postponed.retry_ms = core.now.ms + SHORT_TICK_MS;
        }
        self.postponed.later.push(key);
    }

    /// Whether postponed connections go on in the next turn.
    #[inline]
    pub fn has_postponed(&self) -> bool {
        !self.postponed.next_turn.is_empty()
    }

    /// Whether connections wait for news.
    #[inline]
    pub fn awaits_news(&self) -> bool {
        !self.postponed.later.is_empty()
    }

    /// Whether there is news for connections that wait for it.
    #[inline]
    pub fn has_news(&self, core: &Core) -> bool {
        self.awaits_news() && core.shared.news() != self.postponed.news
    }

    /// Serves the connections that wait for an allowance, those first that have waited for longest,
    /// until it is spent.
    #[cold]
    pub fn serve_postponed(&mut self, core: &mut Core, port: &mut Port) {
        let is_time = core.now.ms >= self.postponed.retry_ms;
        if self.awaits_news() && (is_time || self.has_news(core)) {
            // Before they look for what they wait for, so that none is overlooked.
            self.postponed.news = core.shared.news();
            let postponed = &mut self.postponed;
            postponed.next_turn.extend(postponed.later.drain(..));
        }
        for _ in 0..self.postponed.next_turn.len() {
            if core.allowance.is_spent() {
                return;
            }
            let Some(key) = self.postponed.next_turn.pop_front() else {
                return;
            };
            if let Some(connection) = self.connections.get(key) {
                let lane = connection.lane();
                self.ready.push_first(key, lane);
                self.serve_burst(lane, core, port);
            }
        }
    }
}
