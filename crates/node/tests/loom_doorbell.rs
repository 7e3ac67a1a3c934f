//! Falling asleep under the model checker: no interleaving of a sleeper with those who send to it
//! leaves work lying.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_node::forward::doorbell::{Doorbell, Ring};
use glimmer_node::forward::ring::{Consumer, ring};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// An eventfd as the model sees it: a ring is remembered until it is waited for.
struct Remembered {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    is_rung: bool,
    /// Senders that may yet ring. A worker that waits when no sender is left has missed what they
    /// sent.
    senders: usize,
}

impl Remembered {
    fn new(senders: usize) -> Remembered {
        Remembered {
            state: Mutex::new(State {
                is_rung: false,
                senders,
            }),
            changed: Condvar::new(),
        }
    }

    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.is_rung {
            assert!(state.senders > 0, "a wake-up was lost");
            state = self.changed.wait(state).unwrap();
        }
        state.is_rung = false;
    }

    fn sender_leaves(&self) {
        self.state.lock().unwrap().senders -= 1;
        self.changed.notify_one();
    }
}

impl Ring for Remembered {
    fn ring(&self) {
        self.state.lock().unwrap().is_rung = true;
        self.changed.notify_one();
    }
}

/// The worker's loop with everything but waiting and draining left out.
fn receive(doorbell: &Doorbell<Remembered>, rings: &mut [Consumer<usize>], count: usize) {
    let mut received = 0;
    loop {
        received += rings.iter_mut().filter_map(Consumer::pop).count();
        if received == count {
            return;
        }
        if doorbell.may_sleep(|| rings.iter().any(|ring| !ring.is_empty())) {
            doorbell.bell().wait();
        }
        doorbell.awake();
    }
}

#[test]
fn one_sender_wakes_the_sleeper() {
    explore(3, || {
        let doorbell = Arc::new(Doorbell::new(Remembered::new(1)));
        let (mut producer, consumer) = ring(2);
        let sender = {
            let doorbell = doorbell.clone();
            thread::spawn(move || {
                for value in 0..2 {
                    assert!(producer.push(value).is_ok());
                    doorbell.wake();
                }
                doorbell.bell().sender_leaves();
            })
        };
        receive(&doorbell, &mut [consumer], 2);
        sender.join().unwrap();
    });
}

#[test]
fn two_senders_wake_the_sleeper() {
    explore(3, || {
        let doorbell = Arc::new(Doorbell::new(Remembered::new(2)));
        let (mut consumers, mut senders) = (Vec::new(), Vec::new());
        for value in 0..2 {
            let (mut producer, consumer) = ring(1);
            consumers.push(consumer);
            let doorbell = doorbell.clone();
            senders.push(thread::spawn(move || {
                assert!(producer.push(value).is_ok());
                doorbell.wake();
                doorbell.bell().sender_leaves();
            }));
        }
        receive(&doorbell, &mut consumers, 2);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}
