//! A value that is replaced as a whole while other threads read it.

use std::sync::Arc;

use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, Mutex, lock, weakened};

/// The value, and how often it has been replaced.
///
/// A thread that goes by the value keeps an [`Arc`] of it. Now and then it compares the version
/// with its own: one relaxed load of a word that hardly ever changes.
///
/// **Memory ordering.** The version is stored while the lock of the value is held, after the value.
/// A thread that has seen a version and then takes the lock does so after the section that stored
/// it: if its section came first, its load of the version would have happened before the store, and
/// could not have seen it. So [`Published::take`] returns a value at least as new as every version
/// that its thread has seen. The lock orders the value itself.
pub struct Published<T> {
    version: AtomicU64,
    value: Mutex<Arc<T>>,
}

impl<T> Published<T> {
    /// The first value has version 0.
    pub fn new(value: T) -> Published<T> {
        Published {
            version: AtomicU64::new(0),
            value: Mutex::new(Arc::new(value)),
        }
    }

    /// The version of the latest value, as far as the caller can see.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// The latest value with its version.
    pub fn take(&self) -> (u64, Arc<T>) {
        let value = lock(&self.value);
        (self.version.load(Relaxed), value.clone())
    }

    /// Replaces the value. Returns its version.
    pub fn replace(&self, value: T) -> u64 {
        if weakened("published_before_the_value") {
            self.version.fetch_add(1, Relaxed);
            *lock(&self.value) = Arc::new(value);
            return self.version();
        }
        let mut current = lock(&self.value);
        *current = Arc::new(value);
        let version = self.version.load(Relaxed) + 1;
        self.version.store(version, Relaxed);
        version
    }
}
