//! What becomes of a connection after a burst: what it waits for, and what it is sent.

use glimmer_base::limits::LARGE_REPLY_BYTES;

use super::Streams;
use super::connection::{Connection, Turn};
use super::key::ConnectionKey;
use super::member::Stop;
use super::phase::Phase;
use super::ready::Lane;
use super::registry::Activity;
use super::reorder::ReorderBuffer;
use crate::admin::observe::CloseReason;
use crate::core::Core;
use crate::forward::batch::Asker;

impl Streams {
    /// Ends a member's part in the burst: puts what it came to back into its connection, and sends
    /// its replies.
    pub(super) fn leave_burst(&mut self, index: usize, lane: Lane, core: &mut Core) {
        let member = &mut self.burst.members[index];
        let Asker::Connection(key) = member.asker else {
            unreachable!("datagrams have bursts of their own");
        };
        let (stop, requests) = (member.stop, (member.requests, member.swallowed));
        let connection = &mut self.connections[key];
        connection.turn = Turn::None;
        connection.is_wanted_at_home = false;
        connection.session = member.session;
        let mut input_bytes = member.at - connection.rx.start;
        connection.rx.start = member.at;
        connection.rx.need = match stop {
            Stop::Hungry(need) => need,
            _ => 1,
        };
        if let Some(rare) = member.rare.as_deref_mut() {
            input_bytes += rare.placed_bytes;
            connection.rx.value = rare.value.take();
            connection.rx.queue = rare.queue.take_if(|queue| !queue.is_empty());
        }
        if connection.rx.has_ahead() {
            // It was counted when it came from the socket.
            input_bytes = 0;
        }
        let activity = match connection.rx.expects_value() {
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
        let is_hungry = matches!(stop, Stop::Hungry(_)) && !connection.rx.may_expect_value();
        if is_hungry
            && member.reorder.is_none()
            && reply_bytes <= core.slice_bytes()
            && lent_bytes == 0
        {
            connection.tx.bytes = replies;
            match send_to(connection, core) {
                true => self.settle(key, core),
                false => self.close(key, core),
            }
            return;
        }
        match member.reorder.take() {
            Some(reorder) => self.keep_local((key, index), replies, reorder, core),
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
                None if self.connections[key].awaits_no_place() || self.begin_upload(key, core) => {
                    self.settle(key, core);
                }
                None => {}
            }
        }
    }

    /// Keeps the replies that were made here until those have come that other workers make.
    #[cold]
    fn keep_local(
        &mut self,
        (key, index): (ConnectionKey, usize),
        mut local: Vec<u8>,
        mut reorder: Box<ReorderBuffer>,
        core: &mut Core,
    ) {
        let connection = &mut self.connections[key];
        let lent = self.burst.lent.take(index as u32);
        if reorder.len() == 0 {
            connection.tx.fill(local, lent);
            self.burst.recycle(reorder);
            return;
        }
        if local.is_empty() {
            // Where every request has crossed, no buffer is kept until the replies come.
            core.memory.pool.give(std::mem::take(&mut local));
        }
        reorder.close_with(local, lent);
        connection.phase.begin(Phase::Reordering(reorder));
        if connection.borrows() {
            self.note_borrower(key);
        }
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
            Stop::Replay => connection.rx.replay(),
            Stop::Begins => connection.phase.begin(member.rare().begins.end()),
            Stop::Withheld => self.withhold(key, core),
            Stop::Watch(interests) => self.begin_to_watch(key, interests, core),
            // The share of one that visits for one request is that request.
            Stop::Spent if connection.visit.is_some_and(|visit| visit.is_for_one) => {}
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

    /// A reply with a lent value of this many bytes may not have left as a whole. If it is timed,
    /// it is until its last byte has.
    #[inline]
    fn note_unsent(&mut self, key: ConnectionKey, index: usize, bytes: usize, core: &mut Core) {
        let tx = &mut self.connections[key].tx;
        if bytes > 0 && !tx.is_empty() && core.counting.has_unwritten() {
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
        if !send_to(connection, core) {
            self.close(key, core);
            return false;
        }
        if connection.tx.borrows() {
            self.note_borrower(key);
        }
        true
    }
}

/// Sends what is to be sent. Returns whether the connection is sound.
#[inline]
fn send_to(connection: &mut Connection, core: &mut Core) -> bool {
    if connection.tx.is_empty() {
        connection.tx.clear(&mut core.memory.pool);
        return true;
    }
    // While connections hold as much as they may, replies leave whole: what is left of one is then
    // what its client does not take, and not what waits for its next turn.
    let bytes_max = match core.memory.room() {
        0 => usize::MAX,
        _ => core.slice_bytes(),
    };
    let Some(bytes) = connection.transmit(&mut core.memory.pool, bytes_max, core.now.ms) else {
        return false;
    };
    core.tally.bytes_written += bytes as u64;
    if connection.tx.is_empty()
        && let Some((value_bytes, since_ns)) = connection.tx.timed.take()
    {
        core.note_service_time(value_bytes, since_ns);
    }
    true
}

/// Notes what a connection had in a burst: this many steps, of which some only passed over a part
/// of a refused value, and bytes of requests and replies.
#[inline]
fn note_burst(
    connection: &mut Connection,
    (requests, swallowed): (u32, u32),
    (input_bytes, reply_bytes): (usize, usize),
    core: &mut Core,
) {
    let before = requests_before(connection, core);
    if let Some(visit) = &mut connection.visit {
        visit.is_over |= requests >= core.shared.config.turn_requests;
    }
    let executed = requests - before;
    if requests > 0 {
        connection.patience.end_hold();
        connection.copies_any = false;
        if input_bytes + reply_bytes < LARGE_REPLY_BYTES * executed as usize {
            core.note_small_request();
        }
    }
    if connection.session.is_metered {
        let paid = executed.saturating_sub(swallowed);
        Streams::pay(connection, paid, input_bytes + reply_bytes, core);
    }
    connection.burst_reply_bytes = reply_bytes;
    connection.note_reply_bytes(reply_bytes / (executed as usize).max(1));
}

/// Requests that a visitor's turn begins with, as if it had had them: one large request is left of
/// it, or a whole turn.
#[inline]
pub(super) fn requests_before(connection: &Connection, core: &Core) -> u32 {
    match &connection.visit {
        Some(visit) if visit.is_for_one => core.shared.config.turn_requests.saturating_sub(1),
        _ => 0,
    }
}
