//! Connections that shake hands before their first byte, each until its deadline. Other threads
//! compute meanwhile (`shakers`), so a handshake takes no time of the worker.

use std::collections::VecDeque;

use glimmer_base::limits::{ACCEPTS_PER_TURN_MAX, TLS_HANDSHAKE_MS_MAX};
use glimmer_transport::stream::Handshaking;

use super::Streams;
use super::connection::{Input, Turn};
use super::key::ConnectionKey;
use super::phase::Phase;
use super::shakers::Shaking;
use super::visit::Absent;
use crate::admin::observe::CloseReason;
use crate::core::Core;

/// The connections of a worker that shake hands.
#[derive(Default)]
pub(super) struct Handshakes {
    /// Those that go on with it.
    ready: VecDeque<ConnectionKey>,
    /// Those whose streams are with the handshake threads.
    away: usize,
    /// Until when each has to be done, in milliseconds since the epoch, in this order. Some are
    /// done or closed.
    until: VecDeque<(u64, ConnectionKey)>,
}

impl Streams {
    /// A connection has been opened whose handshake comes first. The poller reports when its client
    /// has said something.
    pub(super) fn begin_handshake(&mut self, key: ConnectionKey, core: &Core) {
        let until_ms = core.now.ms + TLS_HANDSHAKE_MS_MAX;
        let phase = &mut self.connections[key].phase;
        phase.begin(Phase::Handshake(until_ms));
        self.handshakes.until.push_back((until_ms, key));
    }

    /// Something was reported of a connection that shakes hands.
    #[cold]
    pub(super) fn note_handshake(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        // It may be room to send, which is not reported again either.
        connection.input = connection.input.max(Input::Readable);
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

    /// Whether the handshake threads have connections of this worker.
    #[inline]
    pub fn has_shaking(&self) -> bool {
        self.handshakes.away > 0
    }

    /// Whether handshakes are under way, whose deadlines come.
    pub fn awaits_handshakes(&self) -> bool {
        !self.handshakes.until.is_empty()
    }

    /// Passes connections whose handshakes can continue to the handshake threads. Without such
    /// threads, the worker itself continues the one that has waited longest.
    #[cold]
    pub fn serve_handshakes(&mut self, core: &mut Core) {
        while let Some(key) = self.handshakes.ready.pop_front() {
            let Some(shaking) = self.leave_to_shake(key, core) else {
                continue;
            };
            if let Some(mut shaking) = core.shared.shakers.hand_in(shaking) {
                shaking.go_on(core.now.ms);
                return self.shaken(shaking, core);
            }
        }
    }

    /// Takes the stream out of a connection that shakes hands.
    fn leave_to_shake(&mut self, key: ConnectionKey, core: &Core) -> Option<Shaking> {
        let connection = self.connections.get_mut(key)?;
        connection.turn = Turn::None;
        let Phase::Handshake(until_ms) = connection.phase else {
            return None;
        };
        connection.phase = Phase::HandshakeAway;
        // What is reported from here on may come too late for the threads. That the client has hung
        // up is not reported again.
        if connection.input < Input::HungUp {
            connection.input = Input::Nothing;
        }
        self.handshakes.away += 1;
        Some(Shaking {
            worker: core.me,
            key,
            stream: std::mem::replace(&mut connection.stream, Box::new(Absent)),
            until_ms,
            standing: Handshaking::Waits,
        })
    }

    /// Takes connections back from the threads, as many as one turn may.
    #[cold]
    pub fn take_shaken(&mut self, core: &mut Core) {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let Some(shaking) = core.shared.shakers.take_back(core.me) else {
                return;
            };
            self.shaken(shaking, core);
        }
    }

    /// Puts a stream back into its connection, which goes on as it stands.
    fn shaken(&mut self, shaking: Shaking, core: &mut Core) {
        self.handshakes.away -= 1;
        let key = shaking.key;
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.stream = shaking.stream;
        connection.phase = Phase::Handshake(shaking.until_ms);
        connection.turn = Turn::None;
        if connection.closes.is_some() {
            return self.close(key, core);
        }
        let is_reported = connection.input > Input::Nothing;
        match shaking.standing {
            Handshaking::Waits if is_reported => self.note_handshake(key),
            // The server stops, and answers what has arrived.
            Handshaking::Waits if core.is_draining => {
                connection.closes = Some(CloseReason::Shutdown);
                self.close(key, core);
            }
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
                let observers = core.shared.observers();
                observers.show_failed_handshake(&connection.entry, "the handshake failed");
                self.close(key, core);
            }
        }
    }

    /// Closes the connections whose handshakes have taken too long.
    pub fn close_late_handshakes(&mut self, core: &mut Core) {
        while self.close_oldest_handshake(TLS_HANDSHAKE_MS_MAX, core) {}
    }

    /// Closes the connection whose handshake has taken the longest, if that is at least this long.
    /// Returns whether there was one.
    pub(super) fn close_oldest_handshake(&mut self, least_ms: u64, core: &mut Core) -> bool {
        while let Some(&(until_ms, key)) = self.handshakes.until.front() {
            let is_open = self.is_handshaking(key);
            if is_open && until_ms - TLS_HANDSHAKE_MS_MAX + least_ms > core.now.ms {
                return false;
            }
            self.handshakes.until.pop_front();
            if is_open {
                core.tally.handshake_kicks += 1;
                let connection = &mut self.connections[key];
                connection.closes = Some(CloseReason::IdleTimeout);
                let observers = core.shared.observers();
                observers.show_failed_handshake(&connection.entry, "the handshake took too long");
                self.close(key, core);
                return true;
            }
        }
        false
    }

    /// The server stops: has one more look at each handshake for what has already arrived. One that
    /// does not end with it is not waited for.
    pub(super) fn end_handshakes(&mut self) {
        let keys: Vec<_> = self.handshakes.until.iter().map(|&(_, key)| key).collect();
        for key in keys {
            if self.is_handshaking(key) {
                self.note_handshake(key);
            }
        }
    }

    fn is_handshaking(&self, key: ConnectionKey) -> bool {
        let connection = self.connections.get(key);
        connection.is_some_and(|connection| connection.phase.is_handshake())
    }
}
