//! Allocates the memory that all values of the paper's device share: by a linear scan for the first
//! gap that is large enough (§VI-A, §VIII).

use std::collections::BTreeMap;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Allocator {
    bytes: usize,
    /// What is allocated: address to length.
    taken: BTreeMap<usize, usize>,
}

impl Allocator {
    /// All of this many bytes are free.
    pub fn new(bytes: usize) -> Allocator {
        Allocator {
            bytes,
            taken: BTreeMap::new(),
        }
    }

    /// The address of `bytes` bytes, at least one, which overlap with no others; `None` if there is
    /// no gap of this size.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let bytes = bytes.max(1);
        let mut address = 0;
        for (&taken, &taken_bytes) in &self.taken {
            if taken - address >= bytes {
                break;
            }
            address = taken + taken_bytes;
        }
        if self.bytes - address < bytes {
            return None;
        }
        self.taken.insert(address, bytes);
        Some(address)
    }

    /// Gives back what lies at an address.
    ///
    /// # Panics
    ///
    /// If nothing was allocated there.
    pub fn free(&mut self, address: usize) {
        let freed = self.taken.remove(&address);
        assert!(freed.is_some(), "nothing is allocated at {address}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn the_first_gap_is_taken() {
        let mut memory = Allocator::new(10);
        assert_eq!(
            [4, 3, 3, 1].map(|bytes| memory.allocate(bytes)),
            [Some(0), Some(4), Some(7), None]
        );
        memory.free(4);
        assert_eq!(
            [4, 2, 1].map(|bytes| memory.allocate(bytes)),
            [None, Some(4), Some(6)]
        );
    }

    #[test]
    fn nothing_overlaps() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let (mut memory, mut owners) = (Allocator::new(1000), vec![None; 1000]);
        let mut held = Vec::new();
        for owner in 0..20_000 {
            let bytes = rng.random_range(1..100);
            if let Some(address) = memory.allocate(bytes) {
                for place in &mut owners[address..address + bytes] {
                    assert_eq!(place.replace(owner), None);
                }
                held.push((address, bytes));
            } else {
                let (address, bytes) = held.swap_remove(rng.random_range(0..held.len()));
                memory.free(address);
                owners[address..address + bytes].fill(None);
            }
        }
    }
}
