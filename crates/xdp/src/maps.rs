//! The program's maps as the accelerator's memory: the kernel and this process access the same
//! pages.

use crate::error::Error;
use glimmer_base::sync::AtomicU64;
use glimmer_hotset::layout::{Control, Slot, TALLIES};
use glimmer_hotset::{Mapped, Memory};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;

/// How many entries the maps have that are counted by slots and cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    pub slots: usize,
    pub cpus: usize,
}

impl Entries {
    /// The entries for this number of slots on this machine. The kernel numbers its cores, also
    /// those that may come later, below `cpus`.
    pub fn of(slots: usize) -> Entries {
        let possible = fs::read_to_string("/sys/devices/system/cpu/possible");
        let highest = possible.ok().and_then(|text| highest_cpu(&text));
        let cpus = highest.unwrap_or_else(|| {
            // SAFETY: it takes no pointer.
            let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
            usize::try_from(configured - 1).unwrap_or(0)
        });
        Entries {
            slots,
            cpus: cpus + 1,
        }
    }

    fn bytes(self) -> [usize; 4] {
        let Entries { slots, cpus } = self;
        let counts = slots * cpus * size_of::<AtomicU64>();
        let tallies = cpus * TALLIES * size_of::<AtomicU64>();
        let slots = slots * size_of::<Slot>();
        [slots, size_of::<Control>(), counts, tallies].map(in_pages)
    }
}

/// The highest number in a list of cores such as `0-3,8`.
fn highest_cpu(text: &str) -> Option<usize> {
    let numbers = text.trim().split([',', '-']);
    numbers.filter_map(|number| number.parse().ok()).max()
}

fn in_pages(bytes: usize) -> usize {
    // SAFETY: it takes no pointer.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.next_multiple_of(page_bytes as usize)
}

/// Bytes of memory that the program's maps take with this number of slots, which the kernel
/// allocates when the program is loaded: slots, control block, counts and tallies. Directory and
/// policy in this process come on top.
pub fn memory_bytes(slots: usize) -> usize {
    Entries::of(slots).bytes().into_iter().sum()
}

/// A map's pages in this process.
#[derive(Debug)]
struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nothing but the address and the length is in it, and unmapping works from every thread.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(map: BorrowedFd<'_>, bytes: usize) -> Result<Pages, Error> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                kind,
                map.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::Io("mapping a map", io::Error::last_os_error()));
        }
        let start = NonNull::new(start.cast()).expect("mmap returns no null pointer");
        Ok(Pages { start, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped by `map`, and `Memory` has no pointer to them any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps slots, control block, counts and tallies, in this order, and initialises them.
///
/// # Errors
///
/// If a map cannot be mapped.
pub(crate) fn memory(
    entries: Entries,
    seed: u64,
    maps: [BorrowedFd<'_>; 4],
) -> Result<Memory, Error> {
    let mut pages = Vec::with_capacity(maps.len());
    for (map, bytes) in maps.into_iter().zip(entries.bytes()) {
        pages.push(Pages::map(map, bytes)?);
    }
    let start = |place: usize| pages[place].start;
    let words = |place: usize, count| NonNull::slice_from_raw_parts(start(place).cast(), count);
    let Entries { slots, cpus } = entries;
    let mapped = Mapped {
        control: start(1).cast(),
        slots: NonNull::slice_from_raw_parts(start(0).cast(), slots),
        counts: words(2, slots * cpus),
        tallies: words(3, cpus * TALLIES),
    };
    // SAFETY: the pages are zero, as those of every new map, and as long as the types. They stay
    // until their owner is dropped. The program accesses them by whole words, as the layout says.
    Ok(unsafe { Memory::mapped(mapped, seed, Box::new(pages)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_core_counts() {
        assert_eq!(highest_cpu("0-1\n"), Some(1));
        assert_eq!(highest_cpu("0\n"), Some(0));
        assert_eq!(highest_cpu("0-3,8-11\n"), Some(11));
        assert_eq!(highest_cpu(""), None);
    }

    #[test]
    fn the_maps_take_the_slots_and_little_more() {
        let slots = 1 << 10;
        let bytes = memory_bytes(slots);
        assert!(bytes >= slots * (size_of::<Slot>() + 8));
        assert!(
            bytes <= slots * size_of::<Slot>() + Entries::of(slots).cpus * slots * 16 + (1 << 16)
        );
    }
}
