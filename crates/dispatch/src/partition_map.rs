//! Which core owns a partition.

use glimmer_base::Keyhash;
use glimmer_base::limits::{PARTITIONS_MAX, WORKERS_MAX};

/// Which core owns each partition: partition `p` of `n` cores belongs to core `p % n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    partitions: u32,
    cores: u32,
    /// 2^32 / `cores`, rounded up: a multiplication instead of a division for every request.
    reciprocal: u64,
}

const _: () = assert!(
    PARTITIONS_MAX <= 1 << 16 && WORKERS_MAX <= 1 << 16,
    "the reciprocal is exact while partition * cores < 2^32"
);

impl PartitionMap {
    /// The map of a store.
    ///
    /// # Panics
    ///
    /// If there is no partition or no core, or more than the limits allow.
    pub const fn new(partitions: usize, cores: usize) -> PartitionMap {
        assert!(partitions >= 1 && partitions <= PARTITIONS_MAX);
        assert!(cores >= 1 && cores <= WORKERS_MAX);
        PartitionMap {
            partitions: partitions as u32,
            cores: cores as u32,
            reciprocal: (1_u64 << 32).div_ceil(cores as u64),
        }
    }

    /// Number of partitions.
    #[inline(always)]
    pub const fn partitions(&self) -> usize {
        self.partitions as usize
    }

    /// Number of cores.
    #[inline(always)]
    pub const fn cores(&self) -> usize {
        self.cores as usize
    }

    /// The partition of a key.
    #[inline(always)]
    pub fn partition(&self, keyhash: Keyhash) -> usize {
        keyhash.partition(self.partitions())
    }

    /// The core that owns a partition.
    #[inline(always)]
    pub fn owner_of(&self, partition: usize) -> usize {
        debug_assert!(partition < self.partitions());
        let quotient = (partition as u64 * self.reciprocal) >> 32;
        partition - quotient as usize * self.cores()
    }

    /// The core that owns a key's partition.
    #[inline(always)]
    pub fn owner(&self, keyhash: Keyhash) -> usize {
        self.owner_of(self.partition(keyhash))
    }

    /// The partitions that a core owns.
    pub fn owned_by(self, core: usize) -> impl Iterator<Item = usize> {
        (0..self.partitions()).filter(move |&partition| self.owner_of(partition) == core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_is_exact_for_every_partition_and_number_of_cores() {
        for cores in 1..=WORKERS_MAX {
            let map = PartitionMap::new(PARTITIONS_MAX, cores);
            for partition in 0..PARTITIONS_MAX {
                assert_eq!(map.owner_of(partition), partition % cores, "{cores} cores");
            }
        }
    }

    #[test]
    fn every_partition_has_one_owner() {
        let map = PartitionMap::new(10, 4);
        let mut all: Vec<usize> = (0..4).flat_map(|core| map.owned_by(core)).collect();
        assert_eq!(map.owned_by(1).collect::<Vec<_>>(), [1, 5, 9]);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
