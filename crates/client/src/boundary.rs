//! What libraries for other languages have in common: a panic must not leave them, because it ends
//! the process of a program that knows nothing of Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A bug in this library ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bug in the client library ended the call; the client cannot be used any more")]
pub struct Panicked;

/// Runs what another language has called. A panic becomes an error.
///
/// This needs a build that unwinds: with `panic = "abort"` a panic ends the process.
///
/// # Errors
///
/// [`Panicked`], if the call panicked.
pub fn guard<R>(call: impl FnOnce() -> R) -> Result<R, Panicked> {
    // What a call leaves half done is not seen again: `Guarded` gives up its value.
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // Dropping what the panic carries may panic again. What that carries is left alone.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        dropped.unwrap_or_else(std::mem::forget);
        Panicked
    })
}

/// A value that another language holds. A call of it that panics is the last.
pub struct Guarded<T>(Option<T>);

impl<T> Guarded<T> {
    /// A value that can be used.
    pub fn new(value: T) -> Guarded<T> {
        Guarded(Some(value))
    }

    /// Runs a call. After one that panicked there is no value, since a call may have left it in any
    /// state.
    ///
    /// # Errors
    ///
    /// [`Panicked`], if this call or one before it panicked.
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
