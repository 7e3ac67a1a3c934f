//! The machine's own limit: random reads of cache lines per second. A store's throughput is shown
//! relative to it.

use std::{
    fs, io,
    ptr::{self, NonNull},
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{RngCore, SeedableRng, rngs::SmallRng};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::machine;

/// Default size of a region in bytes: several times the size of any cache.
pub const REGION_BYTES: usize = 2 << 30;

/// Reads in flight at a time, as many as a store's pipeline has: what a store is compared with.
pub const AHEAD: usize = 32;
/// Reads in flight at a time, more than any processor follows at once: the memory's own limit.
pub const FAR_AHEAD: usize = 128;
const LINE_BYTES: usize = 64;
const HUGE_BYTES: usize = 2 << 20;
/// Reads between two reads of the clock.
const BLOCK: usize = 1 << 16;

/// Memory to read from, on transparent huge pages if the machine provides them.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is accessed only through atomics.
unsafe impl Sync for Region {}
// SAFETY: a mapping is not tied to the thread that created it.
unsafe impl Send for Region {}

impl Region {
    /// Maps and touches a region of `bytes`, which is a power of two and at least one huge page.
    pub fn new(bytes: usize) -> io::Result<Region> {
        assert!(
            bytes.is_power_of_two() && bytes >= HUGE_BYTES,
            "a power of two of huge pages"
        );
        // SAFETY: a new anonymous mapping overlaps nothing.
        let start = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        let region = Region { start, bytes };
        // SAFETY: the mapping is ours, and the advice does not change its contents. If the kernel
        // refuses, the pages stay small, and the report says so.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        for line in 0..region.lines() {
            region.line(line).store(line as u64, Ordering::Relaxed);
        }
        Ok(region)
    }

    fn lines(&self) -> usize {
        self.bytes / LINE_BYTES
    }

    #[inline]
    fn line(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.lines());
        // SAFETY: the index is below the number of lines (callers mask it), and a line is aligned
        // for a word.
        unsafe {
            &*self
                .start
                .as_ptr()
                .add(index * LINE_BYTES)
                .cast::<AtomicU64>()
        }
    }

    /// Bytes of the region that are on transparent huge pages, as the kernel reports them.
    pub fn huge_bytes(&self) -> io::Result<u64> {
        let (start, end) = (
            self.start.as_ptr() as usize,
            self.start.as_ptr() as usize + self.bytes,
        );
        let mut inside = false;
        let mut kib = 0;
        for line in fs::read_to_string("/proc/self/smaps")?.lines() {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            if let Some((from, to)) = range
                && let (Ok(from), Ok(to)) = (
                    usize::from_str_radix(from, 16),
                    usize::from_str_radix(to, 16),
                )
            {
                inside = from < end && start < to;
            } else if inside && let Some(huge) = line.strip_prefix("AnonHugePages:") {
                kib += huge
                    .trim()
                    .trim_end_matches(" kB")
                    .parse::<u64>()
                    .unwrap_or(0);
            }
        }
        Ok(kib * 1024)
    }

    /// Random reads of 64-byte lines per second, `IN_FLIGHT` at a time, for about `duration`: the
    /// sum over one thread on each of `cores`. The figure depends on the number in flight, so
    /// reports name it: [`AHEAD`] or [`FAR_AHEAD`].
    pub fn random_reads_per_s<const IN_FLIGHT: usize>(
        &self,
        cores: &[usize],
        duration: Duration,
    ) -> io::Result<f64> {
        let start = Barrier::new(cores.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = cores
                .iter()
                .map(|&core| {
                    let start = &start;
                    scope.spawn(move || {
                        let pinned = machine::pin([core]);
                        start.wait();
                        let begin = Instant::now();
                        let reads = self.read_until::<IN_FLIGHT>(begin + duration, core as u64);
                        pinned.map(|()| reads as f64 / begin.elapsed().as_secs_f64())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a reader does not panic"))
                .sum()
        })
    }

    fn read_until<const IN_FLIGHT: usize>(&self, end: Instant, seed: u64) -> u64 {
        const {
            assert!(
                BLOCK.is_multiple_of(IN_FLIGHT),
                "a block is read to its end"
            )
        };
        let mask = self.lines() - 1;
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut ahead = [0; IN_FLIGHT];
        let (mut sum, mut reads) = (0u64, 0u64);
        loop {
            for _ in 0..BLOCK / IN_FLIGHT {
                for slot in &mut ahead {
                    sum = sum.wrapping_add(self.line(*slot).load(Ordering::Relaxed));
                    *slot = rng.next_u64() as usize & mask;
                    prefetch(ptr::from_ref(self.line(*slot)));
                }
            }
            reads += BLOCK as u64;
            if Instant::now() >= end {
                break;
            }
        }
        std::hint::black_box(sum);
        reads
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch(line: *const AtomicU64) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn prefetch(line: *const AtomicU64) {
    // SAFETY: a prefetch never faults and changes no register.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{line}]",
            line = in(reg) line,
            options(nostack, preserves_flags)
        )
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn prefetch(_line: *const AtomicU64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_what_was_written_and_reads_are_counted() {
        let region = Region::new(8 << 20).unwrap();
        assert!((0..region.lines()).all(|i| region.line(i).load(Ordering::Relaxed) == i as u64));
        assert!(region.huge_bytes().unwrap() <= 8 << 20);
        let reads = region.read_until::<AHEAD>(Instant::now() + Duration::from_millis(5), 1);
        assert!(reads > 0 && reads.is_multiple_of(BLOCK as u64));
        assert!(
            region
                .random_reads_per_s::<FAR_AHEAD>(&[0], Duration::from_millis(5))
                .unwrap()
                > 0.0
        );
    }
}
