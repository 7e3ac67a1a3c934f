//! Memory mapped from the kernel: zeroed slices on the largest pages to be had.

use super::{HUGE_PAGE, PagePolicy, ZeroAtomics, prefetch_line};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fs::File;
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
    /// Whether what is [granted](ZeroedSlice::grant) may lie on huge pages.
    grants_huge: bool,
    /// Whether the pages are a file's, which has them until it is told otherwise.
    is_file: bool,
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
            grants_huge: false,
            is_file: false,
        })
    }

    fn place(&self, at: usize, len: usize) -> *mut c_void {
        assert!(at + len <= self.len);
        self.base.wrapping_add(at).cast()
    }

    /// Maps private zeroed memory over `[at, at + len)`.
    fn map_anonymous(&mut self, at: usize, len: usize, policy: PagePolicy) -> io::Result<()> {
        self.map_with(at, len, policy, MapFlags::empty())
    }

    fn map_with(
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
    fn map_file(&mut self, file: &File, from: u64) -> io::Result<()> {
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

    /// `len` zero values, of which few may ever be touched: they do not count as memory that the
    /// process has asked for. They lie on small pages where they are not [granted](Self::grant).
    ///
    /// # Panics
    ///
    /// If the policy is reserved huge pages, which are all taken at once.
    pub fn sparse(len: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        assert!(policy != PagePolicy::Hugetlb);
        let bytes = (len * size_of::<T>()).next_multiple_of(PAGE).max(PAGE);
        let mut memory = Reservation::new(bytes)?;
        memory.map_with(0, bytes, PagePolicy::Small, MapFlags::NORESERVE)?;
        memory.grants_huge = policy == PagePolicy::Transparent;
        memory.prefer_node(node);
        Ok(ZeroedSlice {
            first: memory.base.cast(),
            memory: Arc::new(memory),
            len,
        })
    }

    /// `len` values in a file, from a byte on that is a multiple of a huge page: what the file
    /// holds there, or zero. The file has as many bytes, up to the next such multiple. Few values
    /// may ever be touched, as in a [sparse](Self::sparse) slice.
    pub fn in_file(len: usize, file: &File, from: u64, policy: PagePolicy) -> io::Result<Self> {
        assert!(from.is_multiple_of(HUGE_PAGE as u64));
        let bytes = (len * size_of::<T>()).next_multiple_of(HUGE_PAGE);
        let mut memory = Reservation::new(bytes)?;
        memory.map_file(file, from)?;
        memory.grants_huge = policy == PagePolicy::Transparent;
        Ok(ZeroedSlice {
            first: memory.base.cast(),
            memory: Arc::new(memory),
            len,
        })
    }

    /// Has the pages lie on one NUMA node, and takes them now if they are reserved ones.
    pub fn settle(&self, policy: PagePolicy, node: Option<u32>) -> io::Result<()> {
        self.memory.prefer_node(node);
        match policy {
            PagePolicy::Hugetlb => self.memory.populate(),
            _ => Ok(()),
        }
    }

    /// Lets these values of a [sparse](Self::sparse) slice lie on huge pages, as far as they fill
    /// them. To the kernel a huge page is in use as a whole when one byte of it is.
    pub fn grant(&self, values: Range<usize>) {
        let bytes = self.bytes_of(values);
        if !self.memory.grants_huge {
            return;
        }
        let whole = bytes.start.next_multiple_of(HUGE_PAGE)..bytes.end / HUGE_PAGE * HUGE_PAGE;
        self.advise(whole, Advice::LinuxHugepage);
    }

    /// Gives the kernel back the pages that hold none but these values of a [sparse](Self::sparse)
    /// slice. They are zero from then on.
    pub fn withdraw(&self, values: Range<usize>) {
        let bytes = self.bytes_of(values);
        let pages = bytes.start.next_multiple_of(PAGE)..bytes.end / PAGE * PAGE;
        let gone = match self.memory.is_file {
            true => Advice::LinuxRemove,
            false => Advice::LinuxDontNeed,
        };
        self.advise(pages.clone(), gone);
        let huge = pages.start / HUGE_PAGE * HUGE_PAGE..pages.end.next_multiple_of(HUGE_PAGE);
        let end = huge.end.min(self.memory.len);
        self.advise(huge.start..end, Advice::LinuxNoHugepage);
    }

    fn bytes_of(&self, values: Range<usize>) -> Range<usize> {
        assert!(values.start <= values.end && values.end <= self.len);
        values.start * size_of::<T>()..values.end * size_of::<T>()
    }

    /// Advice that a kernel may refuse: the memory works, only on other pages.
    fn advise(&self, bytes: Range<usize>, advice: Advice) {
        if bytes.start >= bytes.end {
            return;
        }
        let place = self.memory.place(bytes.start, bytes.end - bytes.start);
        // SAFETY: the memory is ours (R). It is reached as atomics alone, whose values may change
        // at any time to any other, and zero is one (`ZeroAtomics`).
        let _ = unsafe { madvise(place, bytes.end - bytes.start, advice) };
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
    fn what_is_withdrawn_is_zero_and_not_resident() {
        const MIB: usize = 1 << 17;
        let words = ZeroedSlice::<AtomicU64>::sparse(256 * MIB, PagePolicy::default(), None);
        let words = words.unwrap();
        words.grant(0..5 * MIB);
        for at in (0..5 * MIB).step_by(512) {
            words[at].store(1, Relaxed);
        }
        let resident = |words: &ZeroedSlice<AtomicU64>| {
            let report = PageReport::of(&[words.addresses()]);
            report.transparent_huge_bytes + report.small_bytes
        };
        assert_eq!(resident(&words), 5 << 20, "the fifth MiB is no huge page");
        words.withdraw(3 * MIB..5 * MIB);
        assert_eq!(resident(&words), 3 << 20);
        assert_eq!(words[3 * MIB - 512].load(Relaxed), 1);
        assert_eq!(words[3 * MIB].load(Relaxed), 0);
        words[3 * MIB].store(1, Relaxed);
        assert!(resident(&words) <= (3 << 20) + PAGE as u64);
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
