//! A plan that is replaced while workers go by it, under the model checker.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_node::dispatch::published::Published;
use loom::sync::Arc;
use loom::thread;

/// A worker that has seen a version takes a value that is at least as new, and never an older one
/// after a newer one.
#[test]
fn a_value_is_as_new_as_its_version() {
    explore(3, || {
        let published = Arc::new(Published::new(0));
        let publisher = published.clone();
        let publisher = thread::spawn(move || {
            assert_eq!(publisher.replace(1), 1);
            assert_eq!(publisher.replace(2), 2);
        });
        let mut before = 0;
        for _ in 0..2 {
            let seen = published.version();
            let (version, value) = published.take();
            assert!(
                version >= seen && *value == version,
                "{seen}: {version}, {value}"
            );
            assert!(version >= before);
            before = version;
        }
        publisher.join().unwrap();
        let (version, value) = published.take();
        assert_eq!((version, *value), (2, 2));
    });
}
