//! The order of one connection's replies while some of them are with other workers.

use std::ops::Range;

use glimmer_base::sync::weakened;
use glimmer_engine::LentPart;

use super::send_queue::Tail;
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
    local: Kept,
    /// Bytes of `local` that have been joined.
    joined: usize,
    slots: Vec<PendingSlot>,
    /// The first empty slot.
    next: usize,
    /// Replies that came home before an earlier one.
    early: Kept,
    /// Workers to which a write of this connection was forwarded: a read after it has to follow.
    pub written: WorkerSet,
}

/// Where the reply to a forwarded request belongs.
#[derive(Clone, Debug)]
pub(crate) struct PendingSlot {
    /// Its offset in `local`.
    at: usize,
    /// Its bytes in `early`, once they are there.
    reply: Option<Range<usize>>,
}

/// Replies that wait for earlier ones.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// The parts that the table lends, by their places in the bytes.
    lent: Vec<LentPart>,
}

impl Kept {
    /// Moves what is in this range to the end of what is to be sent.
    fn move_to(&mut self, tail: &mut Tail<'_>, range: Range<usize>) {
        let end = tail.bytes.len();
        tail.bytes.extend_from_slice(&self.bytes[range.clone()]);
        if !self.lent.is_empty() {
            // A reply may end with a part, and none begins with one.
            let is_within = |part: &mut LentPart| range.start < part.at && part.at <= range.end;
            let parts = self.lent.extract_if(.., is_within);
            tail.lent
                .extend(parts.map(|part| part.moved(range.start, end)));
        }
    }
}

impl ReorderBuffer {
    /// Makes ready for another connection; keeps no large buffer.
    pub fn reset(&mut self, bytes_kept: usize) {
        self.joined = 0;
        self.slots.clear();
        self.next = 0;
        self.local.lent = Vec::new();
        self.early.lent = Vec::new();
        self.early.bytes.clear();
        self.early.bytes.shrink_to(bytes_kept);
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
    pub fn close_with(&mut self, bytes: Vec<u8>, lent: impl Iterator<Item = LentPart>) {
        let lent = lent.collect();
        self.local = Kept { bytes, lent };
    }

    /// A reply came home, with the parts that are lent, by their places in it. Moves to `tail` what
    /// is in order now.
    pub fn fill(
        &mut self,
        slot: u16,
        reply: &[u8],
        lent: &mut dyn Iterator<Item = LentPart>,
        tail: &mut Tail<'_>,
    ) {
        let mut slot = usize::from(slot);
        if weakened("reply_to_the_wrong_slot") && self.next + 1 < self.slots.len() {
            slot = if slot == self.next {
                slot + 1
            } else {
                self.next
            };
        }
        if weakened("reply_out_of_order") && slot != self.next {
            self.slots[slot].reply = Some(0..0);
            return tail.append(reply, lent);
        }
        if slot != self.next {
            let Kept { bytes, lent: parts } = &mut self.early;
            let start = bytes.len();
            Tail { bytes, lent: parts }.append(reply, lent);
            self.slots[slot].reply = Some(start..start + reply.len());
            return;
        }
        self.join_local(self.slots[slot].at, tail);
        tail.append(reply, lent);
        self.next += 1;
        while let Some(PendingSlot {
            at,
            reply: Some(early),
        }) = self.slots.get(self.next)
        {
            let (at, early) = (*at, early.clone());
            self.join_local(at, tail);
            self.early.move_to(tail, early);
            self.next += 1;
        }
    }

    fn join_local(&mut self, to: usize, tail: &mut Tail<'_>) {
        self.local.move_to(tail, self.joined..to);
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

    /// Moves the replies after the last slot to `tail`, once every slot is filled. Returns the
    /// buffer of the local replies.
    pub fn finish(&mut self, tail: &mut Tail<'_>) -> Vec<u8> {
        debug_assert!(self.is_complete());
        self.join_local(self.local.bytes.len(), tail);
        std::mem::take(&mut self.local.bytes)
    }

    /// Gives up the local replies: no client will take them.
    pub fn take_local(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.local).bytes
    }

    /// The parts that the table lends.
    pub fn lent(&self) -> impl Iterator<Item = &LentPart> {
        self.local.lent.iter().chain(&self.early.lent)
    }

    /// Bytes of memory that the reorder buffer takes.
    pub fn capacity(&self) -> usize {
        self.local.bytes.capacity() + self.early.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::send_queue::tests::Value;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::cell::Cell;
    use std::iter;

    /// A reply: bytes before a value, the value if it is lent, and bytes after it.
    type Reply = (String, Option<String>, String);

    fn bytes_of((before, value, after): &Reply) -> String {
        [before, value.as_deref().unwrap_or_default(), after]
            .map(String::from)
            .concat()
    }

    /// The bytes of a reply that are not lent, and the part that is, behind `start` others.
    fn parts_of((before, value, after): &Reply, start: usize) -> (String, Option<LentPart>) {
        let part = value.as_ref().map(|value| LentPart {
            out: 0,
            at: start + before.len(),
            value: Box::new(Value(value.as_bytes().to_vec(), Cell::default())),
        });
        (format!("{before}{after}"), part)
    }

    /// What a client receives.
    fn received(bytes: &[u8], lent: &[LentPart]) -> Vec<u8> {
        let (mut all, mut from) = (Vec::new(), 0);
        for part in lent {
            all.extend_from_slice(&bytes[from..part.at]);
            from = part.at;
            let is_there = part.value.with(0..part.value.bytes(), &mut |value| {
                all.extend_from_slice(value)
            });
            assert!(is_there);
        }
        all.extend_from_slice(&bytes[from..]);
        all
    }

    /// Random mixtures of local and crossing replies, some with values that are lent, home in
    /// random order, are joined in the order of the requests.
    #[test]
    fn replies_are_joined_in_order() {
        for seed in 0..2_000 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut reorder = ReorderBuffer::default();
            let (mut local, mut lent) = (String::new(), Vec::new());
            let (mut expected, mut crossed) = (String::new(), Vec::new());
            for request in 0..rng.random_range(1..40) {
                let value = rng.random_bool(0.3).then(|| format!("<{request}>"));
                // A reply may be empty, and may end with its value.
                let fewest = usize::from(value.is_some());
                let before = format!("{request},").repeat(rng.random_range(fewest..3));
                let after = if rng.random() { ";" } else { "" };
                let reply = (before, value, after.to_owned());
                expected += &bytes_of(&reply);
                if rng.random() {
                    crossed.push((reorder.reserve(local.len()), reply));
                } else {
                    let (bytes, part) = parts_of(&reply, local.len());
                    local += &bytes;
                    lent.extend(part);
                }
            }
            reorder.close_with(local.into_bytes(), lent.into_iter());
            crossed.shuffle(&mut rng);
            let (mut bytes, mut lent) = (Vec::new(), Vec::new());
            let mut tail = Tail {
                bytes: &mut bytes,
                lent: &mut lent,
            };
            for (slot, reply) in crossed {
                assert!(!reorder.is_complete(), "seed {seed}");
                let (bytes, part) = parts_of(&reply, 0);
                reorder.fill(slot, bytes.as_bytes(), &mut part.into_iter(), &mut tail);
                let so_far = received(tail.bytes, tail.lent);
                assert!(expected.as_bytes().starts_with(&so_far), "seed {seed}");
            }
            assert!(reorder.is_complete(), "seed {seed}");
            reorder.finish(&mut tail);
            assert_eq!(reorder.lent().count(), 0, "seed {seed}");
            assert_eq!(received(&bytes, &lent), expected.as_bytes(), "seed {seed}");
            reorder.reset(0);
            assert_eq!((reorder.len(), reorder.capacity()), (0, 0));
        }
    }

    /// What a connection that is closed was to be sent is lent no longer.
    #[test]
    fn nothing_stays_lent() {
        let mut reorder = ReorderBuffer::default();
        let slots = [0, 0].map(|at| reorder.reserve(at));
        let reply = ("head".to_owned(), Some("value".to_owned()), String::new());
        let (bytes, part) = parts_of(&reply, 0);
        reorder.close_with(bytes.into_bytes(), part.into_iter());
        let (bytes, part) = parts_of(&reply, 0);
        let mut tail = Tail {
            bytes: &mut Vec::new(),
            lent: &mut Vec::new(),
        };
        reorder.fill(slots[1], bytes.as_bytes(), &mut part.into_iter(), &mut tail);
        assert_eq!(reorder.lent().count(), 2);
        drop(reorder.take_local());
        reorder.reset(0);
        assert_eq!(reorder.lent().count(), 0);
        let no_more = iter::empty();
        reorder.close_with(Vec::new(), no_more);
        assert_eq!(reorder.capacity(), 0);
    }
}
