//! The boundary of every exported function: it checks what C does not guarantee and catches panics.

use crate::{Bytes, Client, Outcome, message};
use glimmer_client as native;
use native::boundary::Panicked;
use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

/// The result of a call: an outcome, or a failure whose message is stored for `glimmer_message`.
pub type Called = Result<Outcome, Outcome>;

/// Stores a failure's message and returns it as an outcome.
pub fn failed<E: ToString + Into<Outcome>>(error: E) -> Outcome {
    message::note(&error.to_string());
    error.into()
}

/// An invalid argument; `what` names it.
pub fn argument(what: &str) -> Outcome {
    message::note(what);
    Outcome::Argument
}

/// A call that panicked.
pub fn internal(panicked: Panicked) -> Outcome {
    message::note(&panicked.to_string());
    Outcome::Internal
}

/// Runs a call on a client.
///
/// # Safety
///
/// The client is null, or comes from this library, has not been freed, and is used by this thread
/// alone.
pub unsafe fn on(client: *mut Client, call: impl FnOnce(&mut native::Client) -> Called) -> Outcome {
    let Some(mut client) = NonNull::new(client) else {
        return argument("the client is null");
    };
    // SAFETY: the pointer is not null; the caller guarantees the rest.
    let called = unsafe { client.as_mut() }.0.call(call);
    match called {
        Ok(Ok(outcome) | Err(outcome)) => outcome,
        Err(panicked) => internal(panicked),
    }
}

impl Bytes {
    /// # Safety
    ///
    /// `data` is null, or points at `length` bytes for as long as the slice is used.
    pub(crate) unsafe fn slice<'a>(self) -> Result<&'a [u8], Outcome> {
        // SAFETY: the caller guarantees it.
        unsafe { slice(self.data, self.length) }
    }
}

/// A slice of `count` values, or an error if the arguments are invalid.
///
/// # Safety
///
/// `first` is null, or points at `count` values for as long as the slice is used.
pub unsafe fn slice<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Outcome> {
    if count == 0 {
        return Ok(&[]);
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(argument("a length is larger than memory"));
    }
    if first.is_null() || !first.is_aligned() {
        return Err(argument("a pointer to something is null or not aligned"));
    }
    // SAFETY: the caller guarantees it. Pointer and length have been checked.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// # Safety
///
/// `string` is null, or a NUL-terminated string that stays valid for as long as the text is used.
pub unsafe fn text<'a>(string: *const c_char) -> Result<&'a str, Outcome> {
    if string.is_null() {
        return Err(argument("the name of a host is null"));
    }
    // SAFETY: the caller guarantees it.
    let string = unsafe { CStr::from_ptr(string) };
    string
        .to_str()
        .map_err(|_| argument("the name of a host is not UTF-8"))
}

/// Writes through an output pointer unless it is null. The previous contents are not read, because
/// they may be uninitialised.
///
/// # Safety
///
/// `place` is null or may be written to.
pub unsafe fn tell<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller guarantees it.
        unsafe { place.write(value) };
    }
}
