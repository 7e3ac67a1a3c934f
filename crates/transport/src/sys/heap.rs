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

/// Has allocations of this many bytes and more mapped from the kernel one by one, and unmapped when
/// they are freed.
///
/// By default, the allocator raises the size from which on it does that to that of the largest
/// mapping that was freed. Large buffers then lie among small allocations that live longer, and a
/// client that has buffers of 1 MB made and freed leaves holes that no such buffer fits into. Call
/// this before there are threads.
pub fn map_allocations_from(bytes: usize) {
    #[cfg(target_env = "gnu")]
    if let Ok(bytes) = i32::try_from(bytes) {
        // SAFETY: it takes no pointers, and changes where later allocations come from.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = bytes;
}
