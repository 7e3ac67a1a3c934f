//! A sequence of requests, and what a client makes of the answers.

/// What a client does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read. Nothing follows a miss.
    Read,
    /// A read; what was not found is written (cache-aside).
    Fetch,
    /// A write, whether the item is there or not.
    Write,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the key.
    pub key: u32,
    /// What the client does with it.
    pub operation: Operation,
}

/// What is written under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What the item takes of the capacity: 1 where capacities are numbers of items, else bytes.
    pub weight: u32,
    /// Requests after which it expires; 0 if it never does.
    pub lifetime: u32,
}

impl Item {
    /// One of many equal items.
    pub const UNIT: Item = Item {
        weight: 1,
        lifetime: 0,
    };
}

/// A cache with one eviction rule and a capacity. Key numbers are below the bound that it was made
/// with.
pub trait Cache {
    /// Requests so far: the time, for a cache to which items have a lifetime.
    fn begin(&mut self, _requests: u64) {}

    /// Reads a key, and says whether its item is there.
    fn read(&mut self, key: u32) -> bool;

    /// Writes an item, in place of the one that is there under this key. One that is heavier than
    /// the capacity is not kept.
    fn write(&mut self, key: u32, item: Item);

    /// Removes the item of a key, if it is there.
    fn remove(&mut self, key: u32);

    /// The weight of what is in the cache.
    fn weight(&self) -> u64;
}

/// A sequence of requests.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The requests in their order.
    pub requests: Vec<Request>,
    /// The item of each key.
    pub items: Vec<Item>,
    /// What a cache may hold, in the unit of the weights.
    pub capacity: u64,
    /// Whether weights and capacity are bytes.
    pub in_bytes: bool,
    /// Requests of the warm-up, which are not counted.
    pub warm_up: usize,
}

impl Trace {
    /// Keys are below this.
    pub fn key_bound(&self) -> u32 {
        self.items.len() as u32
    }

    /// The share of the counted reads that a cache answers.
    pub fn hit_ratio(&self, cache: &mut dyn Cache) -> f64 {
        let (mut hits, mut reads) = (0u64, 0u64);
        let mut expiry = vec![u64::MAX; self.items.len()];
        for (at, &Request { key, operation }) in self.requests.iter().enumerate() {
            let item = self.items[key as usize];
            cache.begin(at as u64);
            if expiry[key as usize] <= at as u64 {
                cache.remove(key);
                expiry[key as usize] = u64::MAX;
            }
            let is_read = operation != Operation::Write;
            let is_found = is_read && cache.read(key);
            if operation == Operation::Write || operation == Operation::Fetch && !is_found {
                cache.write(key, item);
                if item.lifetime > 0 {
                    expiry[key as usize] = at as u64 + u64::from(item.lifetime);
                }
            }
            if at >= self.warm_up {
                reads += u64::from(is_read);
                hits += u64::from(is_found);
            }
        }
        hits as f64 / reads.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Fetch, Read, Write};
    use std::collections::BTreeSet;

    /// A cache without a limit.
    #[derive(Default)]
    struct All(BTreeSet<u32>);

    impl Cache for All {
        fn read(&mut self, key: u32) -> bool {
            self.0.contains(&key)
        }

        fn write(&mut self, key: u32, _item: Item) {
            self.0.insert(key);
        }

        fn remove(&mut self, key: u32) {
            self.0.remove(&key);
        }

        fn weight(&self) -> u64 {
            self.0.len() as u64
        }
    }

    fn hit_ratio(requests: &[(u32, Operation)], lifetime: u32, warm_up: usize) -> f64 {
        let request = |&(key, operation)| Request { key, operation };
        let trace = Trace {
            requests: requests.iter().map(request).collect(),
            items: vec![
                Item {
                    weight: 1,
                    lifetime
                };
                10
            ],
            capacity: 10,
            in_bytes: false,
            warm_up,
        };
        trace.hit_ratio(&mut All::default())
    }

    #[test]
    fn a_miss_is_followed_by_a_write_only_in_cache_aside() {
        assert_eq!(hit_ratio(&[(1, Read), (1, Read)], 0, 0), 0.0);
        assert_eq!(hit_ratio(&[(1, Fetch), (1, Read)], 0, 0), 0.5);
        assert_eq!(hit_ratio(&[(1, Write), (1, Read)], 0, 0), 1.0);
    }

    #[test]
    fn only_what_follows_the_warm_up_counts() {
        assert_eq!(hit_ratio(&[(1, Fetch), (1, Fetch)], 0, 1), 1.0);
    }

    #[test]
    fn what_expired_is_not_found() {
        let requests = [(1, Write), (1, Read), (1, Read), (1, Read)];
        assert_eq!(hit_ratio(&requests, 3, 0), 2.0 / 3.0);
    }
}
