//! The one switch between the real atomics and loom's model of them.
//!
//! Everything that is shared between threads takes its atomics, fences and locks from here, so that
//! `RUSTFLAGS="--cfg loom"` explores the code that ships and not a copy of it.

#[cfg(not(loom))]
mod real {
    pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use parking_lot::{Mutex, MutexGuard};
    pub use std::sync::Arc;

    /// A cell whose accesses loom can watch; nothing but a plain one here.
    #[derive(Debug, Default)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps a value.
        #[inline]
        pub fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(core::cell::UnsafeCell::new(value))
        }

        /// Hands out a pointer to read through.
        #[inline]
        pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Hands out a pointer to write through.
        #[inline]
        pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }

    /// Waits a moment for another thread, without giving up the core.
    #[inline]
    pub fn spin_loop() {
        core::hint::spin_loop();
    }

    /// Takes the lock; sleeps while another thread holds it.
    #[inline]
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
}

#[cfg(loom)]
mod real {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::sync::{Arc, Mutex, MutexGuard};

    /// Lets loom schedule another thread.
    pub fn spin_loop() {
        loom::thread::yield_now();
    }

    /// Takes the lock; loom explores every order in which threads could get it.
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex
            .lock()
            .expect("no thread panics while it holds a lock")
    }
}

pub use real::*;
