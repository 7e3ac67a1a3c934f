//! Rights that one client has at a time.

use std::sync::Arc;

use glimmer_base::sync::{AtomicBool, Ordering};

/// The right to list all items. One client has it at a time, as in memcached.
pub(crate) struct DumpGuard(Arc<AtomicBool>);

impl DumpGuard {
    /// Takes the right, unless it is taken.
    pub fn take(is_taken: &Arc<AtomicBool>) -> Option<DumpGuard> {
        let was_taken = is_taken.swap(true, Ordering::Relaxed);
        (!was_taken).then(|| DumpGuard(is_taken.clone()))
    }
}

impl Drop for DumpGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
