//! What workers leave for one another under the model checker.
#![cfg(loom)]

use glimmer_node::forward::mailbox::{ClosedListeners, Mailbox};
use loom::sync::Arc;
use loom::thread;

/// Two workers hand over connections and close their listeners. Who sees that both have done so
/// sees the connections, and so does not leave without them.
#[test]
fn connections_are_seen_once_all_listeners_are_closed() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
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
