//! Buffers that connections borrow while they have something in them, and the budget that all of a
//! worker's buffers share.

use glimmer_base::limits::{BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, FREED_BYTES_HIGH};

/// The turn has at least this part of the budget.
const TURN_SHARE: usize = 2;

/// Empty buffers. The one given back last is the next to be taken: it is still in the core's cache.
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    /// Bytes of large buffers that were freed since [`Pool::take_freed`].
    freed_bytes: usize,
}

impl Pool {
    /// A pool that keeps at most `bytes_max` bytes of unused buffers.
    pub fn new(bytes_max: usize) -> Pool {
        Pool {
            buffers: Vec::new(),
            bytes: 0,
            bytes_max,
            freed_bytes: 0,
        }
    }

    /// Bytes of unused buffers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Unused buffers.
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// An empty buffer of at least [`BUFFER_BYTES`].
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        match self.buffers.pop() {
            Some(buffer) => {
                self.bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(BUFFER_BYTES),
        }
    }

    /// Takes a buffer back. One that grew for a large value, or that finds the pool full, is freed.
    #[inline]
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let fits = self.bytes + capacity <= self.bytes_max;
        if (BUFFER_BYTES..=BUFFER_BYTES_KEPT_MAX).contains(&capacity) && fits {
            buffer.clear();
            self.bytes += capacity;
            self.buffers.push(buffer);
        } else {
            self.freed_bytes += capacity;
        }
    }

    /// Whether enough was freed to be worth giving back to the kernel.
    pub fn has_freed(&self) -> bool {
        self.freed_bytes >= FREED_BYTES_HIGH
    }

    /// The same, counting from now on.
    pub fn take_freed(&mut self) -> bool {
        let has_freed = self.has_freed();
        if has_freed {
            self.freed_bytes = 0;
        }
        has_freed
    }

    /// Frees every unused buffer.
    pub fn clear(&mut self) {
        self.freed_bytes += self.bytes;
        self.buffers.clear();
        self.bytes = 0;
    }
}

/// Bytes that a worker's buffers take, against what they may.
///
/// A part of the limit is kept for the turn: the buffers of one burst, and one reply of the largest
/// item. Only the rest can be *held*, that is, stay with a connection from one turn to another
/// because its client has yet to send or to take something. So however much is held, a client that
/// sends a request at once and takes its reply at once is served at once.
pub(crate) struct Budget {
    limit: usize,
    /// What may be held.
    held_max: usize,
    /// Bytes that connections hold.
    held: usize,
    /// These, and what is kept of native clients.
    connections: Charge,
}

/// What a connection takes, or what is kept of native clients, or all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub bytes: usize,
    /// Receive and send buffers.
    pub buffers: usize,
}

impl Budget {
    /// A budget of `limit` bytes, of which at least `turn_bytes` are for the turn.
    pub fn new(limit: usize, turn_bytes: usize) -> Budget {
        Budget {
            limit,
            held_max: limit - turn_bytes.max(limit / TURN_SHARE).min(limit),
            held: 0,
            connections: Charge::default(),
        }
    }

    /// Brings the total up to date with a connection that held `before` and holds `after` now.
    #[inline]
    pub fn recharge_held(&mut self, before: Charge, after: Charge) {
        self.held = self.held + after.bytes - before.bytes;
        self.recharge(before, after);
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes that may be held.
    pub fn held_max(&self) -> usize {
        self.held_max
    }

    /// Bytes that may still be held.
    #[inline]
    pub fn room(&self) -> usize {
        self.held_max.saturating_sub(self.held)
    }

    /// Bytes that are held beyond what may be.
    #[inline]
    pub fn excess(&self) -> usize {
        self.held.saturating_sub(self.held_max)
    }

    /// Brings the total up to date with one of them that took `before` and takes `after` now.
    #[inline]
    pub fn recharge(&mut self, before: Charge, after: Charge) {
        let all = &mut self.connections;
        all.bytes = all.bytes + after.bytes - before.bytes;
        all.buffers = all.buffers + after.buffers - before.buffers;
    }

    /// Buffers of connections.
    pub fn buffers(&self) -> usize {
        self.connections.buffers
    }

    /// Bytes that are used when unused buffers and batches take `elsewhere`.
    #[inline]
    pub fn used(&self, elsewhere: usize) -> usize {
        self.connections.bytes + elsewhere
    }

    /// Whether more than half of what may be held is.
    #[inline]
    pub fn is_scarce(&self) -> bool {
        self.held > self.held_max / 2
    }

    /// Bytes that are free when unused buffers and batches take `elsewhere`.
    #[inline]
    pub fn free(&self, elsewhere: usize) -> usize {
        self.limit.saturating_sub(self.used(elsewhere))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_budget_cannot_be_held() {
        let mut budget = Budget::new(1000, 600);
        assert_eq!(budget.room(), 400);
        let held = Charge {
            bytes: 450,
            buffers: 1,
        };
        budget.recharge_held(Charge::default(), held);
        assert_eq!((budget.room(), budget.excess()), (0, 50));
        assert_eq!(budget.free(0), 550);
        assert_eq!(Budget::new(1000, 10).held_max(), 500);
    }

    #[test]
    fn a_pool_keeps_ordinary_buffers_up_to_its_bound() {
        let mut pool = Pool::new(2 * BUFFER_BYTES);
        let buffers: Vec<_> = (0..3).map(|_| pool.take()).collect();
        assert_eq!(pool.bytes(), 0);
        for buffer in buffers {
            pool.give(buffer);
        }
        assert_eq!(pool.bytes(), 2 * BUFFER_BYTES);
        assert_eq!(pool.take().capacity(), BUFFER_BYTES);
        pool.give(Vec::with_capacity(BUFFER_BYTES_KEPT_MAX + 1));
        pool.give(Vec::new());
        assert_eq!(pool.bytes(), BUFFER_BYTES);
        pool.clear();
        assert_eq!(pool.bytes(), 0);
        assert!(!pool.has_freed());
        pool.give(Vec::with_capacity(FREED_BYTES_HIGH));
        assert!(pool.take_freed() && !pool.take_freed());
    }
}
