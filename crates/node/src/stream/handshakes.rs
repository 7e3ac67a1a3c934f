//! Connections that shake hands before their first byte: as many at a time as leave the others
//! their share of the worker's time, and each until its deadline.

use std::collections::VecDeque;

use glimmer_base::limits::{TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKE_SHARE};
use glimmer_transport::stream::Handshaking;

use super::Streams;
use super::connection::{Input, Turn};
use super::key::ConnectionKey;
use super::phase::Phase;
use crate::admin::observe::CloseReason;
use crate::core::Core;

/// The connections of a worker that shake hands.
#[derive(Default)]
pub(super) struct Handshakes {
    /// Those that go on with it in their turn.
    ready: VecDeque<ConnectionKey>,
    /// Until when each has to be done, in milliseconds since the epoch, in this order. Some are
    /// done or closed.
    until: VecDeque<(u64, ConnectionKey)>,
    /// Until when others come first, in nanoseconds of the clock.
    rests_until_ns: u64,
    /// Steps of the worker when one last went on.
    steps: u64,
}

impl Streams {
    /// A connection has been opened whose handshake comes first.
    pub(super) fn begin_handshake(&mut self, key: ConnectionKey, core: &Core) {
        self.connections[key].phase.begin(Phase::Handshake);
        let until_ms = core.now.ms + TLS_HANDSHAKE_MS_MAX;
        self.handshakes.until.push_back((until_ms, key));
        self.note_handshake(key);
    }

    /// Something was reported of a connection that shakes hands.
    #[cold]
    pub(super) fn note_handshake(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        if connection.turn != Turn::Queued {
            connection.turn = Turn::Queued;
            self.handshakes.ready.push_back(key);
        }
    }

    /// Whether handshakes wait to go on.
    #[inline]
    pub fn has_handshakes(&self) -> bool {
        !self.handshakes.ready.is_empty()
    }

    /// Whether handshakes are under way, whose deadlines come.
    pub fn awaits_handshakes(&self) -> bool {
        !self.handshakes.until.is_empty()
    }

    /// Has the handshake go on that has waited for longest. The most costly step of one takes as
    /// long as hundreds of requests, so there is one in a turn. While others are served, they then
    /// have several times as long.
    #[cold]
    pub fn serve_handshake(&mut self, core: &mut Core) {
        let clock = core.shared.config.clock.clone();
        let since_ns = clock.ns();
        let serves_others = core.steps() != self.handshakes.steps;
        if serves_others && since_ns < self.handshakes.rests_until_ns {
            return;
        }
        while let Some(key) = self.handshakes.ready.pop_front() {
            if self.advance_handshake(key, core) {
                break;
            }
        }
        let now_ns = clock.ns();
        let took_ns = now_ns.saturating_sub(since_ns);
        self.handshakes.rests_until_ns = now_ns + (TLS_HANDSHAKE_SHARE - 1) * took_ns;
        self.handshakes.steps = core.steps();
    }

    /// Returns whether there was something to do.
    fn advance_handshake(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        connection.turn = Turn::None;
        match connection.stream.handshake() {
            Handshaking::Waits => {}
            Handshaking::GoesOn => self.note_handshake(key),
            Handshaking::Done => {
                connection
                    .entry
                    .note_client(connection.stream.client_name());
                connection.phase.end();
                // What has arrived after the handshake may have been received with it.
                connection.input = connection.input.max(Input::Readable);
                self.settle(key, core);
            }
            Handshaking::Failed => {
                connection.closes = Some(CloseReason::Error);
                self.close(key, core);
            }
        }
        true
    }

    /// Closes the connections whose handshakes have taken too long.
    pub fn close_late_handshakes(&mut self, core: &mut Core) {
        while let Some(&(until_ms, key)) = self.handshakes.until.front() {
            let is_open = self.is_handshaking(key);
            if is_open && until_ms > core.now.ms {
                return;
            }
            self.handshakes.until.pop_front();
            if is_open {
                core.tally.handshake_kicks += 1;
                self.connections[key].closes = Some(CloseReason::IdleTimeout);
                self.close(key, core);
            }
        }
    }

    /// The server stops: no handshake is worth waiting for.
    pub(super) fn close_handshakes(&mut self, core: &mut Core) {
        while let Some((_, key)) = self.handshakes.until.pop_front() {
            if self.is_handshaking(key) {
                self.connections[key].closes = Some(CloseReason::Shutdown);
                self.close(key, core);
            }
        }
    }

    fn is_handshaking(&self, key: ConnectionKey) -> bool {
        let connection = self.connections.get(key);
        connection.is_some_and(|connection| connection.phase.is_handshake())
    }
}
