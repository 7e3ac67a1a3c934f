//! The look-up of a key in the slots, as every body that shares them does it.

use crate::hash;
use crate::layout::{Peek, Tally};
use crate::memory::Memory;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{Arc, AtomicU64};

/// One reader: a thread, or a core on which the packet program runs. It alone adds to its row of
/// counts and tallies.
#[derive(Debug)]
pub struct Reader {
    memory: Arc<Memory>,
    row: usize,
}

/// An item that has been found. What is copied from it is valid only if [`Hit::finish`] says so.
#[derive(Debug)]
pub struct Hit<'a> {
    reader: &'a Reader,
    slot: usize,
    peek: Peek<'a>,
}

impl Reader {
    /// The reader with this row.
    ///
    /// # Panics
    ///
    /// If the memory has no such row.
    pub fn new(memory: Arc<Memory>, row: usize) -> Reader {
        assert!(row < memory.readers());
        Reader { memory, row }
    }

    /// Finds a key's item at this time of CLOCK_MONOTONIC in nanoseconds. A key that is not
    /// answered is tallied.
    ///
    /// # Errors
    ///
    /// Why the request goes to the server.
    #[inline]
    pub fn find(&self, key: &[u8], now_ns: u64) -> Result<Hit<'_>, Tally> {
        let found = self.find_slot(key, now_ns);
        if let Err(tally) = found {
            self.tally(tally);
        }
        let (slot, peek) = found?;
        Ok(Hit {
            reader: self,
            slot,
            peek,
        })
    }

    #[inline]
    fn find_slot(&self, key: &[u8], now_ns: u64) -> Result<(usize, Peek<'_>), Tally> {
        let control = self.memory.control();
        if control.paused() != 0 {
            return Err(Tally::Paused);
        }
        let slots = self.memory.slots();
        let places = hash::places(hash::hash(control.seed(), key), slots.len());
        let found = places.into_iter().find_map(|slot| {
            let peek = Peek::at(&slots[slot])?;
            peek.has_key(key).then_some((slot, peek))
        });
        let (slot, peek) = found.ok_or(Tally::Miss)?;
        // The time first, then the epoch: see `Control`.
        if now_ns >= control.flush_at_ns() {
            return Err(Tally::Flushed);
        }
        if control.epoch() != peek.epoch() {
            return Err(Tally::Flushed);
        }
        if now_ns >= peek.deadline_ns() {
            return Err(Tally::Expired);
        }
        Ok((slot, peek))
    }

    /// Counts an event.
    #[inline]
    pub fn tally(&self, tally: Tally) {
        add_one(&self.memory.tallies(self.row)[tally as usize]);
    }

    /// The memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
}

impl<'a> Hit<'a> {
    /// The look at the slot.
    #[inline(always)]
    pub fn peek(&self) -> &Peek<'a> {
        &self.peek
    }

    /// Rechecks the slot. If it is unchanged, the hit takes place now and is counted, and what was
    /// copied is valid. Otherwise the request goes to the server.
    #[inline]
    #[must_use = "what was copied may be torn"]
    pub fn finish(self, tally: Tally) -> bool {
        let control = self.reader.memory.control();
        let is_unchanged = self.peek.is_unchanged() && !control.rechecks_fail();
        if is_unchanged {
            add_one(&self.reader.memory.counts(self.reader.row)[self.slot]);
        }
        self.reader
            .tally(if is_unchanged { tally } else { Tally::Torn });
        is_unchanged
    }
}

/// Only the row's reader adds to it.
#[inline(always)]
fn add_one(count: &AtomicU64) {
    count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
}
