//! Calls for datagrams that a worker passes on to the others.

use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};

/// How often a worker was called for datagrams that it does not take. A worker that sees another
/// count than before looks at its packet devices. Who counts wakes the workers that sleep
/// afterwards; their doorbells order the count before that.
#[derive(Debug, Default)]
pub struct Calls(AtomicU64);

impl Calls {
    /// The calls so far.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// A worker passes a call on.
    pub fn pass_on(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}
