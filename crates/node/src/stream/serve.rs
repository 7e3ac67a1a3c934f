//! Serving connections: receive, run the burst, and put back what became of it.

use glimmer_base::limits::{
    BUFFER_BYTES, BURST_CONNECTIONS_MAX, BURST_LARGE_BYTES_MAX, LARGE_REPLY_BYTES,
    TURN_LARGE_BYTES_MAX, TURN_REPLY_BYTES_MAX,
};
use glimmer_transport::Readiness;
use slotmap::KeyData;

use super::Streams;
use super::connection::{Connection, Continuation, Room};
use super::key::ConnectionKey;
use super::member::{Member, Stop};
use super::ready::ReplyClass;
use super::registry::Activity;
use crate::admin::dump::DumpCursor;
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
        connection.readable |= ready.readable && !connection.ended;
        connection.hung_up |= ready.hung_up;
        if connection.feed.is_some() {
            self.note_watchers_readiness(key, ready, core);
            return;
        }
        if ready.writable && !connection.tx.is_empty() {
            self.send_and_settle(key, core);
        } else if !connection.queued && connection.is_runnable() {
            connection.queued = true;
            let class = ReplyClass::of(connection.burst_reply_bytes);
            self.ready.push(key, class);
        }
    }

    /// Serves the connections that are ready: those with small replies until each has had its turn
    /// or the turn's share of replies is made, then those with large replies until their share of
    /// the turn is made.
    pub fn serve_ready(&mut self, core: &mut Core, port: &mut Port) {
        let has_queues = core.plan.has_queues();
        if has_queues {
            self.share_ready(core);
        }
        let mut reply_bytes = 0;
        for _ in 0..(self.ready.len(ReplyClass::Small)).div_ceil(BURST_CONNECTIONS_MAX) {
            reply_bytes += self.serve_burst(ReplyClass::Small, core, port);
            if reply_bytes >= TURN_REPLY_BYTES_MAX {
                break;
            }
        }
        let mut large_bytes = TURN_LARGE_BYTES_MAX;
        for nth in 0..self.ready.len(ReplyClass::Large) {
            let Some(key) = self.ready.first(ReplyClass::Large) else {
                break;
            };
            if nth > 0 && self.guess_of(key, ReplyClass::Large, core) > large_bytes {
                break;
            }
            let made_bytes = self.serve_burst(ReplyClass::Large, core, port);
            large_bytes = large_bytes.saturating_sub(made_bytes);
        }
        if has_queues {
            self.serve_shared(core, port);
        }
    }

    /// Serves the connections of a class that have been ready for longest: receives from those that
    /// have nothing complete, executes what is complete, and sends once per connection. Returns the
    /// bytes of replies.
    pub(super) fn serve_burst(
        &mut self,
        class: ReplyClass,
        core: &mut Core,
        port: &mut Port,
    ) -> usize {
        let mut free = match class {
            ReplyClass::Small => core.memory.bytes_free(),
            ReplyClass::Large => core.memory.bytes_free().min(BURST_LARGE_BYTES_MAX),
        };
        let mut input_bytes = 0;
        for _ in 0..BURST_CONNECTIONS_MAX {
            let Some(key) = self.ready.first(class) else {
                break;
            };
            // What cannot be executed in this burst is better left with the kernel.
            let guess = self.guess_of(key, class, core);
            if guess > free && !self.burst.members.is_empty() {
                break;
            }
            free = free.saturating_sub(guess);
            self.ready.remove_first(class);
            input_bytes += self.join_burst(key, core);
            if input_bytes >= BURST_LARGE_BYTES_MAX {
                break;
            }
        }
        let connections = &self.connections;
        let rx_of = |asker| match asker {
            Asker::Connection(key) => &connections[key].rx[..],
            Asker::Datagram(_) => &[],
        };
        let stream_of = |asker| match asker {
            Asker::Connection(key) => Some(&*connections[key].stream),
            Asker::Datagram(_) => None,
        };
        let reply_bytes = self.burst.run_batches(rx_of, stream_of, core, port);
        for index in 0..self.burst.members.len() {
            self.leave_burst(index, core);
        }
        self.burst.members.clear();
        self.burst.outs.clear();
        core.end_burst();
        self.bound_held(core);
        reply_bytes
    }

    /// Bytes that a connection is guessed to be sent in a burst: one reply at least, and as much as
    /// in its last burst if that was large.
    #[inline]
    fn guess_of(&self, key: ConnectionKey, class: ReplyClass, core: &Core) -> usize {
        let Some(connection) = self.connections.get(key) else {
            return 0;
        };
        let each = connection.reply_bytes_guess;
        let each = each.unwrap_or(core.memory.reply_bytes_guess);
        match class {
            ReplyClass::Small => each,
            ReplyClass::Large => each.max(connection.burst_reply_bytes),
        }
    }

    /// Receives, if there is nothing to parse, and takes the connection into the burst if there is.
    /// Returns the bytes that are to be parsed.
    fn join_burst(&mut self, key: ConnectionKey, core: &mut Core) -> usize {
        let room = core.memory.room();
        let Some(connection) = self.connections.get_mut(key) else {
            return 0;
        };
        connection.queued = false;
        if connection.has_continuation() {
            self.advance_continuation(key, core);
            return 0;
        }
        if !connection.is_runnable() {
            self.settle(key, core);
            return 0;
        }
        if let Some(worker) = self.worker_for_value(key, core) {
            self.depart(key, worker, core);
            return 0;
        }
        let connection = &self.connections[key];
        // One whose replies have been large waits until there is room for one more. Others do not
        // wait: a turn has room for a reply of any size.
        let guess = connection.reply_bytes_guess.unwrap_or(0);
        let is_patient = guess > BUFFER_BYTES && !connection.has_waited_enough(core.now.ms);
        if is_patient && room < guess && !self.claim(key, guess, core) {
            self.starve(key, guess, core);
            return 0;
        }
        if !self.connections[key].has_input() && !self.make_room(key, core) {
            return 0;
        }
        let connection = &mut self.connections[key];
        connection.end_wait();
        if !connection.has_input() {
            core.tally.bytes_read += connection.receive(core.now.ms) as u64;
        }
        if connection.has_input() {
            connection.entry.note_input(core.now.ms);
            connection.is_served = true;
            let tx = std::mem::take(&mut connection.tx);
            let bytes = guess.max(connection.burst_reply_bytes);
            let input_bytes = connection.rx.len() - connection.rx_start;
            let copy_max = core.plan.copy_max();
            let mut member = Member::new(key, connection, copy_max);
            if member.is_visitor {
                member.requests = requests_before(connection, core);
                if let Some(since_ns) = connection.timed_since_ns {
                    core.counting.join(self.burst.members.len(), since_ns);
                }
            }
            self.burst.members.push(member);
            self.burst.outs.push(if tx.capacity() > 0 {
                tx
            } else {
                core.memory.pool.take_for(bytes)
            });
            input_bytes
        } else {
            connection.trim(&mut core.memory.pool);
            self.settle(key, core);
            0
        }
    }

    /// Makes room for a connection to receive into. If there is none it waits for it, or it has
    /// waited enough: then the value that it sends is refused, or it is closed. Returns whether it
    /// goes on.
    fn make_room(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let (room, is_scarce) = (core.memory.room(), core.memory.budget.is_scarce());
        let connection = &mut self.connections[key];
        let Room::Missing(bytes) = connection.make_room(&mut core.memory.pool, room, is_scarce)
        else {
            if connection.rx.capacity() > BUFFER_BYTES {
                // Others of the burst may want to grow as well.
                connection.recharge(&mut core.memory.budget);
            }
            return true;
        };
        if self.claim(key, bytes, core) {
            let room = core.memory.room();
            let connection = &mut self.connections[key];
            connection.make_room(&mut core.memory.pool, room, is_scarce);
            connection.recharge(&mut core.memory.budget);
            return true;
        }
        let connection = &mut self.connections[key];
        if !connection.has_waited_enough(core.now.ms) {
            self.starve(key, bytes, core);
            return false;
        }
        if connection.awaits_value() {
            connection.refuse_value();
            core.tally.values_refused += 1;
            return true;
        }
        core.tally.stalled_kicks += 1;
        self.close(key, core);
        false
    }

    /// Puts a member's state back into its connection, and sends its replies.
    fn leave_burst(&mut self, index: usize, core: &mut Core) {
        let member = &mut self.burst.members[index];
        let Asker::Connection(key) = member.asker else {
            unreachable!("datagrams have bursts of their own");
        };
        let stop = member.stop;
        let (report, guard) = (member.report.take(), member.dump_guard.take());
        let sent_bytes = member.sent_bytes;
        let (is_blocked, has_failed) = (member.is_blocked, member.has_failed);
        let connection = &mut self.connections[key];
        connection.is_served = false;
        connection.parser = member.parser;
        connection.rx_start = member.at;
        connection.hand_to = member.hand_to;
        connection.locked = member.locked;
        connection.sum = member.sum;
        connection.need = if let Stop::Hungry(need) = stop {
            need
        } else {
            1
        };
        connection.closing |= matches!(stop, Stop::Close | Stop::Broken);
        if stop == Stop::Broken {
            connection.reason = CloseReason::Error;
        }
        let activity = if connection.awaits_value() {
            Activity::Value
        } else {
            Activity::Read
        };
        connection.entry.note(activity);
        connection.trim(&mut core.memory.pool);
        connection.is_wanted_at_home = stop == Stop::AtHome;
        let mut requests = member.requests;
        if member.is_visitor {
            connection.has_been_served |= requests >= core.shared.config.turn_requests;
            requests -= requests_before(connection, core);
        }
        if member.requests > 0 {
            connection.end_hold();
        }
        let replies = std::mem::take(&mut self.burst.outs[index]);
        let reply_bytes = sent_bytes + replies.len();
        connection.burst_reply_bytes = reply_bytes;
        connection.note_reply_bytes(reply_bytes / (requests as usize).max(1));
        if sent_bytes > 0 || is_blocked {
            connection.note_sent(sent_bytes, is_blocked, core.now.ms);
            core.tally.bytes_written += sent_bytes as u64;
        }
        if let Stop::Large(bytes) = stop {
            connection.burst_reply_bytes = bytes as usize;
            connection.note_reply_bytes(LARGE_REPLY_BYTES);
        }
        match member.reorder.take() {
            Some(mut reorder) if reorder.len() > 0 => {
                // Where every request has crossed, no buffer is kept until the replies come.
                if replies.is_empty() {
                    core.memory.pool.give(replies);
                    reorder.close_with(Vec::new());
                } else {
                    reorder.close_with(replies);
                }
                connection.reorder = Some(reorder);
            }
            unused => {
                if let Some(reorder) = unused {
                    self.burst.recycle(reorder);
                }
                if stop == Stop::Withheld {
                    self.withhold(key, replies, core);
                } else {
                    connection.tx = replies;
                }
            }
        }
        match stop {
            Stop::Dump(kind) => {
                let cursor = guard.map(|guard| DumpCursor::new(kind, guard, core.me, key));
                let dump = cursor.map(|cursor| Continuation::Dump(Box::new(cursor)));
                self.connections[key].continuation = dump;
            }
            Stop::LongReply => {
                self.connections[key].continuation = report.map(Continuation::LongReply)
            }
            Stop::Watch(interests) => self.begin_to_watch(key, interests, core),
            Stop::Spent => core.tally.conn_yields += 1,
            Stop::OutOfCredit => {
                self.connections[key].queued = true;
                self.out_of_credit.push(key);
            }
            _ => {}
        }
        if has_failed {
            self.close(key, core);
        } else if is_blocked && !self.connections[key].tx.is_empty() {
            // The poller reports when there is room for the rest.
            self.settle(key, core);
        } else {
            if self.send(key, core) {
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
            if connection.tx.capacity() > 0 {
                core.memory.pool.give(std::mem::take(&mut connection.tx));
            }
        } else {
            match connection.transmit(&mut core.memory.pool, core.now.ms) {
                Some(bytes) => core.tally.bytes_written += bytes as u64,
                None => {
                    self.close(key, core);
                    return false;
                }
            }
        }
        true
    }
}

/// Requests that a visitor's turn begins with, as if it had had them: one large request is left of
/// it, or a whole turn.
#[cold]
fn requests_before(visitor: &Connection, core: &Core) -> u32 {
    match visitor.visit {
        Some(home) if home.is_for_one => core.shared.config.turn_requests.saturating_sub(1),
        _ => 0,
    }
}
