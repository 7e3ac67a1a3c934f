//! The heap, as the kernel sees it.

#![allow(unsafe_code)]

/// Returns freed memory to the kernel, in whole pages, wherever it lies.
///
/// The allocator keeps freed memory for later allocations, which can be much memory after a burst
/// of large buffers. This takes some time, so it should be called rarely.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and the allocator may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
