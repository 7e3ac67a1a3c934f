//! Where log and index live: page-aligned memory from the kernel, on the largest pages it will
//! give.
//!
//! Under loom (which has its own atomics) and Miri (which has no `mmap`) a boxed twin takes the
//! mapping's place.

mod commons;
mod file;
mod pages;
mod pool;
mod record;
mod words;

#[cfg(not(any(loom, miri)))]
mod ahead;
#[cfg(not(any(loom, miri)))]
mod mapped;
#[cfg(not(any(loom, miri)))]
mod reservation;
#[cfg(not(any(loom, miri)))]
pub use ahead::PagesAhead;
#[cfg(not(any(loom, miri)))]
pub use mapped::ZeroedSlice;

#[cfg(any(loom, miri))]
mod boxed;
#[cfg(any(loom, miri))]
pub use boxed::{PagesAhead, ZeroedSlice};

pub use commons::Commons;
pub use file::{FileError, FileState, InFile, Kept, LAYOUT_VERSION, LockedFile, MemoryFile};
pub use pages::{PagePolicy, PageReport};
pub use pool::{LINE_WORDS, Pool};
pub(crate) use record::sum_of_many;
pub use record::{Record, Slide};
pub use words::Words;

use glimmer_base::sync::AtomicU64;

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Types of which a run of zero bytes is a valid value that may be changed through shared
/// references.
///
/// # Safety
///
/// Every field is an atomic integer or an array of them, so that all-zero bytes are valid and there
/// is no padding that matters.
pub unsafe trait ZeroAtomics: Sync + Send {
    /// The value that zero bytes stand for.
    fn zero() -> Self;
}

// SAFETY: an atomic integer.
unsafe impl ZeroAtomics for AtomicU64 {
    fn zero() -> AtomicU64 {
        AtomicU64::new(0)
    }
}

/// Fetches the cache line at `at` into the first level, without waiting for it.
#[inline(always)]
pub fn prefetch_line<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: a prefetch is a hint; it never faults, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(any(loom, miri))))]
    // SAFETY: `prfm` is a hint; it never faults, whatever the address.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) at,
            options(nostack, readonly, preserves_flags)
        );
    }
    #[cfg(any(loom, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}
