//! Which connections are served together: receives from them, and runs the burst.

use glimmer_base::limits::{
    AWAKE_BYTES_MIN, BUFFER_BYTES, BURST_CONNECTIONS_MAX, BURST_EXPECTED_BYTES_MAX,
    BURST_LARGE_BYTES_MAX, TURN_LARGE_BYTES_MAX, TURN_REPLY_BYTES_MAX, TURN_SMALL_REQUESTS_MAX,
};
use glimmer_engine::Job;
use glimmer_transport::Readiness;
use slotmap::KeyData;

use super::Streams;
use super::connection::Turn;
use super::key::ConnectionKey;
use super::leave::requests_before;
use super::member::Member;
use super::ready::Lane;
use crate::core::Core;
use crate::forward::batch::Asker;
use crate::forward::port::Port;

impl Streams {
    /// Notes what the poller reported of a connection.
    #[inline]
    pub fn note_readiness(&mut self, ready: Readiness, core: &mut Core) {
        let key = ConnectionKey::from(KeyData::from_ffi(ready.token));
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.input.note(&ready);
        if connection.phase.feed().is_some() {
            self.note_watchers_readiness(key, ready, core);
            return;
        }
        let has_room = ready.writable && !connection.tx.is_empty() && !connection.tx.takes_turns();
        let is_long = has_room && connection.tx.unsent_bytes() > core.slice_bytes();
        if is_long && connection.turn != Turn::Queued {
            // It takes turns with those that are sent much.
            connection.tx.take_turns();
            connection.turn = Turn::Queued;
            self.ready.push(key, Lane::Large);
        } else if has_room {
            self.send_and_settle(key, core);
        } else if connection.turn != Turn::Queued && connection.is_runnable() {
            connection.turn = Turn::Queued;
            let lane = connection.lane();
            self.ready.push(key, lane);
        } else if connection.phase.is_handshake() {
            self.note_handshake(key);
        } else if connection.turn != Turn::Queued && connection.reads_ahead(core.memory.room()) {
            connection.turn = Turn::Queued;
            self.ready.push(key, Lane::Large);
        }
    }

    /// Serves the connections that are ready: those with small requests until each has had its turn
    /// or the turn's share of requests or replies is made, then those with large ones until they
    /// have had their share of the turn. Beside small requests that share is one slice. Returns
    /// whether a burst had [`AWAKE_BYTES_MIN`] for each of its connections.
    pub fn serve_ready(&mut self, core: &mut Core, port: &mut Port) -> bool {
        let has_queues = core.plan.has_queues();
        if has_queues {
            self.share_ready(core);
        }
        if self.has_postponed() || self.awaits_news() {
            self.serve_postponed(core, port);
        }
        let (mut left, mut reply_bytes) = (self.ready.len(Lane::Small), 0);
        let mut is_large = false;
        let steps_before = core.steps();
        while left > 0
            && reply_bytes < TURN_REPLY_BYTES_MAX
            && core.steps() - steps_before < TURN_SMALL_REQUESTS_MAX
        {
            let served = self.serve_burst(Lane::Small, core, port);
            left = left.saturating_sub(served.connections.max(1));
            reply_bytes += served.bytes;
            is_large |= served.is_large();
        }
        let mut large_bytes = TURN_LARGE_BYTES_MAX.min(core.slice_bytes());
        let large = match core.shared.homeward.is_full(core.me) {
            true => 0,
            false => self.ready.len(Lane::Large),
        };
        let since_ns = if large > 0 { core.begin_large() } else { None };
        for nth in 0..large {
            let Some(key) = self.ready.first(Lane::Large) else {
                break;
            };
            let has_had_its_share = self.guess_of(key, Lane::Large, core) > large_bytes;
            if nth > 0 && (has_had_its_share || core.shared.homeward.is_full(core.me)) {
                break;
            }
            let served = self.serve_burst(Lane::Large, core, port);
            large_bytes = large_bytes.saturating_sub(served.bytes);
            is_large |= served.is_large();
        }
        core.end_large(since_ns);
        if has_queues {
            self.serve_shared(core, port);
        }
        is_large
    }

    /// Serves the connections of a lane that have been ready for longest: receives from those that
    /// have nothing complete, executes what is complete, and sends once per connection.
    pub(super) fn serve_burst(&mut self, lane: Lane, core: &mut Core, port: &mut Port) -> Served {
        let bytes_max = match lane {
            Lane::Small => BURST_LARGE_BYTES_MAX,
            Lane::Large => BURST_LARGE_BYTES_MAX.min(core.slice_bytes()),
        };
        let mut free = (core.memory.bytes_free()).min(bytes_max.min(BURST_EXPECTED_BYTES_MAX));
        let (mut connections, mut input_bytes, mut slice_bytes) = (0, 0, 0);
        for _ in 0..BURST_CONNECTIONS_MAX {
            let Some(key) = self.ready.first(lane) else {
                break;
            };
            // What is not executed in this burst is better left with the kernel.
            let guess = self.guess_of(key, lane, core);
            if guess > free && (!self.burst.members.is_empty() || slice_bytes > 0) {
                break;
            }
            free = free.saturating_sub(guess);
            self.ready.remove_first(lane);
            connections += 1;
            match self.join_burst(key, core) {
                Joined::Input(bytes) => input_bytes += bytes,
                Joined::Slice(bytes) => slice_bytes += bytes,
            }
            if input_bytes + slice_bytes >= bytes_max {
                break;
            }
        }
        let members = &self.connections;
        let rx_of = |asker| match asker {
            Asker::Connection(key) => &members[key].rx.bytes[..],
            Asker::Datagram(_) => &[],
        };
        let reply_bytes = self.burst.run_batches(rx_of, core, port);
        for index in 0..self.burst.members.len() {
            self.leave_burst(index, lane, core);
        }
        self.burst.members.clear();
        self.burst.outs.clear();
        // Otherwise it would be sent to another client.
        assert!(self.burst.lent.is_empty(), "each part is in a reply");
        core.end_burst();
        self.bound_held(core);
        Served {
            connections,
            bytes: reply_bytes.max(slice_bytes),
        }
    }

    /// Bytes that a connection is guessed to be sent in a burst: one reply at least, and as much as
    /// in its last burst if that was large.
    #[inline]
    fn guess_of(&self, key: ConnectionKey, lane: Lane, core: &Core) -> usize {
        let Some(connection) = self.connections.get(key) else {
            return 0;
        };
        let each = connection.reply_bytes_guess;
        let each = each.unwrap_or(core.memory.reply_bytes_guess);
        match lane {
            Lane::Small => each,
            Lane::Large => {
                let sent = connection
                    .burst_reply_bytes
                    .max(connection.tx.unsent_bytes());
                each.max(sent)
                    .max(connection.rx.need)
                    .min(core.slice_bytes())
            }
        }
    }

    /// Receives, if there is nothing to parse, and takes the connection into the burst if there is.
    fn join_burst(&mut self, key: ConnectionKey, core: &mut Core) -> Joined {
        let room = core.memory.room();
        let Some(mut connection) = self.connections.get_mut(key) else {
            return Joined::NOTHING;
        };
        connection.turn = Turn::None;
        if connection.tx.takes_turns() {
            let unsent_bytes = connection.tx.unsent_bytes();
            self.send_and_settle(key, core);
            // If that was the last slice, a watcher is sent what has come meanwhile.
            self.feed_watcher(key, core);
            return Joined::Slice(unsent_bytes.min(core.slice_bytes()));
        }
        if connection.should_produce() {
            self.advance_reply(key, core);
            return Joined::NOTHING;
        }
        if connection.phase.feed().is_some() {
            return Joined::Slice(self.hear_watcher(key, core));
        }
        // What has arrived of a large value may have been received before there was a place for it.
        if !connection.is_runnable() && !connection.asks_for_place() {
            if connection.reads_ahead(room) {
                return Joined::Slice(self.read_ahead(key, core));
            }
            self.settle(key, core);
            return Joined::NOTHING;
        }
        if connection.session.is_metered {
            if self.is_held_back(key, core) {
                return Joined::NOTHING;
            }
            connection = &mut self.connections[key];
        }
        if connection.rx.may_expect_value() {
            if self.connections[key].rx.value.is_some() {
                if let Some(bytes) = self.go_on_with_upload(key, core) {
                    return Joined::Slice(bytes);
                }
            } else if let Some(worker) = self.worker_for_value(key, core) {
                self.depart(key, worker, core);
                return Joined::NOTHING;
            }
            connection = &mut self.connections[key];
        }
        // One whose replies have been large waits until there is room for one more, unless it holds
        // a value that it sends. Others do not wait: a turn has room for a reply of any size.
        let guess = connection.reply_bytes_guess.unwrap_or(0);
        let is_patient = guess > BUFFER_BYTES
            && connection.counted.bytes <= BUFFER_BYTES
            && !connection.rx.awaits_value()
            && !connection.patience.has_waited_enough(core.now.ms);
        if is_patient && room < guess {
            if !self.claim(key, guess, core) {
                self.starve(key, guess, core);
                return Joined::NOTHING;
            }
            connection = &mut self.connections[key];
        }
        if !connection.rx.has_input() {
            if !self.make_room(key, core) {
                return Joined::NOTHING;
            }
            connection = &mut self.connections[key];
        }
        connection.patience.end_wait(core.now.ms);
        let mut received_bytes = 0;
        if !connection.rx.has_input() {
            if connection.rx.has_ahead() {
                received_bytes = connection.rx.take_ahead(core.slice_bytes());
            } else {
                received_bytes = connection.receive(core.slice_bytes(), core.now.ms);
                core.tally.bytes_read += received_bytes as u64;
            }
        }
        if connection.rx.has_input() {
            connection.entry.note_input(core.now.ms);
            connection.turn = Turn::Served;
            let tx = std::mem::take(&mut connection.tx.bytes);
            let bytes = guess.max(connection.burst_reply_bytes);
            let input_bytes = connection.rx.len();
            let size_max = match connection.visit {
                Some(_) => Job::ANY_SIZE,
                None => core.plan.size_max(),
            };
            let members = &mut self.burst.members;
            members.push(Member::new(key, connection, (size_max, core.slice_max())));
            if let Some(visit) = &connection.visit
                && let Some(member) = members.last_mut()
            {
                member.requests = requests_before(connection, core);
                if let Some(since_ns) = visit.timed_since_ns {
                    core.counting.join(members.len() - 1, since_ns);
                }
            }
            self.burst.outs.push(if tx.capacity() > 0 {
                tx
            } else {
                core.memory.pool.take_for(bytes)
            });
            Joined::Input(input_bytes)
        } else {
            connection.rx.trim(&mut core.memory.pool);
            self.settle(key, core);
            Joined::Slice(received_bytes)
        }
    }
}

impl Streams {
    /// Receives more of a line of keys whose replies are not taken, as far as there is memory.
    #[cold]
    fn read_ahead(&mut self, key: ConnectionKey, core: &mut Core) -> usize {
        let (room, connection) = (core.memory.room(), &mut self.connections[key]);
        let pool = &mut core.memory.pool;
        let bytes = match connection.rx.make_room_ahead(pool, room) {
            true => connection.receive(core.slice_bytes(), core.now.ms),
            false => 0,
        };
        core.tally.bytes_read += bytes as u64;
        self.settle(key, core);
        bytes
    }
}

/// What a burst came to.
pub(super) struct Served {
    /// Connections that had their turn.
    pub connections: usize,
    /// Bytes of replies, or of slices if these are more.
    pub bytes: usize,
}

impl Served {
    #[inline]
    fn is_large(&self) -> bool {
        self.bytes >= AWAKE_BYTES_MIN * self.connections.max(1)
    }
}

/// What became of a connection that was to join a burst.
enum Joined {
    /// It has joined, and this many bytes are to be parsed.
    Input(usize),
    /// It has not, and this many bytes were sent or received for it.
    Slice(usize),
}

impl Joined {
    /// Nothing was done for it.
    const NOTHING: Joined = Joined::Slice(0);
}
