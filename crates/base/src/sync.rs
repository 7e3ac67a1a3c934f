//! The one switch between the real atomics and loom's model of them.
//!
//! Code that shares data between threads takes its atomics, fences and locks from here, so that
//! `RUSTFLAGS="--cfg loom"` explores the shipped code and not a copy of it.

#[cfg(not(loom))]
mod real {
    pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use parking_lot::{Mutex, MutexGuard};
    pub use std::sync::Arc;
    pub use std::thread::{Thread, current, park};

    /// A cell whose accesses loom can observe. Without loom it is a plain `UnsafeCell`.
    #[derive(Debug, Default)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps a value.
        #[inline]
        pub fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(core::cell::UnsafeCell::new(value))
        }

        /// Passes a pointer for reading.
        #[inline]
        pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Passes a pointer for writing.
        #[inline]
        pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }

    /// Waits a moment for another thread without yielding the core.
    #[inline]
    pub fn spin_loop() {
        core::hint::spin_loop();
    }

    /// Waits for another thread, which may need this core to go on.
    pub fn yield_now() {
        std::thread::yield_now();
    }

    /// Has the compiler leave the stores before this before those after it. A process that ends
    /// between two of its instructions leaves in a mapped file what the instructions before have
    /// stored, so this is all that such stores need. It costs nothing.
    #[cfg(not(debug_assertions))]
    #[inline(always)]
    pub fn in_program_order() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// The same where debug assertions are compiled: it is also [noted](super::order_points).
    #[cfg(debug_assertions)]
    #[inline(always)]
    #[track_caller]
    pub fn in_program_order() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        super::order_points::note(core::panic::Location::caller());
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Whether to leave out the fence, ordering or recheck of this name: never, in a release.
    #[cfg(not(debug_assertions))]
    #[inline(always)]
    pub const fn weakened(_name: &str) -> bool {
        false
    }

    /// Takes the lock, sleeping while another thread holds it.
    #[inline]
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }

    /// Takes the lock, unless another thread holds it.
    #[inline]
    pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.try_lock()
    }

    /// Releases the lock, and gives it to the thread that has slept for it, if there is one. A
    /// thread that takes the lock again and again would else take it before that one has woken up.
    pub fn unlock_fairly<T>(guard: MutexGuard<'_, T>) {
        MutexGuard::unlock_fair(guard);
    }

    /// What the lock guards, now that no other thread can take it.
    pub fn unlocked<T>(mutex: Mutex<T>) -> T {
        mutex.into_inner()
    }
}

#[cfg(loom)]
mod real {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::sync::{Arc, Mutex, MutexGuard};
    pub use loom::thread::{Thread, current, park};

    /// Lets loom schedule another thread.
    pub fn spin_loop() {
        loom::thread::yield_now();
    }

    /// Waits for another thread.
    pub fn yield_now() {
        loom::thread::yield_now();
    }

    /// Loom has no file that outlives its threads.
    pub fn in_program_order() {}

    /// Releases the lock. Loom explores every order in which threads can acquire it.
    pub fn unlock_fairly<T>(guard: MutexGuard<'_, T>) {
        drop(guard);
    }

    /// Takes the lock. Loom explores every order in which threads can acquire it.
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex
            .lock()
            .expect("no thread panics while it holds a lock")
    }

    /// Takes the lock, unless another thread holds it.
    pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.try_lock().ok()
    }

    /// What the lock guards, now that no other thread can take it.
    pub fn unlocked<T>(mutex: Mutex<T>) -> T {
        mutex
            .into_inner()
            .expect("no thread panics while it holds a lock")
    }
}

/// Where a thread has called [`in_program_order`], for a test of what a process leaves in a mapped
/// file that ends: between two of these calls, the compiler may put stores in any order. A
/// simulator looks at the file at one of them.
#[cfg(all(debug_assertions, not(loom)))]
pub mod order_points {
    use core::cell::{Cell, RefCell};
    use core::panic::Location;

    /// The callers, one after the other.
    pub type Points = Vec<&'static Location<'static>>;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
        static NOTED: RefCell<Option<Points>> = const { RefCell::new(None) };
        static AWAITED: RefCell<Option<Awaited>> = const { RefCell::new(None) };
    }

    /// What happens at a call.
    struct Awaited {
        /// Calls before that one.
        left: usize,
        then: Box<dyn FnOnce()>,
    }

    pub(super) fn note(caller: &'static Location<'static>) {
        let is_noted = |noted: &RefCell<Option<Points>>| {
            let mut noted = noted.borrow_mut();
            noted.as_mut().map(|points| points.push(caller)).is_some()
        };
        if NOTED.with(is_noted) {
            COUNT.set(COUNT.get() + 1);
        }
        if let Some(awaited) = AWAITED.with(|awaited| due(&mut awaited.borrow_mut())) {
            (awaited.then)();
        }
    }

    fn due(awaited: &mut Option<Awaited>) -> Option<Awaited> {
        match awaited {
            None => None,
            Some(Awaited { left: 0, .. }) => awaited.take(),
            Some(Awaited { left, .. }) => {
                *left -= 1;
                None
            }
        }
    }

    /// Has this thread do something in the midst of one of its calls, after so many others. It
    /// replaces what was to happen before.
    pub fn at(left: usize, then: impl FnOnce() + 'static) {
        let then = Box::new(then);
        AWAITED.with(|awaited| *awaited.borrow_mut() = Some(Awaited { left, then }));
    }

    /// Nothing happens at a call any more.
    pub fn await_none() {
        AWAITED.with(|awaited| *awaited.borrow_mut() = None);
    }

    /// Notes the calls of this thread from now on.
    pub fn begin() {
        COUNT.set(0);
        NOTED.with(|noted| *noted.borrow_mut() = Some(Points::new()));
    }

    /// How many were noted. A signal handler may ask.
    pub fn count() -> usize {
        COUNT.get()
    }

    /// Notes no more, and returns what was noted.
    pub fn end() -> Points {
        NOTED.with(|noted| noted.borrow_mut().take().unwrap_or_default())
    }
}

/// Whether to leave out, or do wrongly, what has this name: a line of a `weakenings.txt`, or of the
/// simulator's `planted.txt`. It is so if `GLIMMER_WEAKEN` names it, which shows that a test
/// notices. Only what the model checker explores and what is built with debug assertions asks.
#[cfg(any(loom, debug_assertions))]
#[inline]
pub fn weakened(name: &str) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Whether nothing is left out, as is known from the first call on.
    static NOTHING: AtomicBool = AtomicBool::new(false);

    #[cold]
    fn is_chosen(name: &str) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| std::env::var("GLIMMER_WEAKEN").ok());
        NOTHING.store(chosen.is_none(), Relaxed);
        chosen.as_deref() == Some(name)
    }

    // Tests ask this millions of times.
    !NOTHING.load(Relaxed) && is_chosen(name)
}

/// Explores the orders in which the threads of a test can run, with at most this many switches that
/// no thread asked for. Each further switch takes several times as long, so a long test has a low
/// bound. `GLIMMER_LOOM_MORE` adds to the bounds of all tests.
#[cfg(loom)]
pub fn explore(switches: usize, test: impl Fn() + Sync + Send + 'static) {
    let more = std::env::var("GLIMMER_LOOM_MORE").map_or(0, |more| {
        let more = more.parse::<usize>();
        more.expect("GLIMMER_LOOM_MORE is a number")
    });
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches + more);
    model.max_branches = 100_000;
    model.check(test);
}

pub use real::*;

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests {
    use super::{in_program_order, order_points};
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn something_happens_in_the_midst_of_one_call() {
        let happened = Rc::new(Cell::new(0));
        let count = |left| {
            let happened = happened.clone();
            order_points::at(left, move || happened.set(happened.get() + 1));
        };
        for (left, calls, expected) in [(0, 1, 1), (2, 2, 0), (2, 5, 1)] {
            happened.set(0);
            count(left);
            (0..calls).for_each(|_| in_program_order());
            assert_eq!(happened.get(), expected, "{calls} calls after {left}");
        }
        happened.set(0);
        count(0);
        order_points::await_none();
        in_program_order();
        assert_eq!(happened.get(), 0);
    }
}
