//! Replies that come back from other workers join those that were made here.

use glimmer_base::limits::REPLY_BYTES_HIGH;
use glimmer_engine::LentPart;
use glimmer_proto::outcome::OutcomeKind;

use super::Streams;
use super::key::ConnectionKey;
use super::phase::Phase;
use crate::budget::memory::Memory;
use crate::core::Core;

impl Streams {
    /// A part of a command that is answered with one sum had this outcome elsewhere.
    pub fn add_part(&mut self, key: ConnectionKey, kind: OutcomeKind) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.session.sum.add(kind);
        }
    }

    /// A reply of this slot came home for a connection, with the parts that are lent.
    pub fn join(
        &mut self,
        key: ConnectionKey,
        slot: u16,
        (reply, lent): (&[u8], &mut dyn Iterator<Item = LentPart>),
        memory: &mut Memory,
    ) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Phase::Reordering(reorder) = &mut connection.phase else {
            return;
        };
        let mut tail = connection.tx.tail(&mut memory.pool);
        reorder.fill(slot, reply, lent, &mut tail);
        if reorder.is_complete() || connection.tx.unsent_bytes() >= REPLY_BYTES_HIGH {
            self.moved.push(key);
        }
        connection.recharge(&mut memory.budget);
        if connection.borrows() {
            self.note_borrower(key);
        }
    }

    /// Gives connections that are out of credit another turn.
    pub fn resume_out_of_credit(&mut self) {
        for key in self.out_of_credit.drain(..) {
            if let Some(connection) = self.connections.get(key) {
                let lane = connection.lane();
                self.ready.push(key, lane);
            }
        }
    }

    /// Closes the reorder buffers that have got all replies, and sends what is in order.
    pub fn advance_replies(&mut self, core: &mut Core) {
        for index in 0..self.moved.len() {
            let key = self.moved[index];
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            let is_complete = |phase: &Phase| phase.reorder().is_some_and(|it| it.is_complete());
            if let Some(Phase::Reordering(mut reorder)) = connection.phase.end_if(is_complete) {
                let local = reorder.finish(&mut connection.tx.tail(&mut core.memory.pool));
                core.memory.pool.give(local);
                self.burst.recycle(reorder);
            }
            self.send_and_settle(key, core);
        }
        self.moved.clear();
    }
}
