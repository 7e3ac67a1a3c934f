//! The keyhash: 64 bits computed once per request that determine partition, bucket and tag (MICA
//! §4.1.1, §4.3.2).
//!
//! ```text
//!  63          48 47                            16 15            0
//! +--------------+--------------------------------+---------------+
//! |  partition   |             bucket             |      tag      |
//! +--------------+--------------------------------+---------------+
//! ```
//!
//! The three parts do not overlap, so they are independent: the keys of a partition spread over all
//! of its buckets, and a bucket's number says nothing about its tags.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of the keyhash that native clients compute. A server chooses it at start and tells it
/// to them. Anybody may know it: see [`KeyHasher`](crate::KeyHasher).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// Hashes a key with XXH3 (64 bits, seeded).
    #[inline]
    pub fn keyhash(self, key: &[u8]) -> Keyhash {
        Keyhash(xxh3_64_with_seed(key, self.0))
    }
}

/// A key's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keyhash(pub u64);

impl Keyhash {
    /// The bits that name the partition.
    pub const PARTITION: u64 = 0xFFFF << 48;

    /// The keyhash without the part that native clients know.
    #[inline]
    pub fn within_partition(self) -> Keyhash {
        Keyhash(self.0 & !Self::PARTITION)
    }

    /// The partition: the high 16 bits scaled to the number of partitions, which need not be a
    /// power of two.
    #[inline]
    pub fn partition(self, partitions: usize) -> usize {
        debug_assert!(partitions <= 1 << 16);
        (((self.0 >> 48) * partitions as u64) >> 16) as usize
    }

    /// The bucket: the middle 32 bits scaled to the number of buckets.
    #[inline]
    pub fn bucket(self, buckets: usize) -> usize {
        debug_assert!(buckets as u64 <= 1 << 32);
        ((((self.0 >> 16) & 0xFFFF_FFFF) * buckets as u64) >> 32) as usize
    }

    /// The tag: the low 16 bits. Tag zero marks an empty index entry, so a zero is replaced by one.
    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 as u16).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server, clients, load generator and accelerators must agree on these values bit for bit.
    /// Columns: seed, key, keyhash, partition of 16, bucket of 1000, tag.
    const GOLDEN: &str = include_str!("../golden/keyhash.tsv");

    #[test]
    fn golden_vectors() {
        let mut rows = 0;
        for line in GOLDEN.lines().filter(|line| !line.starts_with('#')) {
            let f: Vec<&str> = line.split('\t').collect();
            let seed = Seed(u64::from_str_radix(f[0], 16).unwrap());
            let hash = seed.keyhash(f[1].as_bytes());
            assert_eq!(format!("{:016x}", hash.0), f[2], "key {:?}", f[1]);
            assert_eq!(hash.partition(16).to_string(), f[3]);
            assert_eq!(hash.bucket(1000).to_string(), f[4]);
            assert_eq!(format!("{:04x}", hash.tag()), f[5]);
            rows += 1;
        }
        assert!(rows >= 12, "the golden file lost rows");
    }

    #[test]
    fn parts_are_disjoint() {
        for bit in 0..64 {
            let (a, b) = (
                Keyhash(0x5555_5555_5555_5555),
                Keyhash(0x5555_5555_5555_5555 ^ (1 << bit)),
            );
            let moved = [
                a.partition(1 << 16) != b.partition(1 << 16),
                a.bucket(1 << 32) != b.bucket(1 << 32),
                a.tag() != b.tag(),
            ];
            assert_eq!(
                moved.iter().filter(|&&m| m).count(),
                1,
                "bit {bit} belongs to exactly one part"
            );
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        for hash in [Keyhash(0), Keyhash(u64::MAX)] {
            for n in [1, 3, 16, 4096] {
                assert!(hash.partition(n) < n);
                assert!(hash.bucket(n) < n);
            }
            assert_ne!(hash.tag(), 0);
        }
    }
}
