//! Wake-ups for datagrams that a worker passes on, because another worker receives them.

use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};

/// How often a worker was woken for datagrams that are not its to receive. A worker that sees the
/// count change looks at its own packet devices. The worker that counts then wakes those that
/// sleep; their doorbells order the count before that.
#[derive(Debug, Default)]
pub struct Calls(AtomicU64);

impl Calls {
    /// The wake-ups so far.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// A worker passes a wake-up on.
    pub fn pass_on(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}
