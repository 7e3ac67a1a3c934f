//! Huge pages for tables by others.
//!
//! Our tables ask for huge pages when they map their memory. Other tables get memory from `malloc`,
//! which does not ask by default. On most machines they would lie on 4 KiB pages and pay a TLB miss
//! for almost every operation. That says nothing about a table, so this module asks the kernel to
//! move their memory to huge pages as well.

use std::{fs, io, ops::Range};

/// Size of the smallest mapping that can contain a huge page.
const HUGE_BYTES: usize = 2 << 20;
/// Moves existing memory to huge pages at once (Linux 6.1).
const MADV_COLLAPSE: libc::c_int = 25;

/// The pages for memory from `malloc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapPages {
    /// Huge pages, as far as the kernel has them.
    Huge,
    /// The pages that `malloc` happened to get.
    Given,
}

impl HeapPages {
    /// Moves the memory that this process has got from `malloc` so far to these pages. If the
    /// kernel has no huge pages or refuses, nothing changes, and the report shows it.
    pub fn provide(self) -> io::Result<()> {
        if self == HeapPages::Given || are_switched_off() {
            return Ok(());
        }
        for range in heap(&fs::read_to_string("/proc/self/smaps")?) {
            for advice in [libc::MADV_HUGEPAGE, MADV_COLLAPSE] {
                // SAFETY: neither advice changes the contents or the address of the memory. The
                // kernel refuses a mapping that no longer exists.
                unsafe { libc::madvise(range.start as *mut _, range.len(), advice) };
            }
        }
        Ok(())
    }
}

/// Whether no process gets huge pages on request, so that our tables have none either. The kernel
/// would still move other tables to them.
fn are_switched_off() -> bool {
    let switch = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    switch.is_ok_and(|switch| switch.contains("[never]"))
}

/// The mappings that `malloc` may have made, except those that must stay on small pages.
fn heap(smaps: &str) -> Vec<Range<usize>> {
    let mut heap = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let stays_small = flags.split_whitespace().any(|flag| flag == "nh");
            heap.extend(current.take().filter(|_| !stays_small));
        } else if let Some(range) = address_range(line) {
            let mut fields = line.split_whitespace().skip(1);
            let is_private = fields.next() == Some("rw-p");
            let is_anonymous = fields.nth(2) == Some("0")
                && fields
                    .next()
                    .is_none_or(|name| name == "[heap]" || name.starts_with("[anon:"));
            current = Some(range).filter(|it| is_private && is_anonymous && it.len() >= HUGE_BYTES);
        }
    }
    heap
}

/// The address range at the start of a mapping's first line.
fn address_range(line: &str) -> Option<Range<usize>> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(from)?..address(to)?)
}

/// Resident memory of this process.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// All of it, in bytes.
    pub bytes: u64,
    /// The part on huge pages, in bytes.
    pub huge_bytes: u64,
}

impl Resident {
    /// The current values.
    pub fn now() -> io::Result<Resident> {
        Ok(Resident::told_by(&fs::read_to_string(
            "/proc/self/smaps_rollup",
        )?))
    }

    fn told_by(rollup: &str) -> Resident {
        let kib = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
            number.unwrap_or(0u64) * 1024
        };
        // Reserved huge pages do not count as resident memory in the kernel's terms.
        let reserved = kib("Private_Hugetlb:");
        Resident {
            bytes: kib("Rss:") + reserved,
            huge_bytes: kib("AnonHugePages:") + reserved,
        }
    }

    /// The increase since an earlier reading.
    pub fn since(self, before: Resident) -> Resident {
        Resident {
            bytes: self.bytes.saturating_sub(before.bytes),
            huge_bytes: self.huge_bytes.saturating_sub(before.huge_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000800000 rw-p 00000000 00:00 0 
Rss:                8192 kB
VmFlags: rd wr mr mw me ac sd 
7f0010000000-7f0010800000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac sd nh 
7f0020000000-7f0020800000 rw-p 00000000 08:01 1234                       /usr/lib/a.so
VmFlags: rd wr mr mw me ac sd 
7f0030000000-7f0030001000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac sd 
7f0040000000-7f0040800000 ---p 00000000 00:00 0 
VmFlags: mr mw me sd 
55d000000000-55d000800000 rw-p 00000000 00:00 0                          [heap]
VmFlags: rd wr mr mw me ac sd hg 
7ffd00000000-7ffd00800000 rw-p 00000000 00:00 0                          [stack]
VmFlags: rd wr mr mw me gd ac 
";

    #[test]
    fn the_heap_is_what_is_private_anonymous_large_and_not_to_stay_small() {
        let [first, second] = heap(SMAPS).try_into().unwrap();
        assert_eq!(first, 0x7f00_0000_0000..0x7f00_0080_0000);
        assert_eq!(second, 0x55d0_0000_0000..0x55d0_0080_0000);
    }

    #[test]
    fn reserved_pages_count_as_resident_and_as_huge() {
        let before = Resident::told_by("Rss:  100 kB\nAnonHugePages:  40 kB\n");
        let rollup = "Rss:  300 kB\nAnonHugePages:  50 kB\nPrivate_Hugetlb:  2048 kB\n";
        let since = Resident::told_by(rollup).since(before);
        assert_eq!((since.bytes, since.huge_bytes), (2248 << 10, 2058 << 10));
    }

    #[test]
    fn what_lies_on_other_pages_is_what_was_there() {
        let words: Vec<usize> = (0..(32 << 20) / size_of::<usize>()).collect();
        HeapPages::Given.provide().unwrap();
        HeapPages::Huge.provide().unwrap();
        assert!(words.iter().enumerate().all(|(at, &word)| at == word));
        let Resident { bytes, huge_bytes } = Resident::now().unwrap();
        assert!(bytes >= 32 << 20 && huge_bytes <= bytes);
        if huge_bytes < 16 << 20 {
            println!("SKIPPED: this kernel gives no huge pages, or none of what was there already");
        }
    }
}
