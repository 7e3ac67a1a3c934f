//! The patterns of requests that eviction rules are compared on. A seed determines each trace.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use glimmer_loadgen::workload::Popularity;

use super::trace::{Item, Operation, Request, Trace};

/// A pattern of requests.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for the list of patterns.
    pub summary: &'static str,
    /// What its distances are measured in.
    pub scale: Scale,
    draw: fn(&mut Draft),
}

/// What the distances of a pattern are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In the number of keys: other capacities make another case.
    Keys,
    /// In the capacity: all capacities are alike.
    Capacity,
}

/// Zipf's exponent where a pattern is about something else.
const EXPONENT: f64 = 0.99;
/// A scan follows after this fraction (1 / n) of the key count of ordinary requests.
const SCAN_EVERY_DIVISOR: u32 = 2;
/// A scan has this fraction (1 / n) of the key count: exactly a cache of 10%.
const SCAN_DIVISOR: u32 = 10;
/// Hot keys of the pattern that alternates.
const HOT_KEYS: u32 = 8;
/// Its other keys, as a fraction (1 / n) of the key count: twice the capacity of a cache of 10%.
const MANY_DIVISOR: u32 = 5;
/// How often popularity shifts at once in a trace.
const SHIFTS: usize = 8;
/// Sets of keys that are popular in turn, and how often each has its turn.
const SETS: u32 = 3;
const TURNS: usize = 5;
/// Requests for each new key of the news.
const REQUESTS_PER_NEWS: usize = 10;
/// Bytes of the lightest and of the heaviest item where sizes differ.
const BYTES_MIN: f64 = 50.0;
const BYTES_MAX: f64 = 500_000.0;
/// Patterns of sizes have this fraction (1 / n) of the keys and of the requests: they take memory.
const SIZES_DIVISOR: u32 = 6;
/// Reads of sessions for each new one.
const READS_PER_SESSION: u32 = 4;
/// Every n-th request is a write where one client writes for others that only read.
const WRITE_EVERY: u32 = 5;

const fn pattern(
    name: &'static str,
    summary: &'static str,
    scale: Scale,
    draw: fn(&mut Draft),
) -> Pattern {
    Pattern {
        name,
        summary,
        scale,
        draw,
    }
}

use Scale::{Capacity, Keys};

/// All patterns, in the order of the tables.
#[rustfmt::skip]
pub const PATTERNS: &[Pattern] = &[
    pattern("lag-1", "written once, read once, 1% of the cache later", Capacity, |d| d.lag(0.01)),
    pattern("lag-5", "the same, 5% of the cache later", Capacity, |d| d.lag(0.05)),
    pattern("lag-10", "10% later", Capacity, |d| d.lag(0.1)),
    pattern("lag-20", "20% later", Capacity, |d| d.lag(0.2)),
    pattern("lag-40", "40% later", Capacity, |d| d.lag(0.4)),
    pattern("lag-60", "60% later", Capacity, |d| d.lag(0.6)),
    pattern("lag-80", "80% later", Capacity, |d| d.lag(0.8)),
    pattern("lag-95", "95% later", Capacity, |d| d.lag(0.95)),
    pattern("lags-3", "written once, read three times, each 10% of the cache later", Capacity,
        |d| d.lags(3)),
    pattern("lags-6", "written once, read six times", Capacity, |d| d.lags(6)),
    pattern("half-lag-10", "half lag-10, half Zipf 0.99", Capacity, |d| d.half_lag(0.1)),
    pattern("half-lag-40", "half lag-40, half Zipf 0.99", Capacity, |d| d.half_lag(0.4)),
    pattern("zipf-0.6", "Zipf 0.6", Keys, |d| d.zipf(0.6)),
    pattern("zipf-0.8", "Zipf 0.8", Keys, |d| d.zipf(0.8)),
    pattern("zipf-0.99", "Zipf 0.99", Keys, |d| d.zipf(0.99)),
    pattern("zipf-1.2", "Zipf 1.2", Keys, |d| d.zipf(1.2)),
    pattern("scan", "Zipf 0.99, and scans of a tenth of the keys that occur once", Keys,
        |d| d.scan()),
    pattern("alternating", "8 hot keys, alternating with draws from a fifth of the keys", Keys,
        |d| d.alternating()),
    pattern("loop-50", "a loop of half of the cache", Capacity, |d| d.cycle(0.5)),
    pattern("loop-110", "a loop of 1.1 times the cache", Capacity, |d| d.cycle(1.1)),
    pattern("loop-200", "a loop of twice the cache", Capacity, |d| d.cycle(2.0)),
    pattern("zipf-loop-50", "half Zipf 0.99, half a loop of half of the cache", Capacity,
        |d| d.half_cycle(0.5)),
    pattern("zipf-loop-100", "the same, a loop of the cache", Capacity, |d| d.half_cycle(1.0)),
    pattern("zipf-loop-200", "the same, a loop of twice the cache", Capacity,
        |d| d.half_cycle(2.0)),
    pattern("shift", "Zipf 0.99, and now and then other keys are popular", Keys, |d| d.shift()),
    pattern("drift", "Zipf 0.99, and slowly other keys become popular", Keys, |d| d.drift()),
    pattern("circle", "three sets of keys are popular in turn", Keys, |d| d.circle()),
    pattern("news", "new keys all the time, the newest are the most popular", Keys, |d| d.news()),
    pattern("writes-50", "Zipf 0.99, half of the requests are writes", Keys, |d| d.writes(0.5)),
    pattern("writes-90", "Zipf 0.99, nine of ten requests are writes", Keys, |d| d.writes(0.9)),
    pattern("write-through", "Zipf 0.99, three of ten are writes, no write after a miss", Keys,
        |d| d.write_through(0.3)),
    pattern("read-only", "one client writes all keys in turn, others only read, Zipf 0.99", Keys,
        |d| d.read_only()),
    pattern("sizes", "Zipf 0.99, 50 B to 500 KB, whatever the popularity", Keys,
        |d| d.sizes(|_, any| any)),
    pattern("sizes-small-hot", "the same, small items are more popular", Keys,
        |d| d.sizes(|rank, any| (rank + any) / 2.0)),
    pattern("sizes-large-hot", "the same, large items are more popular", Keys,
        |d| d.sizes(|rank, any| (1.0 - rank + any) / 2.0)),
    pattern("lifetimes", "Zipf 0.99, items live for short and for long", Keys,
        |d| d.lifetimes()),
    pattern("sessions", "new sessions, read while they live; as many as half of the cache holds",
        Capacity, |d| d.sessions()),
];

impl Pattern {
    /// The pattern with this name.
    pub fn named(name: &str) -> Option<Pattern> {
        PATTERNS.iter().find(|one| one.name == name).copied()
    }

    /// A trace over `keys` keys (and the new ones of some patterns) for a cache that holds a
    /// percentage of them, with `counted` measured requests and as many for the warm-up.
    pub fn trace(&self, keys: u32, capacity_percent: f64, counted: usize, seed: u64) -> Trace {
        let mut draft = Draft {
            rng: SmallRng::seed_from_u64(seed),
            keys,
            capacity: ((f64::from(keys) * capacity_percent / 100.0) as u32).max(1),
            requests: Vec::with_capacity(2 * counted),
            wanted: 2 * counted,
            items: vec![],
        };
        (self.draw)(&mut draft);
        let (requests, mut items) = (draft.requests, draft.items);
        let in_bytes = items.iter().any(|item| item.weight > 1);
        let bound = requests.iter().map(|request| request.key + 1).max();
        items.resize(items.len().max(bound.unwrap_or(0) as usize), Item::UNIT);
        let capacity = match in_bytes {
            false => u64::from(draft.capacity),
            true => {
                let all: f64 = items.iter().map(|item| f64::from(item.weight)).sum();
                ((all * capacity_percent / 100.0) as u64).max(4 * BYTES_MAX as u64)
            }
        };
        Trace {
            warm_up: requests.len() / 2,
            requests,
            items,
            capacity,
            in_bytes,
        }
    }
}

/// A trace that is being drawn.
struct Draft {
    rng: SmallRng,
    keys: u32,
    /// In items.
    capacity: u32,
    requests: Vec<Request>,
    /// How many requests there are to be.
    wanted: usize,
    /// The items of the first keys. All others are units.
    items: Vec<Item>,
}

impl Draft {
    fn is_done(&self) -> bool {
        self.requests.len() >= self.wanted
    }

    fn push(&mut self, key: u32, operation: Operation) {
        if !self.is_done() {
            self.requests.push(Request { key, operation });
        }
    }

    fn read(&mut self, key: u32) {
        self.push(key, Operation::Read);
    }

    fn fetch(&mut self, key: u32) {
        self.push(key, Operation::Fetch);
    }

    fn write(&mut self, key: u32) {
        self.push(key, Operation::Write);
    }

    fn part(&self, share: f64) -> u32 {
        ((f64::from(self.capacity) * share) as u32).max(1)
    }

    /// Calls `each` with the number of the call and a key under Zipf's law, until all is drawn.
    fn each_of_zipf(
        &mut self,
        keys: u32,
        exponent: f64,
        mut each: impl FnMut(&mut Self, u32, u32),
    ) {
        let mut law = Popularity::zipf(u64::from(keys), exponent).sampler();
        for turn in 0.. {
            if self.is_done() {
                break;
            }
            let key = law.draw(&mut self.rng) as u32;
            each(self, turn, key);
        }
    }

    fn lag(&mut self, share: f64) {
        let lag = self.part(share);
        for new in 0.. {
            if self.is_done() {
                break;
            }
            self.write(new);
            if let Some(old) = new.checked_sub(lag) {
                self.read(old);
            }
        }
    }

    fn lags(&mut self, reads: u32) {
        let lag = self.part(0.1);
        for new in 0.. {
            if self.is_done() {
                break;
            }
            self.write(new);
            for read in 1..=reads {
                if let Some(old) = new.checked_sub(read * lag) {
                    self.read(old);
                }
            }
        }
    }

    fn half_lag(&mut self, share: f64) {
        let (keys, lag) = (self.keys, self.part(share));
        self.each_of_zipf(keys, EXPONENT, |draft, turn, key| {
            draft.fetch(key);
            if turn % 2 == 0 {
                let new = keys + turn / 2;
                draft.write(new);
                if new >= keys + lag {
                    draft.read(new - lag);
                }
            }
        });
    }

    fn zipf(&mut self, exponent: f64) {
        self.each_of_zipf(self.keys, exponent, |draft, _, key| draft.fetch(key));
    }

    fn scan(&mut self) {
        let (every, length) = (self.keys / SCAN_EVERY_DIVISOR, self.keys / SCAN_DIVISOR);
        let mut new = self.keys;
        self.each_of_zipf(self.keys, EXPONENT, |draft, turn, key| {
            if turn % every == every - 1 {
                (new..new + length).for_each(|key| draft.fetch(key));
                new += length;
            }
            draft.fetch(key);
        });
    }

    fn alternating(&mut self) {
        for turn in 0..self.wanted as u32 / 2 {
            self.fetch(turn % HOT_KEYS);
            let other = self.rng.random_range(0..self.keys / MANY_DIVISOR);
            self.fetch(HOT_KEYS + other);
        }
    }

    fn cycle(&mut self, share: f64) {
        let length = self.part(share);
        (0..self.wanted as u32).for_each(|turn| self.fetch(turn % length));
    }

    fn half_cycle(&mut self, share: f64) {
        let (keys, length) = (self.keys, self.part(share));
        self.each_of_zipf(keys, EXPONENT, |draft, turn, key| {
            draft.fetch(key);
            draft.fetch(keys + turn % length);
        });
    }

    fn shift(&mut self) {
        let (keys, period) = (self.keys, (self.wanted / SHIFTS).max(1) as u32);
        self.each_of_zipf(keys, EXPONENT, |draft, turn, key| {
            draft.fetch((key + turn / period * (keys / SHIFTS as u32)) % keys);
        });
    }

    fn drift(&mut self) {
        let (keys, wanted) = (self.keys, self.wanted as u64);
        self.each_of_zipf(keys, EXPONENT, |draft, turn, key| {
            let moved = u64::from(turn) * u64::from(keys / 2) / wanted;
            draft.fetch((key + moved as u32) % keys);
        });
    }

    fn circle(&mut self) {
        let set = self.keys / SETS;
        let period = (self.wanted / (TURNS * SETS as usize)).max(1) as u32;
        self.each_of_zipf(set, EXPONENT, |draft, turn, key| {
            draft.fetch(turn / period % SETS * set + key);
        });
    }

    fn news(&mut self) {
        let keys = self.keys;
        self.each_of_zipf(keys, EXPONENT, |draft, turn, age| {
            let newest = keys + turn / REQUESTS_PER_NEWS as u32;
            draft.fetch(newest - age);
        });
    }

    fn writes(&mut self, share: f64) {
        self.each_of_zipf(self.keys, EXPONENT, |draft, _, key| {
            match draft.rng.random::<f64>() < share {
                true => draft.write(key),
                false => draft.fetch(key),
            }
        });
    }

    fn write_through(&mut self, share: f64) {
        self.each_of_zipf(self.keys, EXPONENT, |draft, _, key| {
            match draft.rng.random::<f64>() < share {
                true => draft.write(key),
                false => draft.read(key),
            }
        });
    }

    fn read_only(&mut self) {
        let keys = self.keys;
        self.each_of_zipf(keys, EXPONENT, |draft, turn, key| {
            match turn % WRITE_EVERY {
                // Keys in another order than their popularity.
                0 => draft.write((u64::from(turn / WRITE_EVERY) * 7919 % u64::from(keys)) as u32),
                _ => draft.read(key),
            }
        });
    }

    /// `size` makes a position in the range of sizes from a rank and a random number, all of them
    /// shares.
    fn sizes(&mut self, size: fn(f64, f64) -> f64) {
        let keys = self.keys / SIZES_DIVISOR;
        self.wanted /= SIZES_DIVISOR as usize;
        for rank in 0..keys {
            let position = size(f64::from(rank) / f64::from(keys), self.rng.random());
            let weight = (BYTES_MIN * (BYTES_MAX / BYTES_MIN).powf(position)) as u32;
            self.items.push(Item {
                weight,
                lifetime: 0,
            });
        }
        self.each_of_zipf(keys, EXPONENT, |draft, _, key| draft.fetch(key));
    }

    fn lifetimes(&mut self) {
        for _ in 0..self.keys {
            // From a thousandth of the trace to all of it.
            let share = 1000f64.powf(self.rng.random::<f64>() - 1.0);
            self.items.push(Item {
                weight: 1,
                lifetime: (share * self.wanted as f64) as u32,
            });
        }
        self.each_of_zipf(self.keys, EXPONENT, |draft, _, key| draft.fetch(key));
    }

    fn sessions(&mut self) {
        let alive = self.part(0.5);
        let lifetime = alive * (1 + READS_PER_SESSION);
        for new in 0.. {
            if self.is_done() {
                break;
            }
            self.items.push(Item {
                weight: 1,
                lifetime,
            });
            self.write(new);
            for _ in 0..READS_PER_SESSION {
                let age = self.rng.random_range(0..alive.min(new + 1));
                self.read(new - age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_trace_is_its_seed() {
        for pattern in PATTERNS {
            let trace = pattern.trace(1_200, 10.0, 6_000, 3);
            let again = pattern.trace(1_200, 10.0, 6_000, 3);
            assert_eq!(trace.requests, again.requests, "{}", pattern.name);
            assert_eq!(trace.items, again.items, "{}", pattern.name);
            assert!(trace.requests.len() >= 2_000, "{}", pattern.name);
            assert_eq!(trace.warm_up, trace.requests.len() / 2);
            let bound = trace.key_bound();
            assert!(trace.requests.iter().all(|request| request.key < bound));
        }
        let zipf = Pattern::named("zipf-0.99").unwrap();
        let [one, other] = [3, 4].map(|seed| zipf.trace(1_200, 10.0, 6_000, seed));
        assert_ne!(one.requests, other.requests);
    }

    #[test]
    fn names_differ() {
        let names: BTreeSet<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), PATTERNS.len());
    }

    /// For each read, the writes of other keys since the write of its own.
    fn lags(trace: &Trace) -> Vec<u32> {
        let mut written = vec![None; trace.items.len()];
        let (mut writes, mut lags) = (0, vec![]);
        for request in &trace.requests {
            match request.operation {
                Operation::Write => {
                    writes += 1;
                    written[request.key as usize] = Some(writes);
                }
                _ => lags.extend(written[request.key as usize].map(|at| writes - at)),
            }
        }
        lags
    }

    #[test]
    fn lags_are_shares_of_the_cache() {
        let trace = Pattern::named("lag-40")
            .unwrap()
            .trace(10_000, 10.0, 5_000, 1);
        assert_eq!(trace.capacity, 1_000);
        assert!(lags(&trace).iter().all(|&lag| lag == 400));
        let trace = Pattern::named("lags-3")
            .unwrap()
            .trace(10_000, 10.0, 5_000, 1);
        let all: BTreeSet<_> = lags(&trace).into_iter().collect();
        assert_eq!(all, BTreeSet::from([100, 200, 300]));
    }

    #[test]
    fn scanned_keys_occur_once() {
        let trace = Pattern::named("scan").unwrap().trace(1_000, 10.0, 5_000, 3);
        let mut seen = vec![0; trace.items.len()];
        trace
            .requests
            .iter()
            .for_each(|request| seen[request.key as usize] += 1);
        assert!(trace.key_bound() > 2_000, "there were scans");
        assert!(seen[1_000..].iter().all(|&times| times <= 1));
    }

    #[test]
    fn sizes_follow_popularity_both_ways() {
        let mean_of_hot = |name| {
            let trace = Pattern::named(name).unwrap().trace(6_000, 10.0, 5_000, 3);
            assert!(trace.in_bytes);
            let hot = &trace.items[..100];
            hot.iter()
                .map(|item| f64::from(item.weight).ln())
                .sum::<f64>()
                / 100.0
        };
        let [small, any, large] = ["sizes-small-hot", "sizes", "sizes-large-hot"].map(mean_of_hot);
        assert!(
            small + 1.0 < any && any + 1.0 < large,
            "{small}, {any}, {large}"
        );
    }
}
