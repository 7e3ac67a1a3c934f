//! Addresses of the process, and what the kernel maps there.

use super::{HUGE_PAGE, PagePolicy};
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

/// Bytes of a small page.
pub(super) const PAGE: usize = 4 << 10;

/// Address space that is ours until dropped. Invariant (R): `[base, base + len)` was reserved by
/// one `mmap`, everything mapped into it later was mapped over that reservation, and nothing else
/// unmaps it, unless it is `holed`.
pub(super) struct Reservation {
    raw: *mut c_void,
    raw_len: usize,
    pub base: *mut u8,
    pub len: usize,
    /// Whether the kernel has refused to map something over the reservation. It may have removed
    /// what was there before it refused, and another thread's memory may lie in the hole by
    /// now: such a reservation is left as it is, which costs address space and nothing else.
    holed: bool,
    /// Whether what is [granted](super::ZeroedSlice::grant) may lie on huge pages.
    pub grants_huge: bool,
    /// Whether the pages are a file's, which has them until it is told otherwise.
    pub is_file: bool,
}

impl Reservation {
    pub fn new(len: usize) -> io::Result<Reservation> {
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
            grants_huge: false,
            is_file: false,
        })
    }

    fn place(&self, at: usize, len: usize) -> *mut c_void {
        assert!(at + len <= self.len);
        self.base.wrapping_add(at).cast()
    }

    /// Maps private zeroed memory over `[at, at + len)`.
    pub fn map_anonymous(&mut self, at: usize, len: usize, policy: PagePolicy) -> io::Result<()> {
        self.map_with(at, len, policy, MapFlags::empty())
    }

    pub fn map_with(
        &mut self,
        at: usize,
        len: usize,
        policy: PagePolicy,
        flags: MapFlags,
    ) -> io::Result<()> {
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
                MapFlags::PRIVATE | MapFlags::FIXED | huge | flags,
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

    /// Maps a part of a file over all of it.
    pub fn map_file(&mut self, file: &File, from: u64) -> io::Result<()> {
        self.is_file = true;
        let place = self.place(0, self.len);
        // SAFETY: replaces our own reservation (R), into which there is no reference yet. Another
        // process that changes the file changes what is reached as atomics alone.
        let mapped = unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
            mmap(place, self.len, read_write(), flags, file, from)
        };
        self.holed |= mapped.is_err();
        mapped?;
        Ok(())
    }

    /// Asks the kernel to take this memory's pages from one NUMA node. A kernel that cannot is no
    /// error: the memory works, only farther away.
    pub fn prefer_node(&self, node: Option<u32>) {
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
    pub fn populate(&self) -> io::Result<()> {
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

    /// Takes the pages of these words from the kernel, on huge pages where they may lie on them. No
    /// word changes.
    ///
    /// Each page is touched. `MADV_POPULATE_WRITE` would lock the addresses of the process while
    /// the kernel clears the pages, and a thread whose allocator asks for memory would wait.
    pub fn touch(&self, words: Range<usize>) {
        let bytes = words.start * 8..words.end * 8;
        if self.grants_huge {
            self.advise(bytes.clone(), Advice::LinuxHugepage);
        }
        for at in bytes.step_by(PAGE) {
            let word = self.place(at, size_of::<AtomicU64>()).cast();
            // SAFETY: the memory is ours (R), mapped for reading and writing, and aligned. It is
            // reached as atomics of this kind alone, as the caller says by naming words.
            let word = unsafe { AtomicU64::from_ptr(word) };
            // A write that the compiler keeps. A word that is not zero has its page.
            let _ = word.compare_exchange(0, 0, Relaxed, Relaxed);
        }
    }

    /// Advice that a kernel may refuse: the memory works, only on other pages.
    pub fn advise(&self, bytes: Range<usize>, advice: Advice) {
        if bytes.start >= bytes.end {
            return;
        }
        let place = self.place(bytes.start, bytes.end - bytes.start);
        // SAFETY: the memory is ours (R). It is reached as atomics alone, whose values may change
        // at any time to any other, and zero is one (`ZeroAtomics`).
        let _ = unsafe { madvise(place, bytes.end - bytes.start, advice) };
    }

    pub fn addresses(&self) -> Range<usize> {
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

fn read_write() -> ProtFlags {
    ProtFlags::READ | ProtFlags::WRITE
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
