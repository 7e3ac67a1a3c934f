//! Memory mapped from the kernel: zeroed slices on the largest pages to be had.

use super::reservation::{PAGE, Reservation};
use super::{HUGE_PAGE, PagePolicy, PagesAhead, ZeroAtomics, prefetch_line};
use glimmer_base::sync::AtomicU64;
use rustix::mm::{Advice, MapFlags};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the pages that are asked for.
fn page_bytes(policy: PagePolicy) -> usize {
    match policy {
        PagePolicy::Hugetlb => HUGE_PAGE,
        PagePolicy::Transparent | PagePolicy::Small => PAGE,
    }
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
        self.memory.advise(whole, Advice::LinuxHugepage);
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
        self.memory.advise(pages.clone(), gone);
        let huge = pages.start / HUGE_PAGE * HUGE_PAGE..pages.end.next_multiple_of(HUGE_PAGE);
        let end = huge.end.min(self.memory.len);
        self.memory.advise(huge.start..end, Advice::LinuxNoHugepage);
    }

    fn bytes_of(&self, values: Range<usize>) -> Range<usize> {
        assert!(values.start <= values.end && values.end <= self.len);
        values.start * size_of::<T>()..values.end * size_of::<T>()
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

impl ZeroedSlice<AtomicU64> {
    /// Has a thread take the pages of these words of a [sparse](Self::sparse) slice before a worker
    /// touches them, on huge pages as far as the words fill them.
    pub fn take_ahead(&self, words: Range<usize>, by: &PagesAhead) {
        by.take(self.memory.clone(), words);
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
    fn what_is_taken_ahead_is_resident_and_zero() {
        const MIB: usize = 1 << 17;
        let words = ZeroedSlice::<AtomicU64>::sparse(64 * MIB, PagePolicy::default(), None);
        let words = words.unwrap();
        words[2 * MIB].store(7, Relaxed);
        let ahead = PagesAhead::start(|| ()).unwrap();
        words.take_ahead(2 * MIB..6 * MIB, &ahead);
        let resident = || {
            let report = PageReport::of(&[words.addresses()]);
            report.transparent_huge_bytes + report.small_bytes
        };
        while resident() < 4 << 20 {
            std::thread::yield_now();
        }
        assert_eq!(resident(), 4 << 20, "nothing else is");
        let held = words.iter().map(|word| word.load(Relaxed));
        assert_eq!(held.sum::<u64>(), 7, "no value changes");
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
