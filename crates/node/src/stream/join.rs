//! Replies that come back from other workers join those that were made here.

use glimmer_base::limits::REPLY_BYTES_HIGH;

use super::Streams;
use super::key::ConnectionKey;
use super::ready::ReplyClass;
use crate::core::Core;
use crate::forward::port::Port;

impl Streams {
    /// Takes what other workers sent: executes their requests, and joins the replies to requests of
    /// this worker.
    pub fn take_forwarded(&mut self, core: &mut Core, port: &mut Port) {
        if core.is_alone {
            return;
        }
        let (connections, moved) = (&mut self.connections, &mut self.moved);
        let memory = &mut core.memory;
        port.drain(&mut *core.engine, core.now, |batch| {
            for (tag, kind) in batch.parts() {
                if let Some(connection) = connections.get_mut(tag.connection) {
                    connection.sum.add(kind);
                }
            }
            for (tag, reply) in batch.replies() {
                let Some(connection) = connections.get_mut(tag.connection) else {
                    continue;
                };
                let Some(reorder) = connection.reorder.as_mut() else {
                    continue;
                };
                if connection.tx.capacity() == 0 {
                    connection.tx = memory.pool.take();
                }
                reorder.fill(tag.slot, reply, &mut connection.tx);
                if reorder.is_complete() || connection.tx.len() >= REPLY_BYTES_HIGH {
                    moved.push(tag.connection);
                }
                connection.recharge(&mut memory.budget);
            }
        });
        port.account(&mut core.memory, &mut core.tally);
        port.wake_peers();
        for index in 0..self.moved.len() {
            self.advance_replies(self.moved[index], core);
        }
        self.moved.clear();
        self.resume_out_of_credit(port);
        if port.has_unfinished() {
            core.memory.is_short = true;
        }
    }

    /// Gives connections that are out of credit another turn, if a batch came back.
    pub fn resume_out_of_credit(&mut self, port: &mut Port) {
        if port.take_freed() {
            for key in self.out_of_credit.drain(..) {
                if let Some(connection) = self.connections.get(key) {
                    let class = ReplyClass::of(connection.burst_reply_bytes);
                    self.ready.push(key, class);
                }
            }
        }
    }

    /// A reorder buffer got replies: closes it if it has all, and sends what is in order.
    fn advance_replies(&mut self, key: ConnectionKey, core: &mut Core) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Some(mut reorder) = connection.reorder.take_if(|reorder| reorder.is_complete()) else {
            self.send_and_settle(key, core);
            return;
        };
        let local = reorder.finish(&mut connection.tx);
        core.memory.pool.give(local);
        self.burst.recycle(reorder);
        self.send_and_settle(key, core);
    }
}
