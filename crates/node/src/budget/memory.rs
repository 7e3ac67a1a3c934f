//! The memory for buffers of one worker, and whether it is short.

use glimmer_base::limits::{
    BEGUN_VALUES_BYTES, BUFFER_BYTES, BUFFERS_KEPT_PART, LARGE_BUFFER_IDLE_MS,
};

use super::pool::{Budget, Pool};
use crate::admin::stats::Counts;

/// Milliseconds between two times at which freed memory is returned because memory is short.
const RETURN_MS: u64 = 5;

/// The memory for buffers of one worker.
pub(crate) struct Memory {
    pub pool: Pool,
    pub budget: Budget,
    /// Bytes of copies of lent values that connections have yet to send, when the worker last
    /// looked.
    aside_bytes: usize,
    /// Bytes of memory of forwarded batches.
    pub forwarded_bytes: usize,
    /// Bytes that connections held when they left for other workers, which have not come home.
    pub away_bytes: usize,
    /// Estimated length of the next reply, from the largest recent replies, averaged over a batch.
    pub reply_bytes_guess: usize,
    /// Whether a connection or a forwarded batch waits for memory.
    pub is_short: bool,
    /// When the worker last searched for connections that hold memory without progress, in
    /// milliseconds since the epoch.
    pub searched_ms: u64,
    /// When the last search for connections to close, because too much was held, was in vain.
    pub shed_ms: u64,
    /// Bytes held beyond the limit after that search.
    pub unshed_excess: usize,
    /// When freed memory was last returned to the kernel because memory was short.
    returned_ms: u64,
    /// When large buffers were last looked at, in milliseconds since the epoch.
    aged_ms: u64,
}

impl Memory {
    /// Memory of `bytes`, of which at least `turn_bytes` are reserved for the turn, a reply with an
    /// item of `item_bytes_max` included.
    pub fn new(bytes: usize, turn_bytes: usize, item_bytes_max: usize, now_ms: u64) -> Memory {
        let kept_bytes = bytes / BUFFERS_KEPT_PART;
        Memory {
            pool: Pool::new(kept_bytes, kept_bytes.max(item_bytes_max + BUFFER_BYTES)),
            budget: Budget::new(bytes, turn_bytes, item_bytes_max.min(BEGUN_VALUES_BYTES)),
            aside_bytes: 0,
            forwarded_bytes: 0,
            away_bytes: 0,
            reply_bytes_guess: 0,
            is_short: false,
            searched_ms: now_ms,
            shed_ms: now_ms,
            unshed_excess: 0,
            returned_ms: now_ms,
            aged_ms: now_ms,
        }
    }

    /// Frees large buffers that nothing uses. Called every now and then.
    pub fn age(&mut self, now_ms: u64) {
        if self.pool.has_large() && now_ms - self.aged_ms >= LARGE_BUFFER_IDLE_MS {
            self.aged_ms = now_ms;
            self.pool.free_idle();
        }
    }

    /// Returns freed memory to the kernel, if it is much and that was not done just now. Called
    /// while memory may soon be short: others soon need as much, and the allocator may keep what
    /// was freed without using it for these.
    pub fn return_freed(&mut self, now_ms: u64) {
        if now_ms - self.returned_ms >= RETURN_MS && self.pool.take_freed() {
            self.returned_ms = now_ms;
            glimmer_transport::give_back_freed();
        }
    }

    /// Notes what copies of lent values take.
    pub fn note_asides(&mut self, bytes: usize) {
        self.pool.note_freed(self.aside_bytes.saturating_sub(bytes));
        self.aside_bytes = bytes;
    }

    /// Keeps no large buffers if memory may soon be short.
    #[inline]
    pub fn bound_kept(&mut self, now_ms: u64) {
        if self.budget.is_scarce() {
            self.pool.free_large();
            self.return_freed(now_ms);
        }
    }

    /// Bytes of buffers that may still be used. Copies of lent values have a bound of their own,
    /// which is one for all workers.
    #[inline]
    pub fn bytes_free(&self) -> usize {
        self.budget.free(self.unheld_bytes())
    }

    /// Bytes that connections may still hold.
    #[inline]
    pub fn room(&self) -> usize {
        self.budget.room()
    }

    /// Whether another connection may leave for another of `workers`. Those that are away from all
    /// workers together hold at most half of what one worker's connections may hold, so that one
    /// worker can receive them all.
    #[inline]
    pub fn may_depart(&self, workers: usize) -> bool {
        self.away_bytes <= self.budget.held_max() / (2 * workers)
    }

    /// Updates the estimate with the reply length of a batch. It follows large replies at once and
    /// forgets them slowly.
    #[inline]
    pub fn note_reply_bytes(&mut self, each: usize) {
        self.reply_bytes_guess = each.max(self.reply_bytes_guess - self.reply_bytes_guess / 64);
    }

    /// Updates the statistics of memory.
    pub fn count(&self, tally: &mut Counts) {
        let unheld_bytes = self.unheld_bytes() + self.aside_bytes;
        tally.buffer_bytes = self.budget.used(unheld_bytes) as u64;
        tally.buffer_bytes_free = self.pool.bytes() as u64;
        tally.buffers = (self.budget.buffers() + self.pool.buffers()) as u64;
    }

    fn unheld_bytes(&self) -> usize {
        self.pool.bytes() + self.forwarded_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::pool::Charge;
    use glimmer_base::limits::FREED_BYTES_HIGH;

    #[test]
    fn copies_of_lent_values_count_until_they_are_freed() {
        let mut memory = Memory::new(8 * FREED_BYTES_HIGH, FREED_BYTES_HIGH, FREED_BYTES_HIGH, 0);
        let counted = |memory: &Memory| {
            let mut tally = Counts::default();
            memory.count(&mut tally);
            tally.buffer_bytes as usize
        };
        let (free, before) = (memory.bytes_free(), counted(&memory));
        memory.note_asides(FREED_BYTES_HIGH);
        assert_eq!(counted(&memory), before + FREED_BYTES_HIGH);
        assert_eq!(memory.bytes_free(), free, "they leave a turn what it has");
        assert!(!memory.pool.has_freed());
        memory.note_asides(0);
        assert_eq!(counted(&memory), before);
        assert!(memory.pool.has_freed());
    }

    #[test]
    fn freed_memory_goes_back_to_the_kernel_while_memory_is_scarce() {
        let mut memory = Memory::new(8 * FREED_BYTES_HIGH, FREED_BYTES_HIGH, FREED_BYTES_HIGH, 0);
        let free = |memory: &mut Memory| {
            memory.pool.give(Vec::with_capacity(8 * FREED_BYTES_HIGH));
            assert!(memory.pool.has_freed());
        };
        free(&mut memory);
        memory.bound_kept(RETURN_MS);
        assert!(memory.pool.has_freed(), "nothing is held");
        let held = Charge {
            bytes: memory.room(),
            buffers: 1,
        };
        memory.budget.recharge_held(Charge::default(), held);
        memory.bound_kept(RETURN_MS);
        assert!(!memory.pool.has_freed(), "memory is scarce");
        free(&mut memory);
        memory.bound_kept(2 * RETURN_MS - 1);
        assert!(memory.pool.has_freed(), "that was done just now");
    }
}
