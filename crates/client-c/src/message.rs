//! What failed last, in words.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Notes what failed, for [`glimmer_message`].
pub fn note(words: &str) {
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| last.replace(words));
}

/// What failed last in this thread, in words: with the address of the server that it concerns, and
/// the system's reason, unlike glimmer_outcome_text. Empty if nothing has failed yet. It ends with a
/// zero, and stays until something else fails in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_message() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
