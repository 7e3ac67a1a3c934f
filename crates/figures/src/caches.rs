//! A simulated cache: which accesses to memory find what they want near the processor.

/// A set-associative cache, or TLB, in which the block that was used longest ago leaves.
pub struct Cache {
    /// The blocks of each set, the one used last first. Zero is no block.
    blocks: Vec<u64>,
    ways: usize,
    sets: usize,
    block_bits: u32,
}

impl Cache {
    /// A cache of this many blocks of `block_bytes`, a power of two. A block has this many ways to
    /// lie, and the number of sets is a power of two.
    pub fn new(blocks: usize, ways: usize, block_bytes: usize) -> Cache {
        let sets = blocks / ways;
        assert!(sets.is_power_of_two() && block_bytes.is_power_of_two());
        Cache {
            blocks: vec![0; blocks],
            ways,
            sets,
            block_bits: block_bytes.trailing_zeros(),
        }
    }

    /// Accesses an address. Says whether its block was there; it is there afterwards.
    pub fn access(&mut self, address: u64) -> bool {
        let block = (address >> self.block_bits) + 1;
        let first = block as usize % self.sets * self.ways;
        let set = &mut self.blocks[first..first + self.ways];
        let found = set.iter().position(|&it| it == block);
        let place = found.unwrap_or(self.ways - 1);
        set[..=place].rotate_right(1);
        set[0] = block;
        found.is_some()
    }

    /// Another core has changed this address: its block leaves.
    pub fn forget(&mut self, address: u64) {
        let block = (address >> self.block_bits) + 1;
        let first = block as usize % self.sets * self.ways;
        let set = &mut self.blocks[first..first + self.ways];
        if let Some(place) = set.iter().position(|&it| it == block) {
            set[place..].rotate_left(1);
            set[self.ways - 1] = 0;
        }
    }
}

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// A core of MICA's machine (§5.1: Xeon E5-2680): its second cache, its part of the last, and its
/// TLBs for data with pages of either kind.
pub struct Core {
    second: Cache,
    last: Cache,
    small_pages: [Cache; 2],
    huge_pages: Cache,
    /// What was counted.
    pub counts: Counts,
}

/// What a core has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Accesses to a line.
    pub accesses: u64,
    /// Those that did not find it in the second cache.
    pub second_missed: u64,
    /// Those that did not find it in the last cache either.
    pub last_missed: u64,
    /// Those that did not find the page in the TLBs, if all pages have 4 KiB.
    pub small_page_missed: u64,
    /// The same with pages of 2 MiB.
    pub huge_page_missed: u64,
}

impl Default for Core {
    fn default() -> Core {
        Core {
            second: Cache::new((256 << 10) / LINE_BYTES, 8, LINE_BYTES),
            last: Cache::new((20 << 20) / 8 / LINE_BYTES, 20, LINE_BYTES),
            small_pages: [Cache::new(64, 4, 4096), Cache::new(512, 4, 4096)],
            huge_pages: Cache::new(32, 4, 2 << 20),
            counts: Counts::default(),
        }
    }
}

impl Core {
    /// Accesses the line of an address.
    pub fn access(&mut self, address: u64) {
        let counts = &mut self.counts;
        counts.accesses += 1;
        if !self.second.access(address) {
            counts.second_missed += 1;
            counts.last_missed += u64::from(!self.last.access(address));
        }
        let [first, second] = &mut self.small_pages;
        let is_known = first.access(address) || second.access(address);
        counts.small_page_missed += u64::from(!is_known);
        counts.huge_page_missed += u64::from(!self.huge_pages.access(address));
    }

    /// Another core has changed the line of this address.
    pub fn forget(&mut self, address: u64) {
        self.second.forget(address);
        self.last.forget(address);
    }

    /// Accesses each line of `bytes` bytes.
    pub fn access_all(&mut self, address: u64, bytes: u64) {
        let lines = address / LINE_BYTES as u64..=(address + bytes - 1) / LINE_BYTES as u64;
        lines.for_each(|line| self.access(line * LINE_BYTES as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_used_longest_ago_leaves_its_set() {
        // Two sets of two blocks.
        let mut cache = Cache::new(4, 2, 64);
        assert!(!cache.access(0) && cache.access(63) && !cache.access(64));
        assert!(!cache.access(128) && cache.access(0));
        // Three blocks of the first set: 128 was used longest ago.
        assert!(!cache.access(256) && cache.access(0) && !cache.access(128));
        assert!(cache.access(64));
    }

    #[test]
    fn a_block_that_another_core_has_changed_leaves_room_for_one() {
        // One set of two blocks.
        let mut cache = Cache::new(2, 2, 64);
        assert!(!cache.access(0) && !cache.access(64));
        cache.forget(64);
        cache.forget(128);
        assert!(!cache.access(192) && cache.access(0) && !cache.access(64));
    }

    #[test]
    fn a_core_counts_what_each_level_lacks() {
        let mut core = Core::default();
        // 512 KiB twice: too much for the second cache, and not for its part of the last.
        for _ in 0..2 {
            core.access_all(0, 512 << 10);
        }
        let lines = (512 << 10) / LINE_BYTES as u64;
        assert_eq!(core.counts.accesses, 2 * lines);
        assert_eq!(core.counts.second_missed, 2 * lines);
        assert_eq!(core.counts.last_missed, lines);
        assert_eq!(core.counts.small_page_missed, 128);
        assert_eq!(core.counts.huge_page_missed, 1);
    }
}
