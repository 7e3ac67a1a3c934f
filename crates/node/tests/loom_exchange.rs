//! A meeting of workers that replace what each has, under the model checker.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_node::dispatch::exchange::Exchange;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::thread;

const WORKERS: usize = 2;

/// One worker: works with its part, settles, meets the others, and works with the new part.
fn meet(me: usize, exchange: &Exchange<usize>, serving: &[AtomicUsize; WORKERS]) {
    // Until it has settled, the worker needs the others to serve with their old parts.
    for other in serving {
        assert_eq!(
            other.load(SeqCst),
            1,
            "a worker has handed its part in too early"
        );
    }
    exchange.settle();
    while !exchange.have_settled() {
        thread::yield_now();
    }
    serving[me].store(0, SeqCst);
    if let Some(parts) = exchange.hand_in(me, 10 + me) {
        assert_eq!(parts, [10, 11]);
        exchange.put_back(parts.into_iter().map(|part| part + 10).collect());
    }
    let part = loop {
        match exchange.take_back(me) {
            Some(part) => break part,
            None => thread::park(),
        }
    };
    assert_eq!(part, 20 + me);
}

/// All workers meet, whoever comes last, and can meet again.
#[test]
fn all_meet_and_each_has_its_new_part() {
    explore(3, || {
        let exchange = Arc::new(Exchange::new(WORKERS));
        let serving = Arc::new([AtomicUsize::new(1), AtomicUsize::new(1)]);
        let other = thread::spawn({
            let (exchange, serving) = (exchange.clone(), serving.clone());
            move || meet(1, &exchange, &serving)
        });
        meet(0, &exchange, &serving);
        other.join().unwrap();
        assert!(exchange.is_idle());
    });
}

/// A worker takes its own part again if the other one does not come, and only then.
#[test]
fn a_part_is_withdrawn_or_replaced() {
    loom::model(|| {
        let exchange = Arc::new(Exchange::new(WORKERS));
        let stopping = Arc::new(AtomicUsize::new(0));
        let waiting = thread::spawn({
            let (exchange, stopping) = (exchange.clone(), stopping.clone());
            move || {
                exchange.settle();
                assert!(exchange.hand_in(1, 11).is_none());
                loop {
                    let mut part = exchange.take_back(1);
                    if part.is_none() && stopping.load(Relaxed) == 1 {
                        part = exchange.withdraw(1);
                    }
                    match part {
                        Some(part) => return assert_eq!(part, 11),
                        None => thread::park(),
                    }
                }
            }
        });
        stopping.store(1, Relaxed);
        exchange.wake();
        waiting.join().unwrap();
    });
}
