//! ARC (Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003, figure
//! 4). Where the paper counts pages, this counts weight.

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// Two LRU lists, of items used once and of items used more often, and the keys that left each of
/// them. A key that comes back says which list deserves more room.
pub struct Arc {
    capacity: u64,
    /// The room that the first list should have.
    target: u64,
    once: Ring,
    often: Ring,
    once_left: Ring,
    often_left: Ring,
}

impl Arc {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        Arc {
            capacity,
            target: 0,
            once: Ring::new(key_bound),
            often: Ring::new(key_bound),
            once_left: Ring::new(key_bound),
            often_left: Ring::new(key_bound),
        }
    }

    fn make_room(&mut self, weight: u32, left_often: bool) {
        while self.weight() + u64::from(weight) > self.capacity {
            let (once, target) = (self.once.weight(), self.target);
            let from_once = once > target || left_often && once == target;
            let (list, left) = match (from_once || self.often.weight() == 0) && once > 0 {
                true => (&mut self.once, &mut self.once_left),
                false => (&mut self.often, &mut self.often_left),
            };
            let (key, weight) = list.take_oldest().expect("the list has a weight");
            left.push_newest(key, weight);
        }
    }

    /// A key that neither list nor their ghosts know.
    fn write_new(&mut self, key: u32, weight: u32) {
        let room = self.capacity - u64::from(weight);
        while self.once.weight() + self.once_left.weight() > room {
            if self.once_left.take_oldest().is_none() {
                self.once.take_oldest();
            }
        }
        let all = |arc: &Self| arc.weight() + arc.once_left.weight() + arc.often_left.weight();
        while all(self) > self.capacity + room && self.often_left.take_oldest().is_some() {}
        self.make_room(weight, false);
        self.once.push_newest(key, weight);
    }
}

impl Cache for Arc {
    fn read(&mut self, key: u32) -> bool {
        if let Some(weight) = self.once.take(key) {
            self.often.push_newest(key, weight);
            return true;
        }
        self.often.renew(key)
    }

    fn write(&mut self, key: u32, item: Item) {
        let weight = item.weight;
        if u64::from(weight) > self.capacity {
            return self.remove(key);
        }
        let (once_left, often_left) = (self.once_left.weight(), self.often_left.weight());
        let step = |from: u64, to: u64| u64::from(weight) * (from / to.max(1)).max(1);
        if self.once.contains(key) || self.often.contains(key) {
            self.remove(key);
            self.make_room(weight, false);
        } else if self.once_left.take(key).is_some() {
            self.target = (self.target + step(often_left, once_left)).min(self.capacity);
            self.make_room(weight, false);
        } else if self.often_left.take(key).is_some() {
            self.target = self.target.saturating_sub(step(once_left, often_left));
            self.make_room(weight, true);
        } else {
            return self.write_new(key, weight);
        }
        self.often.push_newest(key, weight);
    }

    fn remove(&mut self, key: u32) {
        self.once.take(key);
        self.often.take(key);
    }

    fn weight(&self) -> u64 {
        self.once.weight() + self.often.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// The paper's figure 4, line by line. The newest key is the last of a list.
    #[derive(Default)]
    struct Model {
        c: usize,
        p: usize,
        t1: Vec<u32>,
        t2: Vec<u32>,
        b1: Vec<u32>,
        b2: Vec<u32>,
    }

    fn take(list: &mut Vec<u32>, key: u32) -> bool {
        let place = list.iter().position(|&k| k == key);
        place.map(|place| list.remove(place)).is_some()
    }

    impl Model {
        fn replace(&mut self, in_b2: bool) {
            let t1 = self.t1.len();
            if t1 > 0 && (t1 > self.p || in_b2 && t1 == self.p) {
                self.b1.push(self.t1.remove(0));
            } else {
                self.b2.push(self.t2.remove(0));
            }
        }

        fn request(&mut self, key: u32) -> bool {
            let (b1, b2) = (self.b1.len(), self.b2.len());
            if take(&mut self.t1, key) || take(&mut self.t2, key) {
                self.t2.push(key);
                return true;
            }
            if take(&mut self.b1, key) {
                self.p = self.c.min(self.p + (b2 / b1).max(1));
                self.replace(false);
                self.t2.push(key);
                return false;
            }
            if take(&mut self.b2, key) {
                self.p = self.p.saturating_sub((b1 / b2).max(1));
                self.replace(true);
                self.t2.push(key);
                return false;
            }
            let (t1, t2) = (self.t1.len(), self.t2.len());
            if t1 + b1 == self.c {
                if t1 < self.c {
                    self.b1.remove(0);
                    self.replace(false);
                } else {
                    self.t1.remove(0);
                }
            } else if t1 + t2 + b1 + b2 >= self.c {
                if t1 + t2 + b1 + b2 == 2 * self.c {
                    self.b2.remove(0);
                }
                self.replace(false);
            }
            self.t1.push(key);
            false
        }
    }

    #[test]
    fn agrees_with_the_paper_line_by_line() {
        for seed in 0..20 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut model = Model {
                c: rng.random_range(1..24),
                ..Model::default()
            };
            let mut cache = Arc::new(model.c as u64, 64);
            for turn in 0..5_000 {
                let key = match turn / 500 % 2 {
                    0 => rng.random_range(0..64),
                    _ => rng.random_range(0..8) * rng.random_range(0..8),
                };
                let hit = cache.read(key);
                if !hit {
                    cache.write(key, Item::UNIT);
                }
                assert_eq!(hit, model.request(key), "seed {seed}, turn {turn}");
                assert_eq!(cache.target, model.p as u64, "seed {seed}, turn {turn}");
            }
        }
    }
}
