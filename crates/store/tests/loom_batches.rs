//! Loom explores the rule by which memory that readers write to changes owner.
#![cfg(loom)]

use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicBool, UnsafeCell};
use glimmer_store::batches::{Batches, Seat};
use loom::sync::Arc;
use loom::thread;

/// Memory of which a worker knows as long as it is in the index.
struct Index {
    has_it: AtomicBool,
    /// Not atomic, so the model checker reports two accesses that nothing orders.
    memory: UnsafeCell<u64>,
}

// SAFETY: that accesses to the cell are ordered is what the model checker checks.
unsafe impl Sync for Index {}

impl Index {
    /// What a worker does in a batch: it writes to the memory if it finds it in the index.
    fn write_if_found(&self) {
        if self.has_it.load(Relaxed) {
            self.write();
        }
    }

    fn write(&self) {
        // SAFETY: see the type.
        self.memory.with_mut(|memory| unsafe { *memory += 1 });
    }
}

fn index() -> Arc<Index> {
    Arc::new(Index {
        has_it: AtomicBool::new(true),
        memory: UnsafeCell::new(0),
    })
}

/// A worker writes in two batches. Who takes the memory out of the index writes to it after the
/// grace period.
#[test]
fn what_workers_write_in_their_batches_comes_before_the_end_of_a_grace_period() {
    loom::model(|| {
        let (batches, mut participants) = Batches::new(1);
        let index = index();
        let worker = {
            let (index, mut participant) = (index.clone(), participants.remove(0));
            thread::spawn(move || {
                for _ in 0..2 {
                    let _batch = participant.begin();
                    index.write_if_found();
                }
            })
        };
        let seat = Seat::new(&batches, 1);
        index.has_it.store(false, Relaxed);
        let mut grace = seat.grace_period();
        if grace.is_over(&seat) {
            index.write();
        }
        worker.join().unwrap();
        assert!(grace.is_over(&seat));
    });
}

/// Two workers, of which one takes the memory out of the index in a batch of its own, for which it
/// does not wait.
#[test]
fn a_worker_does_not_wait_for_its_own_batch() {
    loom::model(|| {
        let (batches, mut participants) = Batches::new(2);
        let index = index();
        let (mut first, mut second) = (participants.remove(0), participants.remove(0));
        let worker = {
            let index = index.clone();
            thread::spawn(move || {
                let _batch = first.begin();
                index.write_if_found();
            })
        };
        let batch = second.begin();
        index.has_it.store(false, Relaxed);
        let seat = Seat::new(&batches, 1);
        let mut grace = seat.grace_period();
        if grace.is_over(&seat) {
            index.write();
        }
        worker.join().unwrap();
        assert!(grace.is_over(&seat));
        drop(batch);
    });
}
