//! A doubly linked list over key numbers with a sentinel: the newest item follows the sentinel, and
//! the oldest precedes it.

const ABSENT: u32 = u32::MAX;

/// The list. Keys are below the bound passed to `new`; the bound itself is the sentinel.
pub(super) struct Ring {
    newer: Vec<u32>,
    older: Vec<u32>,
    weights: Vec<u32>,
    sentinel: u32,
    weight: u64,
}

impl Ring {
    pub(super) fn new(key_bound: u32) -> Self {
        let mut ring = Ring {
            newer: vec![ABSENT; key_bound as usize + 1],
            older: vec![ABSENT; key_bound as usize + 1],
            weights: vec![0; key_bound as usize],
            sentinel: key_bound,
            weight: 0,
        };
        ring.newer[key_bound as usize] = key_bound;
        ring.older[key_bound as usize] = key_bound;
        ring
    }

    /// The weight of all items.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// The weight of an item that is there.
    pub(super) fn weight_of(&self, key: u32) -> u32 {
        self.weights[key as usize]
    }

    pub(super) fn contains(&self, key: u32) -> bool {
        self.newer[key as usize] != ABSENT
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        Some(self.newer[self.sentinel as usize]).filter(|&key| key != self.sentinel)
    }

    /// The key that is one newer than `key`, or `None` if `key` is the newest.
    pub(super) fn newer_than(&self, key: u32) -> Option<u32> {
        Some(self.newer[key as usize]).filter(|&key| key != self.sentinel)
    }

    pub(super) fn push_newest(&mut self, key: u32, weight: u32) {
        let newest = self.older[self.sentinel as usize];
        self.newer[newest as usize] = key;
        self.older[key as usize] = newest;
        self.newer[key as usize] = self.sentinel;
        self.older[self.sentinel as usize] = key;
        self.weights[key as usize] = weight;
        self.weight += u64::from(weight);
    }

    /// Takes an item out, if it is there, and says its weight.
    pub(super) fn take(&mut self, key: u32) -> Option<u32> {
        if !self.contains(key) {
            return None;
        }
        let (newer, older) = (self.newer[key as usize], self.older[key as usize]);
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
        self.newer[key as usize] = ABSENT;
        self.weight -= u64::from(self.weights[key as usize]);
        Some(self.weights[key as usize])
    }

    /// Takes the oldest item out: its key and weight.
    pub(super) fn take_oldest(&mut self) -> Option<(u32, u32)> {
        let key = self.oldest()?;
        Some((key, self.take(key)?))
    }

    /// Makes an item the newest, if it is there.
    pub(super) fn renew(&mut self, key: u32) -> bool {
        let weight = self.take(key);
        if let Some(weight) = weight {
            self.push_newest(key, weight);
        }
        weight.is_some()
    }

    /// Changes the weight of an item that is there.
    pub(super) fn set_weight(&mut self, key: u32, weight: u32) {
        self.weight = self.weight + u64::from(weight) - u64::from(self.weights[key as usize]);
        self.weights[key as usize] = weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_of_arrival() {
        let mut ring = Ring::new(8);
        assert_eq!(ring.oldest(), None);
        for key in [3, 0, 7, 5] {
            ring.push_newest(key, key + 1);
        }
        assert_eq!(ring.take(0), Some(1));
        assert_eq!(ring.take(0), None);
        assert!(ring.renew(3));
        let mut order = vec![];
        let mut next = ring.oldest();
        while let Some(key) = next {
            order.push(key);
            next = ring.newer_than(key);
        }
        assert_eq!(order, [7, 5, 3]);
        assert_eq!(ring.weight(), 8 + 6 + 4);
        ring.set_weight(5, 1);
        assert_eq!(ring.weight(), 8 + 1 + 4);
        assert!(!ring.contains(0) && ring.contains(3));
        assert_eq!(ring.take_oldest(), Some((7, 8)));
    }
}
