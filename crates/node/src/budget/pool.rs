//! Buffers that connections borrow while there is data in them, and the budget for all buffers of a
//! worker.

use glimmer_base::limits::{BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, FREED_BYTES_HIGH};

/// The turn has at least this fraction (1 / n) of the budget.
const TURN_SHARE: usize = 2;

/// Empty buffers. The one returned last is reused first, because it is still in the core's cache.
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

    /// Returns a buffer to the pool. A buffer that grew for a large value is freed, and so is one
    /// that finds the pool full.
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

    /// Whether enough memory was freed to return it to the kernel.
    pub fn has_freed(&self) -> bool {
        self.freed_bytes >= FREED_BYTES_HIGH
    }

    /// Whether enough memory was freed; restarts the count.
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

/// The bytes that a worker's buffers take, and their limit.
///
/// A part of the limit is reserved for the turn: the buffers of one burst, and one reply with the
/// largest item. Only the rest can be *held*, that is, stay with a connection between turns because
/// its client has yet to send or read something. However much is held, a client that sends a whole
/// request and reads its reply at once is therefore served at once.
pub(crate) struct Budget {
    limit: usize,
    /// Bytes that may be held.
    held_max: usize,
    /// Bytes that connections hold.
    held: usize,
    /// Bytes of connections, including those held, and of native clients.
    connections: Charge,
}

/// The bytes of a connection, of native clients, or of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub bytes: usize,
    /// Receive and send buffers.
    pub buffers: usize,
}

impl Budget {
    /// A budget of `limit` bytes, of which at least `turn_bytes` are reserved for the turn.
    pub fn new(limit: usize, turn_bytes: usize) -> Budget {
        Budget {
            limit,
            held_max: limit - turn_bytes.max(limit / TURN_SHARE).min(limit),
            held: 0,
            connections: Charge::default(),
        }
    }

    /// Updates the total for a connection that held `before` and now holds `after`.
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

    /// Bytes held beyond the limit.
    #[inline]
    pub fn excess(&self) -> usize {
        self.held.saturating_sub(self.held_max)
    }

    /// Updates the total for a connection or native client that took `before` and now takes
    /// `after`.
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
