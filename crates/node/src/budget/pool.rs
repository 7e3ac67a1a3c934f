//! Buffers that connections borrow while there is data in them, and the budget for all buffers of a
//! worker.

use glimmer_base::limits::{BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, FREED_BYTES_HIGH};

/// The turn has at least this fraction (1 / n) of the budget.
const TURN_SHARE: usize = 2;

/// Empty buffers. The one returned last is reused first, because it is still in the core's cache.
///
/// A large buffer is one that grew beyond [`BUFFER_BYTES_KEPT_MAX`] for a large value. Freeing it
/// would give its pages back to the kernel, and the next large value would fault every page in
/// again. So large buffers are kept, too, as long as they are used.
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    /// Large buffers, in the order in which they were returned.
    large: Vec<Vec<u8>>,
    large_bytes: usize,
    large_bytes_max: usize,
    /// Of the large buffers, how many from the first on have not been used since
    /// [`Pool::free_idle`].
    idle: usize,
    /// Bytes of large buffers and other memory that were freed since [`Pool::take_freed`].
    freed_bytes: usize,
}

impl Pool {
    /// A pool that keeps at most `bytes_max` bytes of unused ordinary buffers, and
    /// `large_bytes_max` bytes of large ones.
    pub fn new(bytes_max: usize, large_bytes_max: usize) -> Pool {
        Pool {
            buffers: Vec::new(),
            bytes: 0,
            bytes_max,
            large: Vec::new(),
            large_bytes: 0,
            large_bytes_max,
            idle: 0,
            freed_bytes: 0,
        }
    }

    /// Bytes of unused buffers.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes + self.large_bytes
    }

    /// Unused buffers.
    pub fn buffers(&self) -> usize {
        self.buffers.len() + self.large.len()
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

    /// An empty buffer for about `bytes`: a large one if that is needed and there is one.
    #[inline]
    pub fn take_for(&mut self, bytes: usize) -> Vec<u8> {
        if bytes > BUFFER_BYTES_KEPT_MAX
            && let Some(buffer) = self.take_large(bytes)
        {
            return buffer;
        }
        self.take()
    }

    /// Of the large buffers of at least `bytes`, the one that was returned last.
    pub fn take_large(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= bytes;
        let at = self.large.iter().rposition(fits)?;
        Some(self.remove_large(at))
    }

    fn remove_large(&mut self, at: usize) -> Vec<u8> {
        let buffer = self.large.remove(at);
        self.large_bytes -= buffer.capacity();
        self.idle -= usize::from(at < self.idle);
        buffer
    }

    /// Returns a buffer to the pool. An ordinary one that finds the pool full is freed. A large one
    /// takes the place of those that were used least recently.
    #[inline]
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > BUFFER_BYTES_KEPT_MAX {
            return self.give_large(buffer);
        }
        let fits = self.bytes + capacity <= self.bytes_max;
        if capacity >= BUFFER_BYTES && fits {
            buffer.clear();
            self.bytes += capacity;
            self.buffers.push(buffer);
        } else {
            self.freed_bytes += capacity;
        }
    }

    #[inline(never)]
    fn give_large(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > self.large_bytes_max {
            self.freed_bytes += capacity;
            return;
        }
        while self.large_bytes + capacity > self.large_bytes_max {
            self.freed_bytes += self.remove_large(0).capacity();
        }
        buffer.clear();
        self.large_bytes += capacity;
        self.large.push(buffer);
    }

    /// Frees the large buffers that have not been used since the last call.
    pub fn free_idle(&mut self) {
        for _ in 0..self.idle {
            self.freed_bytes += self.remove_large(0).capacity();
        }
        self.idle = self.large.len();
    }

    /// Frees every large buffer.
    #[inline]
    pub fn free_large(&mut self) {
        if !self.large.is_empty() {
            self.freed_bytes += self.large_bytes;
            self.large.clear();
            self.large_bytes = 0;
            self.idle = 0;
        }
    }

    /// Whether there are large buffers, which may have to be freed later.
    pub fn has_large(&self) -> bool {
        !self.large.is_empty()
    }

    /// Notes that other memory was freed.
    pub fn note_freed(&mut self, bytes: usize) {
        self.freed_bytes += bytes;
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
        self.free_large();
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
    /// Bytes that may be held beyond that for a while.
    tolerated: usize,
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
    /// A budget of `limit` bytes, of which at least `turn_bytes` are reserved for the turn. Up to
    /// `tolerated` bytes more may be held for a while.
    pub fn new(limit: usize, turn_bytes: usize, tolerated: usize) -> Budget {
        Budget {
            limit,
            tolerated,
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

    /// Bytes held beyond what is tolerated. A reply may turn out to be larger than was guessed when
    /// its request began; what its client has yet to take is then held although there was no room
    /// for it.
    #[inline]
    pub fn excess(&self) -> usize {
        self.held.saturating_sub(self.held_max + self.tolerated)
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
        let mut budget = Budget::new(1000, 600, 20);
        assert_eq!(budget.room(), 400);
        let held = Charge {
            bytes: 450,
            buffers: 1,
        };
        budget.recharge_held(Charge::default(), held);
        assert_eq!((budget.room(), budget.excess()), (0, 30));
        assert_eq!(budget.free(0), 550);
        assert_eq!(Budget::new(1000, 10, 0).held_max(), 500);
    }

    #[test]
    fn a_pool_keeps_ordinary_buffers_up_to_its_bound() {
        let mut pool = Pool::new(2 * BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX);
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
    #[test]
    fn a_pool_keeps_large_buffers_up_to_their_bound_and_while_they_are_used() {
        const LARGE: usize = 2 * BUFFER_BYTES_KEPT_MAX;
        let mut pool = Pool::new(2 * BUFFER_BYTES, 3 * LARGE);
        pool.give(Vec::with_capacity(3 * LARGE + 1));
        assert!(!pool.has_large(), "it is larger than all may be");
        for _ in 0..4 {
            pool.give(Vec::with_capacity(LARGE));
        }
        assert_eq!((pool.bytes(), pool.buffers()), (3 * LARGE, 3));
        // A larger one takes the place of two.
        pool.give(Vec::with_capacity(2 * LARGE));
        assert_eq!((pool.bytes(), pool.buffers()), (3 * LARGE, 2));
        assert_eq!(pool.take_for(2 * LARGE).capacity(), 2 * LARGE);
        assert_eq!(pool.take_for(2 * LARGE).capacity(), BUFFER_BYTES);
        assert_eq!(
            pool.take_for(BUFFER_BYTES_KEPT_MAX).capacity(),
            BUFFER_BYTES
        );
        assert_eq!(pool.take().capacity(), BUFFER_BYTES);
        assert_eq!(pool.bytes(), LARGE);

        // Of two, one is used in every interval: the other one is freed after the first whole one.
        pool.give(Vec::with_capacity(LARGE));
        pool.free_idle();
        assert_eq!(pool.bytes(), 2 * LARGE);
        for left in [2, 1, 1] {
            let used = pool.take_large(LARGE).unwrap();
            pool.give(used);
            assert_eq!(pool.bytes(), left * LARGE);
            pool.free_idle();
        }
        assert_eq!(pool.bytes(), LARGE);
        pool.free_idle();
        assert!(!pool.has_large() && pool.bytes() == 0);
        pool.give(Vec::with_capacity(LARGE));
        pool.free_large();
        assert_eq!(pool.bytes(), 0);
    }
}
