//! Serving connections: receive, run the burst, send, and decide what each connection waits for
//! next.

use glimmer_base::limits::{
    BATCH_MAX, BUFFER_BYTES, BURST_CONNECTIONS_MAX, TURN_LARGE_BYTES_MAX, TURN_REPLY_BYTES_MAX,
};

use crate::admin::dump::{Continuation, DumpCursor};
use crate::admin::observe::CloseReason;
use crate::budget::pool::Charge;
use crate::stream::burst::Tools;
use crate::stream::connection::{Link, Room};
use crate::stream::key::ConnectionKey;
use crate::stream::member::{Input, Member, Stop};
use crate::stream::ready::ReplyClass;
use crate::stream::registry::Activity;
use crate::worker::Worker;

impl Worker {
    /// Serves the connections that are ready: those with small replies until each has had its turn
    /// or the turn's share of replies is made, then one burst of those with large replies.
    pub fn serve_ready(&mut self) {
        let mut reply_bytes = 0;
        for _ in 0..(self.ready.len(ReplyClass::Small)).div_ceil(BURST_CONNECTIONS_MAX) {
            reply_bytes += self.serve_burst(ReplyClass::Small);
            if reply_bytes >= TURN_REPLY_BYTES_MAX {
                break;
            }
        }
        if self.ready.len(ReplyClass::Large) > 0 {
            self.serve_burst(ReplyClass::Large);
        }
    }

    /// Serves the connections of a class that have been ready for longest: receives from those that
    /// have nothing complete, executes what is complete, and sends once per connection. Returns the
    /// bytes of replies.
    fn serve_burst(&mut self, class: ReplyClass) -> usize {
        let mut free = match class {
            ReplyClass::Small => self.bytes_free(),
            ReplyClass::Large => self.bytes_free().min(TURN_LARGE_BYTES_MAX),
        };
        for _ in 0..BURST_CONNECTIONS_MAX {
            let Some(key) = self.ready.first(class) else {
                break;
            };
            // What cannot be executed in this burst is better left with the kernel.
            let guess = self.guess_of(key, class);
            if guess > free && !self.burst.members.is_empty() {
                break;
            }
            free = free.saturating_sub(guess);
            self.ready.remove_first(class);
            self.admit(key);
        }
        let reply_bytes = self.run_batches();
        for index in 0..self.burst.members.len() {
            self.dismiss(index);
        }
        self.burst.members.clear();
        self.burst.outs.clear();
        self.bound_held();
        reply_bytes
    }

    /// Bytes that a connection is guessed to be sent in a burst: one reply at least, and as much as
    /// in its last burst if that was large.
    #[inline]
    fn guess_of(&self, key: ConnectionKey, class: ReplyClass) -> usize {
        let Some(connection) = self.connections.get(key) else {
            return 0;
        };
        let each = (connection.reply_bytes_guess).unwrap_or(self.reply_bytes_guess);
        match class {
            ReplyClass::Small => each,
            ReplyClass::Large => each.max(connection.burst_reply_bytes),
        }
    }

    /// Executes what the burst's members have, until none is live any more. Returns the bytes of
    /// their replies.
    pub fn run_batches(&mut self) -> usize {
        let mut reply_bytes = 0;
        while let Some(guess) = self.burst.reply_bytes_guess(self.reply_bytes_guess) {
            reply_bytes = self.run_batch(guess, reply_bytes);
        }
        reply_bytes
    }

    /// Receives, if there is nothing to parse, and takes the connection into the burst if there is.
    fn admit(&mut self, key: ConnectionKey) {
        let room = self.room();
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.queued = false;
        if connection.has_continuation() {
            self.advance_continuation(key);
            return;
        }
        if !connection.is_runnable() {
            self.settle(key);
            return;
        }
        // One whose replies have been large waits until there is room for one more. Others do not
        // wait: a turn has room for a reply of any size.
        let guess = connection.reply_bytes_guess.unwrap_or(0);
        let is_patient = guess > BUFFER_BYTES && !connection.has_waited_enough(self.now.ms);
        if is_patient && room < guess && !self.claim(key, guess) {
            self.starve(key, guess);
            return;
        }
        if !self.connections[key].has_input() && !self.make_room(key) {
            return;
        }
        let connection = &mut self.connections[key];
        connection.end_wait();
        if !connection.has_input() {
            self.tally.bytes_read += connection.receive(self.now.ms) as u64;
        }
        if connection.has_input() {
            if let Some(entry) = connection.entry() {
                entry.note_input(self.now.ms);
            }
            connection.is_served = true;
            let tx = std::mem::take(&mut connection.tx);
            self.burst.members.push(Member::new(key, connection));
            self.burst.outs.push(if tx.capacity() > 0 {
                tx
            } else {
                self.pool.take()
            });
        } else {
            connection.trim(&mut self.pool);
            self.settle(key);
        }
    }

    /// Makes room for a connection to receive into. If there is none it waits for it, or it has
    /// waited enough: then the value that it sends is refused, or it is closed. Returns whether it
    /// goes on.
    fn make_room(&mut self, key: ConnectionKey) -> bool {
        let (room, is_scarce) = (self.room(), self.budget.is_scarce());
        let connection = &mut self.connections[key];
        let Room::Missing(bytes) = connection.make_room(&mut self.pool, room, is_scarce) else {
            if connection.rx.capacity() > BUFFER_BYTES {
                // Others of the burst may want to grow as well.
                connection.recharge(&mut self.budget);
            }
            return true;
        };
        if self.claim(key, bytes) {
            let room = self.room();
            let connection = &mut self.connections[key];
            connection.make_room(&mut self.pool, room, is_scarce);
            connection.recharge(&mut self.budget);
            return true;
        }
        let connection = &mut self.connections[key];
        if !connection.has_waited_enough(self.now.ms) {
            self.starve(key, bytes);
            return false;
        }
        if connection.awaits_value() {
            connection.refuse_value();
            self.tally.values_refused += 1;
            return true;
        }
        self.tally.stalled_kicks += 1;
        self.close(key);
        false
    }

    /// Runs one batch of requests whose replies are guessed to take `guess` bytes each at most.
    /// Takes and returns the bytes of replies in the burst.
    fn run_batch(&mut self, guess: usize, reply_bytes_before: usize) -> usize {
        let free = self.bytes_free().saturating_sub(reply_bytes_before);
        if free < guess && reply_bytes_before > 0 {
            self.burst.stop_above(free, self.reply_bytes_guess);
            return reply_bytes_before;
        }
        let (connections, inbox) = (&self.connections, &self.inbox);
        let mut tools = Tools {
            now: self.now,
            seed: self.shared.config.seed,
            me: self.me,
            alone: self.shared.is_alone(),
            turn_requests: self.shared.config.turn_requests,
            permits: self.shared.config.permits,
            locked: self.shared.config.locked,
            switches: &self.shared.switches,
            observers: &self.shared.observers,
            doorbells: &self.shared.doorbells,
            room: free,
            batch_max: (free / guess.max(1)).clamp(1, BATCH_MAX),
            engine: &mut *self.engine,
            port: &mut self.port,
            admin: &*self.shared.admin,
            tally: &mut self.tally,
        };
        let input_of = |source| match source {
            Input::Connection(key) => &connections[key].rx[..],
            Input::Datagram(slot) => inbox.datagram(slot.into()),
        };
        let fd_of = |source| match source {
            Input::Connection(key) => connections[key].entry().map_or(0, |entry| entry.fd),
            Input::Datagram(_) => 0,
        };
        let executed = self.burst.run_batch(input_of, fd_of, &mut tools);
        self.tally.batches += u64::from(executed > 0);
        self.tally.requests += executed as u64;
        let reply_bytes = self.burst.reply_bytes();
        let each = (reply_bytes - reply_bytes_before) / executed.max(1);
        self.reply_bytes_guess = each.max(self.reply_bytes_guess - self.reply_bytes_guess / 64);
        reply_bytes
    }

    /// Puts a member's state back into its connection, and sends its replies.
    fn dismiss(&mut self, index: usize) {
        let member = &mut self.burst.members[index];
        let Input::Connection(key) = member.input else {
            unreachable!("datagrams have bursts of their own");
        };
        let (stop, report) = (member.stop, member.report.take());
        let connection = &mut self.connections[key];
        connection.is_served = false;
        connection.parser = member.parser;
        connection.rx_start = member.at;
        connection.ask_owner = member.ask_owner;
        connection.locked = member.locked;
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
        if let Some(entry) = connection.entry() {
            entry.note(activity);
        }
        connection.trim(&mut self.pool);
        if member.requests > 0 {
            connection.end_hold();
        }
        let replies = std::mem::take(&mut self.burst.outs[index]);
        connection.burst_reply_bytes = replies.len();
        connection.note_reply_bytes(replies.len() / (member.requests as usize).max(1));
        match member.reorder.take() {
            Some(mut reorder) if reorder.len() > 0 => {
                // Where every request has crossed, no buffer is kept until the replies come.
                if replies.is_empty() {
                    self.pool.give(replies);
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
                    self.withhold(key, replies);
                } else {
                    connection.tx = replies;
                }
            }
        }
        match stop {
            Stop::Dump(kind) => {
                // The last thing that this member did was to ask for it.
                let dump = self
                    .burst
                    .dump_guard
                    .take()
                    .map(|guard| Box::new(DumpCursor::new(kind, guard, self.me, key)));
                self.connections[key].continuation = dump.map(Continuation::Home);
            }
            Stop::Report => self.connections[key].continuation = report.map(Continuation::Report),
            Stop::Watch(interests) => self.begin_to_watch(key, interests),
            Stop::Spent => self.tally.conn_yields += 1,
            Stop::OutOfCredit => {
                self.connections[key].queued = true;
                self.out_of_credit.push(key);
            }
            _ => {}
        }
        self.send_and_settle(key);
    }

    /// Sends what is to be sent, then settles.
    pub fn send_and_settle(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.tx.is_empty() {
            if connection.tx.capacity() > 0 {
                self.pool.give(std::mem::take(&mut connection.tx));
            }
        } else {
            match connection.transmit(&mut self.pool, self.now.ms) {
                Some(bytes) => self.tally.bytes_written += bytes as u64,
                None => {
                    self.close(key);
                    return;
                }
            }
        }
        self.settle(key);
    }

    /// Decides what a connection waits for: its next turn, the poller, a reorder buffer, or nothing
    /// any more.
    pub fn settle(&mut self, key: ConnectionKey) {
        let is_scarce = self.budget.is_scarce();
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.is_finished() {
            self.close(key);
            return;
        }
        if !connection.queued && (connection.is_runnable() || connection.has_continuation()) {
            connection.queued = true;
            self.ready
                .push(key, ReplyClass::of(connection.burst_reply_bytes));
        }
        if is_scarce {
            connection.compact(&mut self.pool);
        }
        connection.recharge(&mut self.budget);
        connection.note_held(self.now.ms);
    }

    /// Sets a connection aside until so many bytes of memory are free.
    fn starve(&mut self, key: ConnectionKey, bytes: usize) {
        self.pool.clear();
        self.is_short = true;
        let connection = &mut self.connections[key];
        connection.queued = true;
        connection.note_wait(self.now.ms);
        self.starved.push_back((key, bytes));
    }

    /// Ends a connection. What it has crossing is executed all the same, and the replies are
    /// dropped when they come home.
    pub fn close(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        (self.budget).recharge_held(connection.counted, Charge::default());
        self.pool.give(connection.rx);
        self.pool.give(connection.tx);
        match &connection.link {
            Link::Stream(_, entry) => {
                let shared = &self.shared;
                shared.registry.remove(entry.fd);
                if let Some(feed) = &connection.feed {
                    shared.observers.remove(feed);
                }
                (shared.observers).show_connection(
                    entry,
                    Some(connection.reason),
                    &shared.doorbells,
                );
                self.shared.balancer.release(self.me);
                self.tally.curr_connections -= 1;
                // The client must not see the end of its connection before it is counted: it may
                // ask for the figures next.
                self.show_figures();
            }
            Link::Datagram(answer) => self.send_answer(answer),
        }
        if let Some(mut reorder) = connection.reorder {
            self.pool.give(reorder.take_local());
            self.burst.recycle(reorder);
        }
        self.listen_again();
    }
}
