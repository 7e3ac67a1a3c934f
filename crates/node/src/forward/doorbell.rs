//! How a worker falls asleep without missing what others send it.

use glimmer_base::sync::{AtomicU32, Ordering, fence, weakened};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A worker's state as the others see it, and the bell that ends its sleep (`B`: an eventfd; in the
/// model checker a condition variable).
///
/// **No wake-up is lost.** The sleeper stores ASLEEP, passes a SeqCst fence, and then looks for
/// work. Who sends stores the work, passes a SeqCst fence, and then looks at the state. The two
/// fences are totally ordered. If the sleeper's comes first, the sender's look at the state sees
/// ASLEEP (or a later value) and rings. If the sender's comes first, the sleeper's look for work
/// sees the work and it stays awake. Without either fence both looks could miss both stores;
/// without the second look for work, what was sent between the last look and ASLEEP would wait for
/// another bell.
///
/// The state is changed by swaps only, so every change follows the one before it and no sender's
/// swap can slip its AWAKE behind an ASLEEP that it has not seen.
///
/// The bell remembers a ring until somebody waits for it, so a ring between ASLEEP and the wait is
/// not lost either. A ring that comes when the worker has woken for another reason costs one empty
/// turn. Of many senders the one that takes ASLEEP away pays the system call.
///
/// Both fences and the second look can be taken out by name (`weakenings.txt`), and
/// `tests/loom_doorbell.rs` then fails.
pub struct Doorbell<B> {
    state: AtomicU32,
    bell: B,
}

/// What ends a sleep. A ring is remembered until the sleeper has waited for it.
pub trait Ring {
    /// Ends the sleep, or keeps the next one from beginning.
    fn ring(&self);
}

impl<B: Ring> Doorbell<B> {
    /// The doorbell of a worker that is awake.
    pub fn new(bell: B) -> Doorbell<B> {
        Doorbell {
            state: AtomicU32::new(AWAKE),
            bell,
        }
    }

    /// What the worker waits on.
    pub fn bell(&self) -> &B {
        &self.bell
    }

    /// The worker is about to sleep: says so, then looks for work once more. Returns whether it may
    /// sleep. Afterwards, asleep or not, comes [`Doorbell::awake`]; a worker that does not mean to
    /// sleep needs neither.
    pub fn may_sleep(&self, has_work: impl FnOnce() -> bool) -> bool {
        self.state.swap(ASLEEP, Ordering::AcqRel);
        if !weakened("sleep_fence") {
            fence(Ordering::SeqCst);
        }
        weakened("sleep_recheck") || !has_work()
    }

    /// The worker is up and looks for work before it sleeps again.
    pub fn awake(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Something was put where the worker looks for work: wakes it if it sleeps. Returns whether it
    /// slept.
    pub fn wake(&self) -> bool {
        if !weakened("wake_fence") {
            fence(Ordering::SeqCst);
        }
        let slept = self.state.load(Ordering::Relaxed) == ASLEEP
            && self.state.swap(AWAKE, Ordering::AcqRel) == ASLEEP;
        if slept && !weakened("lost_wakeup") {
            self.bell.ring();
        }
        slept
    }
}
