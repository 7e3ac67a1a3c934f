//! The heap, as the kernel sees it.

#![allow(unsafe_code)]

/// Gives memory that was freed back to the kernel, whole pages of it, wherever it lies.
///
/// The allocator keeps what was freed for what is allocated next, and after a burst of large
/// buffers that can be a lot. Takes a moment, so this is for once in a while.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and the allocator may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
