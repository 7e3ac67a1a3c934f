//! The order of one connection's replies while some of them are with other workers.

use crate::owners::Owners;

/// Opens when a request of the connection crosses over to another worker, and closes when all that crossed are answered. In between the
/// connection is not parsed.
///
/// Replies of requests that were executed here lie in `local`, one behind the other. Each request that crossed left a *hole*: a place
/// in `local` where its reply belongs. Replies come home in any order; whatever is in front of the first empty hole is joined.
#[derive(Default)]
pub(crate) struct Window {
    /// Replies made here.
    local: Vec<u8>,
    /// Bytes of `local` that have been joined.
    joined: usize,
    holes: Vec<Hole>,
    /// The first empty hole.
    next: usize,
    /// Replies that came home before an earlier one.
    early: Vec<u8>,
    /// Workers to whom a write of this connection crossed: a read behind it has to follow.
    pub written: Owners,
}

/// Where a crossing reply belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Its offset in `local`.
    at: usize,
    /// Its bytes in `early`, once they are there.
    reply: Option<(usize, usize)>,
}

impl Window {
    /// Makes ready for another connection; keeps no large buffer.
    pub fn reset(&mut self, bytes_kept: usize) {
        self.joined = 0;
        self.holes.clear();
        self.next = 0;
        self.early.clear();
        self.early.shrink_to(bytes_kept);
        self.written.clear();
    }

    /// Holes so far.
    pub fn len(&self) -> usize {
        self.holes.len()
    }

    /// Adds a hole at offset `at` of the local replies, behind the others; returns its number.
    pub fn dig(&mut self, at: usize) -> u16 {
        self.holes.push(Hole { at, reply: None });
        (self.holes.len() - 1) as u16
    }

    /// Says where a hole is, if that was not known when it was dug.
    pub fn place(&mut self, hole: u16, at: usize) {
        self.holes[usize::from(hole)].at = at;
    }

    /// Forgets the holes from number `from` on.
    pub fn truncate(&mut self, from: u16) {
        self.holes.truncate(from.into());
    }

    /// Begins to wait for the holes, with the replies that were made here.
    pub fn close_with(&mut self, local: Vec<u8>) {
        self.local = local;
    }

    /// A reply came home. Appends to `tx` what is in order now.
    pub fn fill(&mut self, hole: u16, reply: &[u8], tx: &mut Vec<u8>) {
        let hole = usize::from(hole);
        if hole != self.next {
            let start = self.early.len();
            self.early.extend_from_slice(reply);
            self.holes[hole].reply = Some((start, self.early.len()));
            return;
        }
        self.join_local(self.holes[hole].at, tx);
        tx.extend_from_slice(reply);
        self.next += 1;
        while let Some(&Hole {
            at,
            reply: Some((start, end)),
        }) = self.holes.get(self.next)
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

    /// The first empty hole.
    pub fn next(&self) -> Option<u16> {
        (!self.is_complete()).then_some(self.next as u16)
    }

    /// Whether every hole is filled.
    pub fn is_complete(&self) -> bool {
        self.next == self.holes.len()
    }

    /// Appends the replies behind the last hole to `tx`, once every hole is filled. Returns the buffer of the local replies.
    pub fn finish(&mut self, tx: &mut Vec<u8>) -> Vec<u8> {
        debug_assert!(self.is_complete());
        self.join_local(self.local.len(), tx);
        std::mem::take(&mut self.local)
    }

    /// Gives up the local replies: nobody will take them.
    pub fn take_local(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.local)
    }

    /// Bytes of memory behind the window.
    pub fn capacity(&self) -> usize {
        self.local.capacity() + self.early.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// Random mixtures of local and crossing replies, home in random order, are joined in the order of the requests.
    #[test]
    fn replies_are_joined_in_order() {
        for seed in 0..2_000 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut window = Window::default();
            let (mut local, mut expected, mut crossed) = (Vec::new(), Vec::new(), Vec::new());
            for request in 0..rng.random_range(1..40) {
                let reply = format!("{request},").repeat(rng.random_range(0..3));
                expected.extend_from_slice(reply.as_bytes());
                if rng.random() {
                    crossed.push((window.dig(local.len()), reply));
                } else {
                    local.extend_from_slice(reply.as_bytes());
                }
            }
            window.close_with(local);
            crossed.shuffle(&mut rng);
            let mut tx = Vec::new();
            for (hole, reply) in crossed {
                assert!(!window.is_complete(), "seed {seed}");
                window.fill(hole, reply.as_bytes(), &mut tx);
                assert!(expected.starts_with(&tx), "seed {seed}");
            }
            assert!(window.is_complete(), "seed {seed}");
            window.finish(&mut tx);
            assert_eq!(tx, expected, "seed {seed}");
            window.reset(0);
            assert_eq!((window.len(), window.capacity()), (0, 0));
        }
    }
}
