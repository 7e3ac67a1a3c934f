//! How often keys were used lately: a count-min sketch with counters of four bits that are halved
//! now and then (Einziger, Friedman, Manes, "TinyLFU", ACM Transactions on Storage 2017).

const ROWS: usize = 4;
const COUNT_MAX: u8 = 15;
/// Counters of a row for each item.
const COUNTERS_PER_ITEM: usize = 4;
/// Uses for each item after which all counters are halved.
const HALVED_AFTER: u32 = 10;

/// The sketch. A counter takes a byte here.
pub(super) struct Sketch {
    counters: [Vec<u8>; ROWS],
    uses: u32,
    uses_max: u32,
}

/// Bits that depend on the key and the row (the finalizer of SplitMix64).
fn mixed(key: u32, row: usize) -> u64 {
    let bits = (u64::from(key) | (row as u64) << 32).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

impl Sketch {
    /// A sketch for a cache of about this many items.
    pub(super) fn new(items: usize) -> Self {
        let items = items.next_power_of_two().max(16);
        Sketch {
            counters: std::array::from_fn(|_| vec![0; COUNTERS_PER_ITEM * items]),
            uses: 0,
            uses_max: HALVED_AFTER * items as u32,
        }
    }

    fn place(&self, key: u32, row: usize) -> usize {
        mixed(key, row) as usize & (self.counters[row].len() - 1)
    }

    /// Notes a use of a key.
    pub(super) fn add(&mut self, key: u32) {
        for row in 0..ROWS {
            let place = self.place(key, row);
            let counter = &mut self.counters[row][place];
            *counter = (*counter + 1).min(COUNT_MAX);
        }
        self.uses += 1;
        if self.uses >= self.uses_max {
            self.uses /= 2;
            let all = self.counters.iter_mut().flatten();
            all.for_each(|counter| *counter /= 2);
        }
    }

    /// Uses of a key, or more where keys collide.
    pub(super) fn estimate(&self, key: u32) -> u8 {
        let counts = (0..ROWS).map(|row| self.counters[row][self.place(key, row)]);
        counts.min().expect("there are rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_used_often_and_forgets_it() {
        let mut sketch = Sketch::new(1024);
        for key in 0..1000 {
            sketch.add(key);
            sketch.add(7);
        }
        assert_eq!(sketch.estimate(7), COUNT_MAX);
        let exact = (10..1000).filter(|&key| sketch.estimate(key) == 1).count();
        assert!(exact > 900, "{exact} of 990");
        assert_eq!(sketch.estimate(123_456), 0);
        (0..40_000).for_each(|use_| sketch.add(10_000 + use_ % 64));
        assert!(sketch.estimate(7) < COUNT_MAX / 2);
    }
}
