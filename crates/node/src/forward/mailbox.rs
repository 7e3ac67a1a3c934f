//! What workers leave for one another outside of the rings: seldom, and in any number.

use std::collections::VecDeque;

use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicUsize, Mutex, lock, weakened};

/// What is left for one worker by others.
pub struct Mailbox<T> {
    waiting: AtomicUsize,
    items: Mutex<VecDeque<T>>,
}

impl<T> Mailbox<T> {
    /// One for each worker.
    pub fn for_each(workers: usize) -> Vec<Mailbox<T>> {
        let mailbox = |_| Mailbox {
            waiting: AtomicUsize::new(0),
            items: Mutex::new(VecDeque::new()),
        };
        (0..workers).map(mailbox).collect()
    }

    /// Leaves an item. The caller wakes the worker.
    pub fn put(&self, item: T) {
        let mut items = lock(&self.items);
        items.push_back(item);
        self.waiting.fetch_add(1, Relaxed);
    }

    /// Number of items that are left, as far as the caller can see.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Whether nothing is left, as far as the caller can see.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item that was left first. Any worker may take it.
    #[inline]
    pub fn take(&self) -> Option<T> {
        match self.is_empty() {
            true => None,
            false => self.take_first(),
        }
    }

    #[inline(never)]
    fn take_first(&self) -> Option<T> {
        let mut items = lock(&self.items);
        let item = items.pop_front()?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(item)
    }
}

/// How many workers accept no more connections.
///
/// Each worker notes it once, with release, after the last connection that it handed over. A worker
/// that sees all of them with acquire sees those connections in its [`Mailbox`], too.
pub struct ClosedListeners {
    closed: AtomicUsize,
    workers: usize,
}

impl ClosedListeners {
    /// All of this number of workers still accept connections.
    pub fn none_of(workers: usize) -> ClosedListeners {
        ClosedListeners {
            closed: AtomicUsize::new(0),
            workers,
        }
    }

    /// One more worker accepts no connections.
    pub fn note(&self) {
        let weak = weakened("closed_release");
        self.closed
            .fetch_add(1, if weak { Relaxed } else { Release });
    }

    /// Whether no worker accepts connections any more.
    pub fn are_all(&self) -> bool {
        let weak = weakened("closed_acquire");
        self.closed.load(if weak { Relaxed } else { Acquire }) == self.workers
    }
}
