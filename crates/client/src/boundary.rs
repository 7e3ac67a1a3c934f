//! What the bindings for other languages need. It keeps panics inside this library, because a panic
//! that crosses into a foreign caller aborts the process. It also lets a language look for signals
//! while a call waits.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

static WHILE_WAITING: OnceLock<fn() -> io::Result<()>> = OnceLock::new();

/// From now on, every blocking client of this process does this about 20 times a second while it
/// waits: a language may have to look for signals. If it fails, so does the call, as if the socket
/// had failed. Only the first such function counts.
pub fn while_waiting(check: fn() -> io::Result<()>) {
    let _ = WHILE_WAITING.set(check);
}

/// What [`while_waiting`] was given.
#[inline]
pub(crate) fn check() -> Option<fn() -> io::Result<()>> {
    WHILE_WAITING.get().copied()
}

/// A bug in this library made a call panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bug in the client library ended the call; the client cannot be used any more")]
pub struct Panicked;

/// Runs a call made by another language and turns a panic into an error.
///
/// This requires unwinding: with `panic = "abort"`, a panic ends the process.
pub fn guard<R>(call: impl FnOnce() -> R) -> Result<R, Panicked> {
    // State that the call left half changed is never used again: `Guarded` drops its value.
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // Dropping the panic's payload may panic again. The payload of that second panic is leaked.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        dropped.unwrap_or_else(std::mem::forget);
        Panicked
    })
}

/// A value owned by another language. If a call panics, every later call fails.
pub struct Guarded<T>(Option<T>);

impl<T> Guarded<T> {
    /// Wraps a usable value.
    pub fn new(value: T) -> Guarded<T> {
        Guarded(Some(value))
    }

    /// Runs a call on the value. A panic removes the value, because the call may have left it in
    /// any state.
    pub fn call<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> Result<R, Panicked> {
        let value = self.0.as_mut().ok_or(Panicked)?;
        let called = guard(|| call(value));
        if called.is_err() {
            let broken = self.0.take();
            let _ = guard(|| drop(broken));
        }
        called
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct DropsBadly;

    impl Drop for DropsBadly {
        fn drop(&mut self) {
            panic!("planted");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_value_is_given_up() {
        assert_eq!(guard(|| 7), Ok(7));
        let mut guarded = Guarded::new(DropsBadly);
        assert_eq!(guarded.call(|_| 1), Ok(1));
        assert_eq!(guarded.call(|_| panic!("planted")), Err::<(), _>(Panicked));
        assert_eq!(guarded.call(|_| 1), Err(Panicked));
        assert!(guarded.0.is_none());
    }

    #[test]
    fn what_a_panic_carries_may_panic_itself() {
        assert!(guard(|| std::panic::panic_any(DropsBadly)).is_err());
    }
}
