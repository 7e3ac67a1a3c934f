//! Memory mapped from the kernel: zeroed slices on the largest pages to be had.

use super::{HUGE_PAGE, PagePolicy, ZeroAtomics, prefetch_line};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

const PAGE: usize = 4 << 10;

/// Address space that is ours until dropped. Invariant (R): `[base, base + len)` was reserved by
/// one `mmap`, everything mapped into it later was mapped over that reservation, and nothing else
/// unmaps it, unless it is `holed`.
struct Reservation {
    raw: *mut c_void,
    raw_len: usize,
    base: *mut u8,
    len: usize,
    /// Whether the kernel has refused to map something over the reservation. It may have removed
    /// what was there before it refused, and another thread's memory may lie in the hole by
    /// now: such a reservation is left as it is, which costs address space and nothing else.
    holed: bool,
}

impl Reservation {
    fn new(len: usize) -> io::Result<Reservation> {
        let raw_len = len + HUGE_PAGE;
        // SAFETY: a fresh anonymous reservation without access rights; no existing mapping is
        // touched.
        let raw = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                raw_len,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let skip = raw.cast::<u8>().align_offset(HUGE_PAGE);
        Ok(Reservation {
            raw,
            raw_len,
            base: raw.cast::<u8>().wrapping_add(skip),
            len,
            holed: false,
        })
    }

    fn place(&self, at: usize, len: usize) -> *mut c_void {
        assert!(at + len <= self.len);
        self.base.wrapping_add(at).cast()
    }

    /// Maps private zeroed memory over `[at, at + len)`.
    fn map_anonymous(&mut self, at: usize, len: usize, policy: PagePolicy) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let place = self.place(at, len);
        let huge = if policy == PagePolicy::Hugetlb {
            MapFlags::HUGETLB
        } else {
            MapFlags::empty()
        };
        // SAFETY: replaces a part of our own reservation (R) into which there is no reference yet.
        let mapped = unsafe {
            mmap_anonymous(
                place,
                len,
                read_write(),
                MapFlags::PRIVATE | MapFlags::FIXED | huge,
            )
        };
        self.holed |= mapped.is_err();
        mapped?;
        match policy {
            // A kernel without transparent huge pages answers with an error; small pages serve as
            // well. SAFETY: advice about memory that was mapped just now.
            PagePolicy::Transparent => drop(unsafe { madvise(place, len, Advice::LinuxHugepage) }),
            // SAFETY: as above.
            PagePolicy::Small => drop(unsafe { madvise(place, len, Advice::LinuxNoHugepage) }),
            PagePolicy::Hugetlb => {}
        }
        Ok(())
    }

    /// Asks the kernel to take this memory's pages from one NUMA node. A kernel that cannot is no
    /// error: the memory works, only farther away.
    fn prefer_node(&self, node: Option<u32>) {
        let Some(node) = node.filter(|&n| n < 64) else {
            return;
        };
        let mask: u64 = 1 << node;
        // SAFETY: `mask` outlives the call and has the 64 bits that `maxnode` names; the range is
        // ours (R).
        unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.base,
                self.len,
                libc::MPOL_PREFERRED,
                &raw const mask,
                65usize,
                0usize,
            );
        }
    }

    /// Takes the pages now. The kernel counts reserved huge pages against the limits of a cgroup
    /// when they are touched, and raises SIGBUS if there are none: here that is an error.
    fn populate(&self) -> io::Result<()> {
        // SAFETY: the memory is ours (R), and the call changes no byte of it.
        let populated = unsafe { madvise(self.base.cast(), self.len, Advice::LinuxPopulateWrite) };
        match populated {
            // Linux before 5.14 does not know the advice. It takes the pages when they are touched.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => {
                let error = io::Error::from(error);
                let story = format!("the kernel gives no huge page when one is touched ({error})");
                Err(io::Error::other(story))
            }
        }
    }

    fn addresses(&self) -> Range<usize> {
        self.base.addr()..self.base.addr() + self.len
    }
}

// SAFETY: it is an address range and who owns it; what lies there is its users' affair.
unsafe impl Send for Reservation {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for Reservation {}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.holed {
            return;
        }
        // SAFETY: (R); the owner of the reservation is being dropped, so no reference into it is
        // left.
        let _ = unsafe { munmap(self.raw, self.raw_len) };
    }
}

/// Bytes of the pages that are asked for.
fn page_bytes(policy: PagePolicy) -> usize {
    match policy {
        PagePolicy::Hugetlb => HUGE_PAGE,
        PagePolicy::Transparent | PagePolicy::Small => PAGE,
    }
}

fn read_write() -> ProtFlags {
    ProtFlags::READ | ProtFlags::WRITE
}

/// A slice of zeroed atomics on pages of the kind that is asked for. A clone is the same memory.
pub struct ZeroedSlice<T> {
    memory: Arc<Reservation>,
    /// Where the memory begins, so that no access goes through the `Arc` for it.
    first: *const T,
    len: usize,
}

impl<T> Clone for ZeroedSlice<T> {
    fn clone(&self) -> Self {
        ZeroedSlice {
            memory: self.memory.clone(),
            ..*self
        }
    }
}

impl<T: ZeroAtomics> ZeroedSlice<T> {
    /// `len` zero values. Reserved huge pages are taken at once, others when they are touched.
    pub fn new(len: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        assert!(align_of::<T>() <= HUGE_PAGE);
        let unit = page_bytes(policy);
        let bytes = (len * size_of::<T>()).next_multiple_of(unit).max(unit);
        Self::map(len, bytes, policy, node)
    }

    /// As many zero values as whole pages of the kind that is used hold, and `len` at most.
    /// Reserved huge pages are taken at once, others when they are touched.
    pub fn within(len: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        let unit = page_bytes(policy);
        let bytes = len * size_of::<T>() / unit * unit;
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Self::map(bytes / size_of::<T>(), bytes, policy, node)
    }

    fn map(len: usize, bytes: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        let mut memory = Reservation::new(bytes)?;
        memory.map_anonymous(0, bytes, policy)?;
        memory.prefer_node(node);
        if policy == PagePolicy::Hugetlb {
            memory.populate()?;
        }
        Ok(ZeroedSlice {
            first: memory.base.cast(),
            memory: Arc::new(memory),
            len,
        })
    }

    /// Where the memory lies, for [`PageReport::of`](super::PageReport::of).
    pub fn addresses(&self) -> Range<usize> {
        self.memory.addresses()
    }

    /// Fetches the cache line of a value without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        prefetch_line(self.first.wrapping_add(at));
    }
}

impl<T: ZeroAtomics> core::ops::Deref for ZeroedSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds at least `len` values of T, aligned to a huge page, zeroed by
        // the kernel, which `ZeroAtomics` says is valid and may be shared; it lives as long
        // as `self`, which holds a part of it.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}

// SAFETY: the memory is owned, and reached only as shared atomics (`ZeroAtomics` requires Sync and
// Send).
unsafe impl<T: ZeroAtomics> Send for ZeroedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: ZeroAtomics> Sync for ZeroedSlice<T> {}

#[cfg(test)]
mod tests {
    use super::super::PageReport;
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn words(len: usize, policy: PagePolicy, node: Option<u32>) -> ZeroedSlice<AtomicU64> {
        ZeroedSlice::new(len, policy, node).unwrap()
    }

    #[test]
    fn a_refused_mapping_takes_nobody_elses_memory_along() {
        // No machine has 4 TiB of huge pages reserved.
        let len = 4 << 40;
        let mut memory = Reservation::new(len).unwrap();
        assert!(memory.map_anonymous(0, len, PagePolicy::Hugetlb).is_err());
        let place = memory.place(0, PAGE);
        // SAFETY: it takes only addresses that nothing is mapped at.
        let take_hole = || unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
            mmap_anonymous(place, PAGE, read_write(), flags)
        };
        // Another thread's allocation, as it were, if the kernel has left a hole.
        if take_hole().is_err() {
            return;
        }
        drop(memory);
        assert!(take_hole().is_err(), "the other's memory was unmapped");
        // SAFETY: mapped above, and there is no reference to it.
        unsafe { munmap(place, PAGE) }.unwrap();
    }

    #[test]
    fn untouched_memory_is_not_resident_and_touched_memory_is_reported() {
        let words = words(32 << 17, PagePolicy::default(), Some(0));
        assert_eq!(PageReport::of(&[words.addresses()]), PageReport::default());
        words[16 << 17].store(1, Relaxed);
        let report = PageReport::of(&[words.addresses()]);
        assert!(
            report.hugetlb_bytes + report.transparent_huge_bytes + report.small_bytes >= 4096,
            "{report:?}"
        );
    }

    #[test]
    fn small_pages_when_asked_for() {
        let words = words(32 << 17, PagePolicy::Small, None);
        for at in (0..32 << 17).step_by(512) {
            words[at].store(1, Relaxed);
        }
        assert_eq!(
            PageReport::of(&[words.addresses()]),
            PageReport {
                small_bytes: 32 << 20,
                ..Default::default()
            }
        );
    }
}
