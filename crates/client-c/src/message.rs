//! The message of the last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Stores the message for [`glimmer_message`].
pub fn note(words: &str) {
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| last.replace(words));
}

/// The message of the last failure in this thread. Unlike glimmer_outcome_text, it includes the
/// server's address and the system's reason. It is empty if nothing has failed yet. It is
/// NUL-terminated and valid until the next failure in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_message() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
