//! Buffers that connections borrow while they have something in them, and the budget that all of a worker's buffers share.

use glimmer_base::limits::{BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, FREED_BYTES_HIGH};

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
pub(crate) struct Budget {
    limit: usize,
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
    pub fn new(limit: usize) -> Budget {
        Budget {
            limit,
            connections: Charge::default(),
        }
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

    /// Bytes that are used when unused buffers and boxes take `elsewhere`.
    #[inline]
    pub fn used(&self, elsewhere: usize) -> usize {
        self.connections.bytes + elsewhere
    }

    /// Whether less than half is free.
    #[inline]
    pub fn is_scarce(&self, elsewhere: usize) -> bool {
        self.used(elsewhere) > self.limit / 2
    }

    /// Bytes that are free when unused buffers and boxes take `elsewhere`.
    #[inline]
    pub fn free(&self, elsewhere: usize) -> usize {
        self.limit.saturating_sub(self.used(elsewhere))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
