//! Reclamation by grace periods, as in RCU: memory that readers write to is reused *only after
//! every worker has finished the batch that it was in*.
//!
//! An optimistic reader notes a read in the index after it has validated what it copied
//! ([`Index::count_read`], [`Cell::mark_read`]). By then the memory of that index entry may
//! have left the index: a bucket was merged into another one, or a flush has given up a segment. If
//! items lay there already, the reader would change an item. So an index gives such memory away
//! only after a *grace period*, as in read-copy-update (McKenney and Slingwine 1998). The cost is
//! one fence for each batch, and nothing for each request.
//!
//! Each worker counts the batches that it begins and ends, so its count is odd during a batch. A
//! [`GracePeriod`] notes the counts that are odd, and is over once each of them has changed.
//!
//! # Why no worker still writes to the memory
//!
//! A worker stores the odd count, runs a `SeqCst` fence, and then reads the index. A writer takes
//! memory out of the index, runs a `SeqCst` fence, and then reads the counts. The two fences have
//! an order.
//!
//! - *The writer's fence is first.* The worker's reads of the index see that the memory has gone,
//!   so it never comes to it.
//! - *The worker's fence is first.* The writer sees the odd count, or a later one. It waits until
//!   it sees another count. The worker stores every count with release, and the writer loads it
//!   with acquire, so all that the worker did in the batch happened before the grace period ended.
//!   The count that the writer sees may be that by which the next batch begins, so that store needs
//!   release too.
//!
//! A writer need not wait for its own batch, which it names when it asks. It executes one request
//! at a time, and what it reads after it has passed the table's gate shows that the memory has
//! gone. Where several writers share a table, its gate hands the end of the grace period on to the
//! others.
//!
//! Memory to which readers do not write needs no grace period. They only copy from items, and
//! discard the copy if a version, the head of a log or the number of flushes has changed.
//!
//! [`Index::count_read`]: crate::table::Index::count_read
//! [`Cell::mark_read`]: crate::index::cuckoo::Cell::mark_read

use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use glimmer_base::sync::{Arc, AtomicU64, fence, weakened};

/// The batches that the workers of one store are in. See the module's text.
pub struct Batches {
    /// By worker: batches begun and ended.
    counts: Box<[CachePadded<AtomicU64>]>,
}

impl Batches {
    /// For this number of workers, with what each of them begins its batches by.
    pub fn new(workers: usize) -> (Arc<Batches>, Vec<Participant>) {
        let counts = (0..workers).map(|_| CachePadded::new(AtomicU64::new(0)));
        let batches = Arc::new(Batches {
            counts: counts.collect(),
        });
        let participant = |worker| Participant {
            batches: batches.clone(),
            worker,
        };
        let participants = (0..workers).map(participant).collect();
        (batches, participants)
    }
}

/// A table handle's view of the batches: all of them, and which worker's are its own.
#[derive(Clone)]
pub struct Seat {
    batches: Arc<Batches>,
    worker: Option<usize>,
}

impl Seat {
    /// Of a handle that belongs to a worker.
    pub fn new(batches: &Arc<Batches>, worker: usize) -> Seat {
        Seat {
            batches: batches.clone(),
            worker: Some(worker),
        }
    }

    /// Of a handle to a table that no other core reads.
    pub fn alone() -> Seat {
        Seat {
            batches: Batches::new(0).0,
            worker: None,
        }
    }

    /// That of another worker's handle to the same table.
    pub fn of_worker(&self, worker: usize) -> Seat {
        Seat::new(&self.batches, worker)
    }

    /// Begins a grace period: the caller has taken memory out of an index.
    pub fn grace_period(&self) -> GracePeriod {
        let counts = &self.batches.counts;
        if !counts.is_empty() && !weakened("grace_fence") {
            fence(SeqCst);
        }
        let counts = counts.iter().map(|count| count.load(Acquire));
        let running = counts.enumerate().filter(|(_, count)| count % 2 == 1);
        GracePeriod {
            running: running.collect(),
        }
    }

    /// Whether a batch is one of those that the table waits for.
    #[inline(always)]
    pub(crate) fn knows(&self, batch: &Batch<'_>) -> bool {
        Arc::ptr_eq(&self.batches, &batch.participant.batches)
    }
}

/// One worker's place among the [`Batches`]; only one thread at a time has it.
pub struct Participant {
    batches: Arc<Batches>,
    worker: usize,
}

impl Participant {
    /// Begins a batch.
    #[inline(always)]
    pub fn begin(&mut self) -> Batch<'_> {
        let batch = Batch { participant: self };
        let weak = weakened("batch_begin_release");
        batch.count(if weak { Relaxed } else { Release });
        if !weakened("batch_begin_fence") {
            fence(SeqCst);
        }
        batch
    }
}

/// A batch: while it lasts, its worker may read beside writers. Ends when it is dropped.
pub struct Batch<'a> {
    participant: &'a Participant,
}

impl Batch<'_> {
    #[inline(always)]
    fn count(&self, order: glimmer_base::sync::Ordering) {
        let Participant { batches, worker } = self.participant;
        let count = &batches.counts[*worker];
        count.store(count.load(Relaxed) + 1, order);
    }
}

impl Drop for Batch<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let weak = weakened("batch_end_release");
        self.count(if weak { Relaxed } else { Release });
    }
}

/// The time until every worker has finished the batch that it was in.
#[derive(Debug)]
pub struct GracePeriod {
    /// Workers that were in a batch, and their counts then. Those that have finished it are
    /// removed.
    running: Vec<(usize, u64)>,
}

impl GracePeriod {
    /// Whether it is over, for the writer with this seat. Costs one load in most cases: it looks at
    /// one worker until that has finished its batch.
    pub fn is_over(&mut self, seat: &Seat) -> bool {
        while let Some(&(worker, count)) = self.running.last() {
            let weak = weakened("grace_acquire");
            let order = if weak { Relaxed } else { Acquire };
            if seat.worker != Some(worker) && seat.batches.counts[worker].load(order) == count {
                return false;
            }
            self.running.pop();
        }
        true
    }
}
