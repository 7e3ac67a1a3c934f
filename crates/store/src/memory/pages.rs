//! Which pages to ask for, and which the kernel really gave.

use std::ops::Range;

/// What kind of pages to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PagePolicy {
    /// Reserved huge pages (`vm.nr_hugepages`), taken at once, or an error.
    Hugetlb,
    /// Transparent huge pages, or small ones where there are none.
    #[default]
    Transparent,
    /// Small pages.
    Small,
}

/// Bytes that really lie on each kind of page, from the kernel's own account and not from what was
/// asked for. Pages that were never touched count nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageReport {
    /// On reserved huge pages.
    pub hugetlb_bytes: u64,
    /// On transparent huge pages.
    pub transparent_huge_bytes: u64,
    /// Resident on small pages.
    pub small_bytes: u64,
}

impl core::ops::Add for PageReport {
    type Output = PageReport;

    fn add(self, other: PageReport) -> PageReport {
        PageReport {
            hugetlb_bytes: self.hugetlb_bytes + other.hugetlb_bytes,
            transparent_huge_bytes: self.transparent_huge_bytes + other.transparent_huge_bytes,
            small_bytes: self.small_bytes + other.small_bytes,
        }
    }
}

impl PageReport {
    /// Reads the kernel's account of the mappings that touch these addresses. Mappings that the
    /// kernel has merged with a neighbour's are shared out by size; all is zero where there is
    /// no `smaps`.
    pub fn of(addresses: &[Range<usize>]) -> PageReport {
        let Ok(smaps) = std::fs::read_to_string("/proc/self/smaps") else {
            return PageReport::default();
        };
        addresses.iter().fold(PageReport::default(), |sum, range| {
            sum + account(&smaps, range.clone())
        })
    }
}

fn account(smaps: &str, addresses: Range<usize>) -> PageReport {
    let mut total = PageReport::default();
    let (mut inside, mut whole) = (0u64, 1u64);
    for line in smaps.lines() {
        if let Some(mapping) = mapping_range(line) {
            whole = (mapping.end - mapping.start).max(1) as u64;
            inside = mapping
                .end
                .min(addresses.end)
                .saturating_sub(mapping.start.max(addresses.start)) as u64;
            continue;
        }
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(kib) = rest
            .trim()
            .strip_suffix(" kB")
            .and_then(|n| n.parse::<u64>().ok())
        else {
            continue;
        };
        let share = (u128::from(kib << 10) * u128::from(inside) / u128::from(whole)) as u64;
        match name {
            "Rss" => total.small_bytes += share,
            "AnonHugePages" | "ShmemPmdMapped" => total.transparent_huge_bytes += share,
            "Private_Hugetlb" | "Shared_Hugetlb" => total.hugetlb_bytes += share,
            _ => {}
        }
    }
    total.small_bytes = total
        .small_bytes
        .saturating_sub(total.transparent_huge_bytes);
    total
}

fn mapping_range(line: &str) -> Option<Range<usize>> {
    let (range, _) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0
Size:                  8 kB
Rss:                   8 kB
AnonHugePages:         4 kB
VmFlags: rd wr mr mw me ac sd hg
3000-4000 rw-s 00000000 00:01 5 /memfd:x (deleted)
Rss:                   4 kB
Private_Hugetlb:       0 kB
9000-a000 rw-p 00000000 00:00 0
Rss:                   4 kB
";

    #[test]
    fn counts_only_the_addresses_asked_for() {
        assert_eq!(
            account(SMAPS, 0x1000..0x4000),
            PageReport {
                hugetlb_bytes: 0,
                transparent_huge_bytes: 4096,
                small_bytes: 8192
            }
        );
        assert_eq!(
            account(SMAPS, 0x2000..0x3000),
            PageReport {
                hugetlb_bytes: 0,
                transparent_huge_bytes: 2048,
                small_bytes: 2048
            }
        );
        assert_eq!(account(SMAPS, 0x5000..0x6000), PageReport::default());
    }
}
