//! What workers leave for one another under the model checker.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_node::forward::mailbox::{ClosedListeners, Mailbox};
use loom::sync::Arc;
use loom::thread;

/// Two workers take from the same queue, and each connection is taken once. A worker that finds the
/// queue empty before it was put misses nothing: whoever puts it wakes a worker.
#[test]
fn two_workers_take_from_one_queue() {
    explore(2, || {
        let queue = Arc::new(Mailbox::for_each(1).remove(0));
        queue.put(1);
        let taker = {
            let queue = queue.clone();
            thread::spawn(move || queue.take().into_iter().sum::<u32>())
        };
        queue.put(2);
        let mut taken = queue.take().into_iter().sum::<u32>();
        taken += taker.join().unwrap();
        taken += std::iter::from_fn(|| queue.take()).sum::<u32>();
        assert_eq!(taken, 3, "each connection is taken once");
        assert!(queue.is_empty());
    });
}

/// Two workers hand over connections and close their listeners. Who sees that both have done so
/// sees the connections, and so does not leave without them.
#[test]
fn connections_are_seen_once_all_listeners_are_closed() {
    explore(2, || {
        let mailbox = Arc::new(Mailbox::for_each(1).remove(0));
        let closed = Arc::new(ClosedListeners::none_of(2));
        let workers = [1, 2].map(|connection| {
            let (mailbox, closed) = (mailbox.clone(), closed.clone());
            thread::spawn(move || {
                mailbox.put(connection);
                closed.note();
            })
        });
        let mut taken = 0;
        while !mailbox.is_empty() && mailbox.take().is_some() {
            taken += 1;
        }
        if closed.are_all() {
            assert_eq!(
                mailbox.is_empty(),
                taken == 2,
                "a connection is left behind"
            );
        }
        for worker in workers {
            worker.join().unwrap();
        }
        taken += std::iter::from_fn(|| mailbox.take()).count();
        assert_eq!(taken, 2, "each connection is taken once");
    });
}
