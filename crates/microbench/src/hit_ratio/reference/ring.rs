//! A doubly linked list over key numbers with a sentinel: the newest item follows the sentinel, and
//! the oldest precedes it.

const ABSENT: u32 = u32::MAX;

/// The list. Keys are below the bound passed to `new`; the bound itself is the sentinel.
pub(super) struct Ring {
    newer: Vec<u32>,
    older: Vec<u32>,
    sentinel: u32,
    len: usize,
}

impl Ring {
    pub(super) fn new(key_bound: u32) -> Self {
        let mut ring = Ring {
            newer: vec![ABSENT; key_bound as usize + 1],
            older: vec![ABSENT; key_bound as usize + 1],
            sentinel: key_bound,
            len: 0,
        };
        ring.newer[key_bound as usize] = key_bound;
        ring.older[key_bound as usize] = key_bound;
        ring
    }

    pub(super) fn len(&self) -> usize {
        self.len
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

    pub(super) fn push_newest(&mut self, key: u32) {
        let newest = self.older[self.sentinel as usize];
        self.newer[newest as usize] = key;
        self.older[key as usize] = newest;
        self.newer[key as usize] = self.sentinel;
        self.older[self.sentinel as usize] = key;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, key: u32) {
        let (newer, older) = (self.newer[key as usize], self.older[key as usize]);
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
        self.newer[key as usize] = ABSENT;
        self.len -= 1;
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
            ring.push_newest(key);
        }
        ring.remove(0);
        ring.remove(3);
        ring.push_newest(3);
        let mut order = vec![];
        let mut next = ring.oldest();
        while let Some(key) = next {
            order.push(key);
            next = ring.newer_than(key);
        }
        assert_eq!(order, [7, 5, 3]);
        assert_eq!(ring.len(), 3);
        assert!(!ring.contains(0) && ring.contains(3));
    }
}
