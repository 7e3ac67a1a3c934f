//! The ring between two workers under the model checker: every interleaving of a producer and a
//! consumer over more laps than one.
#![cfg(loom)]

use glimmer_node::forward::ring::ring;
use loom::thread;

#[test]
fn values_cross_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::<usize>(2);
        let sender = thread::spawn(move || {
            for value in 0..3 {
                let mut waiting = value;
                while let Err(back) = producer.push(waiting) {
                    waiting = back;
                    thread::yield_now();
                }
            }
        });
        for expected in 0..3 {
            let value = loop {
                match consumer.pop() {
                    Some(value) => break value,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(value, expected);
        }
        assert!(consumer.is_empty());
        sender.join().unwrap();
    });
}

/// What is pushed before the ends go away is dropped once, by whichever end goes last.
#[test]
fn values_left_behind_are_dropped_once() {
    loom::model(|| {
        let value = loom::sync::Arc::new(());
        let (mut producer, mut consumer) = ring(2);
        let pushed = [value.clone(), value.clone()];
        let sender = thread::spawn(move || {
            for value in pushed {
                assert!(producer.push(value).is_ok(), "the ring holds two");
            }
        });
        drop(consumer.pop());
        drop(consumer);
        sender.join().unwrap();
        assert_eq!(loom::sync::Arc::strong_count(&value), 1);
    });
}
