//! Loom explores the flush clock: every worker that looks after a flush is due counts it.
#![cfg(loom)]

use glimmer_base::Moment;
use glimmer_engine::FlushClock;
use loom::sync::Arc;
use loom::thread;

fn at(ms: u64) -> Moment {
    Moment {
        ms,
        epoch_unix_ms: 0,
    }
}

/// Two workers look when a delayed flush is due. Both count it. Otherwise one could store an item,
/// acknowledge it, and lose it to the flush.
#[test]
fn a_delayed_flush_is_counted_by_every_worker_that_looks() {
    loom::model(|| {
        let clock = Arc::new(FlushClock::default());
        clock.set(at(10), 20);
        let worker = {
            let clock = clock.clone();
            thread::spawn(move || assert_eq!(clock.due(at(20)), 1))
        };
        assert_eq!(clock.due(at(21)), 1);
        worker.join().unwrap();
        assert_eq!(clock.due(at(22)), 1, "a flush is counted once");
    });
}

/// A client schedules another flush while a worker counts a due one. Both happen, once each.
#[test]
fn a_flush_that_is_set_beside_one_that_comes_due_undoes_nothing() {
    loom::model(|| {
        let clock = Arc::new(FlushClock::default());
        clock.set(at(10), 20);
        let worker = {
            let clock = clock.clone();
            thread::spawn(move || assert!((1..=2).contains(&clock.due(at(20)))))
        };
        clock.set(at(20), 0);
        assert_eq!(clock.due(at(20)), 2);
        worker.join().unwrap();
        assert_eq!(clock.due(at(22)), 2);
    });
}
