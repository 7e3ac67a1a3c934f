//! What every function does at its boundary: it checks what C cannot promise, and keeps panics in.

use crate::{Bytes, Client, Outcome, message};
use glimmer_client as native;
use native::boundary::Panicked;
use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

/// What a call comes to: an outcome, or a failure that has been noted for `glimmer_message`.
pub type Called = Result<Outcome, Outcome>;

/// A failure as an outcome, with its words noted.
pub fn failed<E: ToString + Into<Outcome>>(error: E) -> Outcome {
    message::note(&error.to_string());
    error.into()
}

/// An argument that means nothing; `what` says which.
pub fn argument(what: &str) -> Outcome {
    message::note(what);
    Outcome::Argument
}

/// A call that panicked.
pub fn internal(panicked: Panicked) -> Outcome {
    message::note(&panicked.to_string());
    Outcome::Internal
}

/// Calls a client.
///
/// # Safety
///
/// The client is null, or was handed out, has not been freed, and is used by this thread alone.
pub unsafe fn on(client: *mut Client, call: impl FnOnce(&mut native::Client) -> Called) -> Outcome {
    let Some(mut client) = NonNull::new(client) else {
        return argument("the client is null");
    };
    // SAFETY: it is not null, and the rest is the caller's promise.
    let called = unsafe { client.as_mut() }.0.call(call);
    match called {
        Ok(Ok(outcome) | Err(outcome)) => outcome,
        Err(panicked) => internal(panicked),
    }
}

impl Bytes {
    /// # Safety
    ///
    /// They are null, or as long as they say, for as long as the slice is used.
    pub(crate) unsafe fn slice<'a>(self) -> Result<&'a [u8], Outcome> {
        // SAFETY: the caller's promise.
        unsafe { slice(self.data, self.length) }
    }
}

/// `count` values; an error if that cannot be.
///
/// # Safety
///
/// `first` is null, or there are `count` values at it, for as long as the slice is used.
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
    // SAFETY: the caller's promise; pointer and length have been checked.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// # Safety
///
/// It is null, or a string that ends with a zero and stays for as long as the text is used.
pub unsafe fn text<'a>(string: *const c_char) -> Result<&'a str, Outcome> {
    if string.is_null() {
        return Err(argument("the name of a host is null"));
    }
    // SAFETY: the caller's promise.
    let string = unsafe { CStr::from_ptr(string) };
    string
        .to_str()
        .map_err(|_| argument("the name of a host is not UTF-8"))
}

/// Writes where a caller points, unless it points nowhere. What was there is not read: it may be
/// uninitialised.
///
/// # Safety
///
/// `place` is null or may be written to.
pub unsafe fn tell<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
}
