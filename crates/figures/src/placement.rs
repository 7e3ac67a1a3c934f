//! Which of 16 partitions the keys of Zipf's law lie in, and where in a partition, without a table
//! of all keys.

use glimmer_base::Seed;

/// Keys of MICA's population (§4.1.1).
pub const KEYS: u64 = 192 << 20;
/// Its exponent of Zipf's law.
pub const EXPONENT: f64 = 0.99;
/// Its partitions.
pub const PARTITIONS: usize = 16;
/// The most popular keys, which the keyhash places. All other keys are dealt to the partitions in
/// turn, as a hash does up to a thousandth of the average load.
pub const HEAD: u64 = 1 << 16;

/// A prime number above that of a partition's items. It sends neighbours far apart.
const SCATTER: u64 = 2_654_435_761;

/// Where the keys lie under a seed of the keyhash.
pub struct Placement {
    /// The partition of each popular key, and its number among those of the partition.
    head: Vec<(u8, u32)>,
    /// Popular keys of each partition.
    in_head: [u32; PARTITIONS],
    keys: u64,
}

impl Placement {
    /// Places this many keys, of which there are more than popular ones.
    pub fn new(seed: Seed, keys: u64) -> Placement {
        let head = HEAD.min(keys);
        let mut in_head = [0; PARTITIONS];
        let place = |rank: u64| {
            let partition = seed
                .keyhash(&(rank + 1).to_le_bytes())
                .partition(PARTITIONS);
            let number = in_head[partition];
            in_head[partition] += 1;
            (partition as u8, number)
        };
        Placement {
            head: (0..head).map(place).collect(),
            in_head,
            keys,
        }
    }

    /// Items of a partition: those of the fullest, whose number the others miss by a thousandth.
    pub fn items(&self) -> u32 {
        let others = (self.keys - self.head.len() as u64).div_ceil(PARTITIONS as u64);
        self.in_head.into_iter().max().unwrap_or(0) + others as u32
    }

    /// The partition of the key with this rank, from 0, and the key's number there, by popularity.
    pub fn of(&self, rank: u64) -> (usize, u32) {
        let other = match self.head.get(rank as usize) {
            Some(&(partition, number)) => return (partition as usize, number),
            None => rank - self.head.len() as u64,
        };
        let partition = (other % PARTITIONS as u64) as usize;
        let number = self.in_head[partition] + (other / PARTITIONS as u64) as u32;
        (partition, number)
    }
}

/// The place of a key among `items` that are stored in this order, by its number in the order of
/// popularity. Popular items do not lie beside one another.
pub fn scattered(number: u32, items: u32) -> u32 {
    (u64::from(number) * SCATTER % u64::from(items)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_place_of_its_own() {
        let keys = HEAD + 50_000;
        let placement = Placement::new(Seed(3), keys);
        let items = placement.items();
        let mut taken = vec![[false; PARTITIONS]; items as usize];
        for rank in 0..keys {
            let (partition, number) = placement.of(rank);
            let place = scattered(number, items) as usize;
            assert!(!std::mem::replace(&mut taken[place][partition], true));
        }
        let spread = scattered(1, items).abs_diff(scattered(0, items));
        assert!(spread > 100, "{spread}");
    }
}
