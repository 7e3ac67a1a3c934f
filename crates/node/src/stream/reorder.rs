//! The order of one connection's replies while some of them are with other workers.

use glimmer_base::sync::weakened;

use crate::forward::worker_set::WorkerSet;

/// Opens when a request of the connection is forwarded to another worker, and closes when all
/// forwarded requests are answered. In between the connection is not parsed.
///
/// The replies to requests that were executed here lie in `local`, one after another. Each
/// forwarded request left a *slot*: a place in `local` where its reply belongs. Replies come home
/// in any order. What lies before the first empty slot is joined.
#[derive(Default)]
pub(crate) struct ReorderBuffer {
    /// Replies made here.
    local: Vec<u8>,
    /// Bytes of `local` that have been joined.
    joined: usize,
    slots: Vec<PendingSlot>,
    /// The first empty slot.
    next: usize,
    /// Replies that came home before an earlier one.
    early: Vec<u8>,
    /// Workers to which a write of this connection was forwarded: a read after it has to follow.
    pub written: WorkerSet,
}

/// Where the reply to a forwarded request belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSlot {
    /// Its offset in `local`.
    at: usize,
    /// Its bytes in `early`, once they are there.
    reply: Option<(usize, usize)>,
}

impl ReorderBuffer {
    /// Makes ready for another connection; keeps no large buffer.
    pub fn reset(&mut self, bytes_kept: usize) {
        self.joined = 0;
        self.slots.clear();
        self.next = 0;
        self.early.clear();
        self.early.shrink_to(bytes_kept);
        self.written.clear();
    }

    /// Slots so far.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a slot at offset `at` of the local replies, after the others. Returns its number.
    pub fn reserve(&mut self, at: usize) -> u16 {
        self.slots.push(PendingSlot { at, reply: None });
        (self.slots.len() - 1) as u16
    }

    /// Says where a slot is, if that was not known when it was reserved.
    pub fn place(&mut self, slot: u16, at: usize) {
        self.slots[usize::from(slot)].at = at;
    }

    /// Forgets the slots from number `from` on.
    pub fn truncate(&mut self, from: u16) {
        self.slots.truncate(from.into());
    }

    /// Begins to wait for the slots, with the replies that were made here.
    pub fn close_with(&mut self, local: Vec<u8>) {
        self.local = local;
    }

    /// A reply came home. Appends to `tx` what is in order now.
    pub fn fill(&mut self, slot: u16, reply: &[u8], tx: &mut Vec<u8>) {
        let mut slot = usize::from(slot);
        if weakened("reply_to_the_wrong_slot") && self.next + 1 < self.slots.len() {
            slot = if slot == self.next {
                slot + 1
            } else {
                self.next
            };
        }
        if weakened("reply_out_of_order") && slot != self.next {
            self.slots[slot].reply = Some((0, 0));
            return tx.extend_from_slice(reply);
        }
        if slot != self.next {
            let start = self.early.len();
            self.early.extend_from_slice(reply);
            self.slots[slot].reply = Some((start, self.early.len()));
            return;
        }
        self.join_local(self.slots[slot].at, tx);
        tx.extend_from_slice(reply);
        self.next += 1;
        while let Some(&PendingSlot {
            at,
            reply: Some((start, end)),
        }) = self.slots.get(self.next)
        {
            self.join_local(at, tx);
            tx.extend_from_slice(&self.early[start..end]);
            self.next += 1;
        }
    }

    fn join_local(&mut self, to: usize, tx: &mut Vec<u8>) {
        tx.extend_from_slice(&self.local[self.joined..to]);
        self.joined = to;
    }

    /// The first empty slot.
    pub fn next(&self) -> Option<u16> {
        (!self.is_complete()).then_some(self.next as u16)
    }

    /// Whether every slot is filled.
    pub fn is_complete(&self) -> bool {
        self.next == self.slots.len()
    }

    /// Appends the replies after the last slot to `tx`, once every slot is filled. Returns the
    /// buffer of the local replies.
    pub fn finish(&mut self, tx: &mut Vec<u8>) -> Vec<u8> {
        debug_assert!(self.is_complete());
        self.join_local(self.local.len(), tx);
        std::mem::take(&mut self.local)
    }

    /// Gives up the local replies: no client will take them.
    pub fn take_local(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.local)
    }

    /// Bytes of memory that the reorder buffer takes.
    pub fn capacity(&self) -> usize {
        self.local.capacity() + self.early.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// Random mixtures of local and crossing replies, home in random order, are joined in the order
    /// of the requests.
    #[test]
    fn replies_are_joined_in_order() {
        for seed in 0..2_000 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut reorder = ReorderBuffer::default();
            let (mut local, mut expected, mut crossed) = (Vec::new(), Vec::new(), Vec::new());
            for request in 0..rng.random_range(1..40) {
                let reply = format!("{request},").repeat(rng.random_range(0..3));
                expected.extend_from_slice(reply.as_bytes());
                if rng.random() {
                    crossed.push((reorder.reserve(local.len()), reply));
                } else {
                    local.extend_from_slice(reply.as_bytes());
                }
            }
            reorder.close_with(local);
            crossed.shuffle(&mut rng);
            let mut tx = Vec::new();
            for (slot, reply) in crossed {
                assert!(!reorder.is_complete(), "seed {seed}");
                reorder.fill(slot, reply.as_bytes(), &mut tx);
                assert!(expected.starts_with(&tx), "seed {seed}");
            }
            assert!(reorder.is_complete(), "seed {seed}");
            reorder.finish(&mut tx);
            assert_eq!(tx, expected, "seed {seed}");
            reorder.reset(0);
            assert_eq!((reorder.len(), reorder.capacity()), (0, 0));
        }
    }
}
