//! W-TinyLFU with an adaptive window (Einziger, Eytan, Friedman, Manes, "Adaptive software cache
//! management", Middleware 2018), with the parameters of the library Caffeine.

use super::{ring::Ring, sketch::Sketch};
use crate::hit_ratio::trace::{Cache, Item};

/// The window at the start, as a share of the capacity.
const WINDOW_SHARE: f64 = 0.01;
/// The share of the main space that is protected, at the start.
const PROTECTED_SHARE: f64 = 0.8;
/// The climber's first step, as a share of the capacity.
const STEP_SHARE: f64 = 0.0625;
/// What is left of a step at the next one.
const STEP_DECAY: f64 = 0.98;
/// A change of the hit ratio by this much makes the climber take large steps again.
const RESTART_CHANGE: f64 = 0.05;
/// Requests of a period of the climber, for each item of the capacity.
const PERIOD_PER_ITEM: u64 = 10;

/// An LRU window for new items before a main space in two LRU segments. What leaves the window
/// enters the main space if it was used more often lately than what would leave for it. A hill
/// climber moves the boundary of the window.
pub struct TinyLfu {
    capacity: u64,
    window_max: u64,
    protected_max: u64,
    window: Ring,
    probation: Ring,
    protected: Ring,
    sketch: Sketch,
    climber: Climber,
}

struct Climber {
    /// How far the next move goes; down if negative.
    step: f64,
    period: u64,
    hits: u64,
    requests: u64,
    hit_ratio: f64,
}

impl Climber {
    /// A period has ended: how far to move the boundary now.
    fn climb(&mut self, capacity: f64) -> f64 {
        let hit_ratio = self.hits as f64 / self.requests as f64;
        let change = hit_ratio - self.hit_ratio;
        let amount = match change >= 0.0 {
            true => self.step,
            false => -self.step,
        };
        self.step = match change.abs() >= RESTART_CHANGE {
            true => (STEP_SHARE * capacity).copysign(amount),
            false => STEP_DECAY * amount,
        };
        (self.hit_ratio, self.hits, self.requests) = (hit_ratio, 0, 0);
        amount
    }
}

impl TinyLfu {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        let window_max = ((capacity as f64 * WINDOW_SHARE) as u64).max(1);
        // With a capacity in bytes there are no more items than keys.
        let items = capacity.min(u64::from(key_bound));
        TinyLfu {
            capacity,
            window_max,
            protected_max: ((capacity - window_max) as f64 * PROTECTED_SHARE) as u64,
            window: Ring::new(key_bound),
            probation: Ring::new(key_bound),
            protected: Ring::new(key_bound),
            sketch: Sketch::new(items as usize),
            climber: Climber {
                step: -STEP_SHARE * capacity as f64,
                period: PERIOD_PER_ITEM * items,
                hits: 0,
                requests: 0,
                hit_ratio: 0.0,
            },
        }
    }

    /// The next item to leave the main space.
    fn victim(&self) -> Option<u32> {
        self.probation.oldest().or_else(|| self.protected.oldest())
    }

    fn demote(&mut self) {
        while self.protected.weight() > self.protected_max {
            let (key, weight) = self.protected.take_oldest().expect("it has a weight");
            self.probation.push_newest(key, weight);
        }
    }

    fn evict(&mut self) {
        while self.window.weight() > self.window_max {
            let (candidate, weight) = self.window.take_oldest().expect("it has a weight");
            self.probation.push_newest(candidate, weight);
            while self.weight() > self.capacity {
                let victim = self.victim().expect("the candidate is there");
                let (sketch, is_last) = (&self.sketch, victim == candidate);
                if is_last || sketch.estimate(candidate) <= sketch.estimate(victim) {
                    self.probation.take(candidate);
                    break;
                }
                self.remove(victim);
            }
        }
        while self.weight() > self.capacity {
            let victim = self.victim().or_else(|| self.window.oldest());
            self.remove(victim.expect("it has a weight"));
        }
    }

    fn count(&mut self, hit: bool) {
        self.climber.hits += u64::from(hit);
        self.climber.requests += 1;
        if self.climber.requests >= self.climber.period {
            let amount = self.climber.climb(self.capacity as f64);
            self.resize_window(amount);
        }
    }

    /// The protected segment gives to the window, or takes from it.
    fn resize_window(&mut self, amount: f64) {
        let quota = amount.abs() as u64;
        if amount > 0.0 {
            let quota = quota.min(self.protected_max);
            self.protected_max -= quota;
            self.window_max += quota;
            self.demote();
            let mut moved = 0;
            while let Some(key) = self.victim() {
                let ring = match self.probation.contains(key) {
                    true => &mut self.probation,
                    false => &mut self.protected,
                };
                moved += u64::from(ring.weight_of(key));
                if moved > quota {
                    break;
                }
                let weight = ring.take(key).expect("it is there");
                self.window.push_newest(key, weight);
            }
        } else {
            let quota = quota.min(self.window_max - 1);
            self.window_max -= quota;
            self.protected_max += quota;
            while self.window.weight() > self.window_max {
                let (key, weight) = self.window.take_oldest().expect("it has a weight");
                self.probation.push_newest(key, weight);
            }
        }
    }
}

impl Cache for TinyLfu {
    fn read(&mut self, key: u32) -> bool {
        let hit = if let Some(weight) = self.probation.take(key) {
            self.protected.push_newest(key, weight);
            self.demote();
            true
        } else {
            self.window.renew(key) || self.protected.renew(key)
        };
        if hit {
            self.sketch.add(key);
            self.count(true);
        }
        hit
    }

    fn write(&mut self, key: u32, item: Item) {
        if u64::from(item.weight) > self.capacity {
            return self.remove(key);
        }
        self.sketch.add(key);
        let rings = [&mut self.window, &mut self.probation, &mut self.protected];
        let known = rings.into_iter().find(|ring| ring.contains(key));
        let is_known = known.map(|ring| {
            ring.set_weight(key, item.weight);
            ring.renew(key);
        });
        if is_known.is_some() {
            self.demote();
        } else {
            self.window.push_newest(key, item.weight);
            self.count(false);
        }
        self.evict();
    }

    fn remove(&mut self, key: u32) {
        self.window.take(key);
        self.probation.take(key);
        self.protected.take(key);
    }

    fn weight(&self) -> u64 {
        self.window.weight() + self.probation.weight() + self.protected.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cache: &mut TinyLfu, key: u32) -> bool {
        let hit = cache.read(key);
        if !hit {
            cache.write(key, Item::UNIT);
        }
        hit
    }

    #[test]
    fn what_is_used_once_does_not_push_out_what_is_used_often() {
        let mut cache = TinyLfu::new(100, 100_000);
        for turn in 0..10 {
            for key in 0..80 {
                assert_eq!(request(&mut cache, key), turn > 0, "turn {turn}, key {key}");
            }
        }
        (1000..1500).for_each(|key| assert!(!request(&mut cache, key)));
        // One is lost where the sketch takes another key for one that is used often.
        let kept = (0..80).filter(|&key| request(&mut cache, key)).count();
        assert!(kept >= 78, "{kept} of 80");
    }

    #[test]
    fn the_window_grows_where_new_items_come_back_soon() {
        let mut cache = TinyLfu::new(1_000, 1_000_000);
        let start = cache.window_max;
        for newest in 400..400_000u32 {
            request(&mut cache, newest);
            // Up to a lag of two fifths of the capacity, most of which a small window loses.
            cache.read(newest - newest.wrapping_mul(0x9e37_79b9) % 400);
        }
        let end = cache.window_max;
        assert!(end > 20 * start, "{start} became {end}");
    }

    #[test]
    fn the_boundary_stays_within_the_capacity() {
        let mut cache = TinyLfu::new(100, 1_000);
        for amount in [-1e9, 1e9, 7.0, -30.0, 1e9, -1e9] {
            for key in 0..500 {
                request(&mut cache, key);
            }
            cache.resize_window(amount);
            assert!(cache.window_max >= 1 && cache.window_max <= 100);
            assert!(cache.weight() <= 100);
        }
    }
}
