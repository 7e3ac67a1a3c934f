//! Serving connections: receive, run the burst, and put back what became of it.

use glimmer_base::limits::{
    AWAKE_BYTES_MIN, BUFFER_BYTES, BURST_CONNECTIONS_MAX, BURST_EXPECTED_BYTES_MAX,
    BURST_LARGE_BYTES_MAX, LARGE_REPLY_BYTES, TURN_LARGE_BYTES_MAX, TURN_REPLY_BYTES_MAX,
    TURN_SMALL_REQUESTS_MAX,
};
use glimmer_engine::Job;
use glimmer_transport::Readiness;
use slotmap::KeyData;

use super::Streams;
use super::connection::{Connection, Turn};
use super::key::ConnectionKey;
use super::member::{Member, Stop};
use super::phase::Phase;
use super::ready::Lane;
use super::receive_buffer::Room;
use super::registry::Activity;
use super::reorder::ReorderBuffer;
use crate::admin::observe::CloseReason;
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
        let Some(connection) = self.connections.get_mut(key) else {
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
        if !connection.is_runnable() {
            self.settle(key, core);
            return Joined::NOTHING;
        }
        if let Some(worker) = self.worker_for_value(key, core) {
            self.depart(key, worker, core);
            return Joined::NOTHING;
        }
        let connection = &self.connections[key];
        // One whose replies have been large waits until there is room for one more, unless it holds
        // a value that it sends. Others do not wait: a turn has room for a reply of any size.
        let guess = connection.reply_bytes_guess.unwrap_or(0);
        let is_patient = guess > BUFFER_BYTES
            && connection.counted.bytes <= BUFFER_BYTES
            && !connection.rx.awaits_value()
            && !connection.patience.has_waited_enough(core.now.ms);
        if is_patient && room < guess && !self.claim(key, guess, core) {
            self.starve(key, guess, core);
            return Joined::NOTHING;
        }
        if !self.connections[key].rx.has_input() && !self.make_room(key, core) {
            return Joined::NOTHING;
        }
        let connection = &mut self.connections[key];
        connection.patience.end_wait(core.now.ms);
        let mut received_bytes = 0;
        if !connection.rx.has_input() {
            received_bytes = connection.receive(core.slice_bytes(), core.now.ms);
            core.tally.bytes_read += received_bytes as u64;
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
            let mut member = Member::new(key, connection, (size_max, core.slice_max()));
            if member.is_visitor {
                member.requests = requests_before(connection, core);
                let visit = connection.visit.as_ref();
                if let Some(since_ns) = visit.and_then(|visit| visit.timed_since_ns) {
                    core.counting.join(self.burst.members.len(), since_ns);
                }
            }
            self.burst.members.push(member);
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

    /// Makes room for a connection to receive into. If there is none it waits for it, or it has
    /// waited enough: then the value that it sends is refused, or it is closed. Returns whether it
    /// goes on.
    fn make_room(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
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
        if connection.rx.awaits_value() {
            connection.refuse_value();
            core.tally.values_refused += 1;
            return true;
        }
        core.tally.stalled_kicks += 1;
        self.close(key, core);
        false
    }

    /// Makes room for a connection to receive into, if there is memory for it. The memory in which
    /// other values are to be completed does not count.
    fn grow(&mut self, key: ConnectionKey, core: &mut Core) -> Room {
        let is_scarce = core.memory.budget.is_scarce()
            || self.connections[key].sends_large && self.lacks_room_for_others(core);
        let room = match self.may_grow(key, core) {
            true => core.memory.room(),
            false => 0,
        };
        let connection = &mut self.connections[key];
        let made = connection
            .rx
            .make_room(&mut core.memory.pool, room, is_scarce);
        if made == Room::Made && connection.rx.capacity() > BUFFER_BYTES {
            // Others of the burst may want to grow as well.
            connection.recharge(&mut core.memory.budget);
        }
        made
    }

    /// Ends a member's part in the burst: puts what it came to back into its connection, and sends
    /// its replies.
    fn leave_burst(&mut self, index: usize, lane: Lane, core: &mut Core) {
        let member = &mut self.burst.members[index];
        let Asker::Connection(key) = member.asker else {
            unreachable!("datagrams have bursts of their own");
        };
        let (stop, requests) = (member.stop, member.requests);
        let connection = &mut self.connections[key];
        connection.turn = Turn::None;
        connection.is_wanted_at_home = false;
        connection.session = member.session;
        let input_bytes = member.at - connection.rx.start;
        connection.rx.start = member.at;
        connection.rx.need = match stop {
            Stop::Hungry(need) => need,
            _ => 1,
        };
        let activity = match connection.rx.awaits_value() {
            true => Activity::Value,
            false => Activity::Read,
        };
        connection.entry.note(activity);
        connection.rx.trim(&mut core.memory.pool);
        let replies = std::mem::take(&mut self.burst.outs[index]);
        let lent_bytes = match self.burst.lent.is_empty() {
            true => 0,
            false => self.burst.lent.bytes_of(index as u32),
        };
        let reply_bytes = replies.len() + lent_bytes;
        note_burst(connection, requests, (input_bytes, reply_bytes), core);
        match member.reorder.take() {
            Some(reorder) => self.keep_local(key, replies, reorder, core),
            None if lent_bytes == 0 => connection.tx.bytes = replies,
            None => connection
                .tx
                .fill(replies, self.burst.lent.take(index as u32)),
        }
        if !matches!(stop, Stop::Hungry(_)) {
            self.follow_stop(key, index, core);
        }
        let connection = &mut self.connections[key];
        if lane == Lane::Small && connection.tx.unsent_bytes() > core.slice_bytes() {
            // It takes turns with those that are sent much.
            connection.tx.take_turns();
            self.note_unsent(key, index, lent_bytes, core);
            self.settle(key, core);
        } else if self.send(key, core) {
            self.note_unsent(key, index, lent_bytes, core);
            let visited = match stop {
                Stop::Visit(worker) => Some(worker),
                Stop::Hungry(_) => self.worker_for_value(key, core),
                _ => None,
            };
            match visited.filter(|_| self.connections[key].may_visit()) {
                Some(worker) => self.depart(key, worker, core),
                None => self.settle(key, core),
            }
        }
    }

    /// Keeps the replies that were made here until those have come that other workers make.
    #[cold]
    fn keep_local(
        &mut self,
        key: ConnectionKey,
        mut local: Vec<u8>,
        mut reorder: Box<ReorderBuffer>,
        core: &mut Core,
    ) {
        let connection = &mut self.connections[key];
        if reorder.len() == 0 {
            connection.tx.bytes = local;
            self.burst.recycle(reorder);
            return;
        }
        if local.is_empty() {
            // Where every request has crossed, no buffer is kept until the replies come.
            core.memory.pool.give(std::mem::take(&mut local));
        }
        reorder.close_with(local);
        connection.phase.begin(Phase::Reordering(reorder));
    }

    /// Has a connection wait for what its member stopped at, if that is not more input.
    #[inline(never)]
    fn follow_stop(&mut self, key: ConnectionKey, index: usize, core: &mut Core) {
        let member = &mut self.burst.members[index];
        let connection = &mut self.connections[key];
        match member.stop {
            Stop::Close => connection.close_for(CloseReason::Normal),
            Stop::Broken => connection.close_for(CloseReason::Error),
            Stop::Large(bytes) => {
                connection.copies_any = true;
                connection.burst_reply_bytes = bytes as usize;
                connection.note_reply_bytes(LARGE_REPLY_BYTES);
            }
            Stop::AtHome => connection.is_wanted_at_home = true,
            Stop::Begins => connection.phase.begin(member.begins.end()),
            Stop::Withheld => self.withhold(key, core),
            Stop::Watch(interests) => self.begin_to_watch(key, interests, core),
            Stop::Spent => core.tally.conn_yields += 1,
            Stop::Postponed => self.postpone(key),
            Stop::AwaitsNews => self.await_news(key, core),
            Stop::OutOfCredit => {
                connection.turn = Turn::Queued;
                self.out_of_credit.push(key);
            }
            Stop::Live | Stop::Hungry(_) | Stop::Full | Stop::Visit(_) | Stop::Reorder => {}
        }
    }

    /// A reply with a lent value of this many bytes takes turns from here on. If it is timed, it is
    /// until it has left.
    #[inline]
    fn note_unsent(&mut self, key: ConnectionKey, index: usize, bytes: usize, core: &mut Core) {
        let tx = &mut self.connections[key].tx;
        if bytes > 0 && tx.takes_turns() && core.counting.has_unwritten() {
            let since_ns = core.counting.withdraw(index, bytes);
            tx.timed = since_ns.map(|since_ns| (bytes, since_ns));
        }
    }

    /// Sends what is to be sent, then settles.
    pub fn send_and_settle(&mut self, key: ConnectionKey, core: &mut Core) {
        if self.send(key, core) {
            self.settle(key, core);
        }
    }

    /// Sends what is to be sent. Returns whether the connection is still there.
    fn send(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        if connection.tx.is_empty() {
            connection.tx.clear(&mut core.memory.pool);
            return true;
        }
        // While connections hold as much as they may, replies leave whole: what is left of one is
        // then what its client does not take, and not what waits for its next turn.
        let bytes_max = match core.memory.room() {
            0 => usize::MAX,
            _ => core.slice_bytes(),
        };
        let Some(bytes) = connection.transmit(&mut core.memory.pool, bytes_max, core.now.ms) else {
            self.close(key, core);
            return false;
        };
        core.tally.bytes_written += bytes as u64;
        if !connection.tx.takes_turns()
            && let Some((value_bytes, since_ns)) = connection.tx.timed.take()
        {
            core.note_service_time(value_bytes, since_ns);
        }
        true
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
    /// It has not, and this many bytes were copied, sent or received for it.
    Slice(usize),
}

impl Joined {
    /// Nothing was done for it.
    const NOTHING: Joined = Joined::Slice(0);
}

/// Notes what a connection had in a burst: this many requests, and bytes of requests and replies.
#[inline]
fn note_burst(
    connection: &mut Connection,
    requests: u32,
    (input_bytes, reply_bytes): (usize, usize),
    core: &mut Core,
) {
    let before = requests_before(connection, core);
    if let Some(visit) = &mut connection.visit {
        visit.is_over |= requests >= core.shared.config.turn_requests;
    }
    if connection.rx.need > BUFFER_BYTES {
        connection.sends_large = true;
    } else if requests > 0 && input_bytes <= BUFFER_BYTES {
        connection.sends_large = false;
    }
    let executed = requests - before;
    if requests > 0 {
        connection.patience.end_hold();
        connection.copies_any = false;
        if input_bytes + reply_bytes < LARGE_REPLY_BYTES * executed as usize {
            core.note_small_request();
        }
    }
    connection.burst_reply_bytes = reply_bytes;
    connection.note_reply_bytes(reply_bytes / (executed as usize).max(1));
}

/// Requests that a visitor's turn begins with, as if it had had them: one large request is left of
/// it, or a whole turn.
#[inline]
fn requests_before(connection: &Connection, core: &Core) -> u32 {
    match &connection.visit {
        Some(visit) if visit.is_for_one => core.shared.config.turn_requests.saturating_sub(1),
        _ => 0,
    }
}
