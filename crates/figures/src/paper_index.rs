//! MemC3's index as the paper counts it (§5.2, Table 2): a slot has a tag of one byte and a
//! reference of eight, and nothing lies between them. For counts of slots and bytes.

use glimmer_base::{Keyhash, Seed};

/// Displacements before an index counts as full (§5.2).
const DISPLACEMENTS_MAX: usize = 500;

/// How a key's second bucket follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// From the first bucket and the tag, so that keys are moved without being read (§3.1).
    FromTag,
    /// From another hash of the key, as in basic cuckoo hashing.
    FromKey,
}

/// An index with `SLOTS` slots in a bucket. Keys are numbers, which its references name.
pub struct PaperIndex<const SLOTS: usize> {
    tags: Vec<[u8; SLOTS]>,
    references: Vec<[u64; SLOTS]>,
    second: Second,
    seed: Seed,
    random: u64,
}

/// A bucket and a slot in it.
type Place = (usize, usize);

impl<const SLOTS: usize> PaperIndex<SLOTS> {
    /// An empty index; the number of buckets is a power of two.
    pub fn new(buckets: usize, second: Second, seed: Seed) -> Self {
        assert!(buckets.is_power_of_two());
        PaperIndex {
            tags: vec![[0; SLOTS]; buckets],
            references: vec![[0; SLOTS]; buckets],
            second,
            seed,
            random: seed.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.tags[..]) + size_of_val(&self.references[..])
    }

    /// The number of its slots.
    pub fn slots(&self) -> usize {
        self.tags.len() * SLOTS
    }

    /// Inserts the keys 0, 1, and so on, until one finds no slot, with this many paths at once.
    /// Returns how many it has then.
    pub fn fill(&mut self, paths: usize) -> usize {
        let mut walks = vec![Vec::new(); paths];
        let mut key = 0;
        while self.insert(key, &mut walks) {
            key += 1;
        }
        key as usize
    }

    /// Whether a key is in one of its buckets.
    pub fn contains(&self, key: u64) -> bool {
        let (homes, tag) = self.homes(key);
        homes.into_iter().any(|bucket| {
            let slots = self.tags[bucket].iter().zip(&self.references[bucket]);
            slots
                .into_iter()
                .any(|(&stored, &reference)| stored == tag && reference == key)
        })
    }

    fn keyhash(&self, key: u64) -> Keyhash {
        self.seed.keyhash(&key.to_le_bytes())
    }

    fn homes(&self, key: u64) -> ([usize; 2], u8) {
        let keyhash = self.keyhash(key);
        let tag = (keyhash.0 as u8).max(1);
        let first = keyhash.bucket(self.tags.len());
        ([first, self.alternate(first, tag, key)], tag)
    }

    /// The other bucket of a key: combined by exclusive or with a hash, so it works both ways.
    fn alternate(&self, bucket: usize, tag: u8, key: u64) -> usize {
        let hash = match self.second {
            Second::FromTag => u64::from(tag).wrapping_mul(0x5BD1_E995),
            Second::FromKey => self.keyhash(!key).0,
        };
        (bucket ^ (hash as usize | 1)) & (self.tags.len() - 1)
    }

    fn empty(&self, bucket: usize) -> Option<usize> {
        self.tags[bucket].iter().position(|&tag| tag == 0)
    }

    fn insert(&mut self, key: u64, walks: &mut [Vec<Place>]) -> bool {
        let (homes, tag) = self.homes(key);
        let free = homes
            .into_iter()
            .find_map(|bucket| Some((bucket, self.empty(bucket)?)));
        let Some((bucket, slot)) = free.or_else(|| self.make_room(homes, walks)) else {
            return false;
        };
        self.tags[bucket][slot] = tag;
        self.references[bucket][slot] = key;
        true
    }

    /// Searches on all paths in turn. Each begins at one of the two buckets and goes on to the
    /// other bucket of a random key. Then it moves the keys of the path that came to an empty slot,
    /// from its end backwards.
    fn make_room(&mut self, homes: [usize; 2], walks: &mut [Vec<Place>]) -> Option<Place> {
        for (number, walk) in walks.iter_mut().enumerate() {
            walk.clear();
            walk.push((homes[number % 2], 0));
        }
        for displacement in 0..DISPLACEMENTS_MAX {
            let number = displacement % walks.len();
            let walk = &mut walks[number];
            let end = walk.len() - 1;
            let bucket = walk[end].0;
            if let Some(slot) = self.empty(bucket) {
                walk[end].1 = slot;
                for hop in walk.windows(2).rev() {
                    self.shift(hop[0], hop[1]);
                }
                return Some(walk[0]);
            }
            let slot = self.random_slot();
            walk[end].1 = slot;
            let (tag, key) = (self.tags[bucket][slot], self.references[bucket][slot]);
            let next = self.alternate(bucket, tag, key);
            // A walk that comes back to a bucket goes on as if it had never left.
            match walk.iter().position(|&(passed, _)| passed == next) {
                Some(before) => walk.truncate(before + 1),
                None => walk.push((next, 0)),
            }
        }
        None
    }

    fn shift(&mut self, from: Place, to: Place) {
        self.tags[to.0][to.1] = std::mem::take(&mut self.tags[from.0][from.1]);
        self.references[to.0][to.1] = self.references[from.0][from.1];
    }

    fn random_slot(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_that_were_inserted_are_there() {
        for second in [Second::FromTag, Second::FromKey] {
            let mut four = PaperIndex::<4>::new(1 << 12, second, Seed(5));
            let keys = four.fill(2);
            assert!((0..keys as u64).all(|key| four.contains(key)), "{second:?}");
            assert!(!four.contains(keys as u64 + 1));
            let load = keys as f64 / four.slots() as f64;
            assert!((0.9..1.0).contains(&load), "{second:?}: {load}");
            assert_eq!(four.bytes(), 9 * four.slots());
        }
    }

    #[test]
    fn one_slot_in_a_bucket_fills_about_half() {
        let mut one = PaperIndex::<1>::new(1 << 14, Second::FromKey, Seed(5));
        let keys = one.fill(2);
        assert!((0..keys as u64).all(|key| one.contains(key)));
        let load = keys as f64 / one.slots() as f64;
        assert!((0.35..0.55).contains(&load), "{load}");
    }
}
