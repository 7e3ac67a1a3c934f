//! The request sequences for comparing eviction rules, determined by a seed.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use glimmer_loadgen::workload::Popularity;

/// The character of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Zipf 0.99 over all keys.
    Zipf,
    /// Zipf 0.99, interrupted by scans over keys that are requested only once.
    Scan,
    /// Every other request goes to one of a few hot keys, the rest uniformly to many others: do the
    /// hot keys displace the others?
    Alternating,
}

impl Workload {
    /// All workloads, in the order of the tables.
    pub const ALL: [Workload; 3] = [Workload::Zipf, Workload::Scan, Workload::Alternating];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Zipf => "zipf",
            Workload::Scan => "scan",
            Workload::Alternating => "alternating",
        }
    }

    /// One sentence for the table's heading.
    pub fn description(self, keys: u32) -> String {
        match self {
            Workload::Zipf => format!("Zipf 0.99 over {keys} keys."),
            Workload::Scan => format!(
                "Zipf 0.99 over {keys} keys; after every {} requests a scan of {} keys that \
                 occur only once.",
                keys / SCAN_EVERY_DIVISOR,
                keys / SCAN_DIVISOR
            ),
            Workload::Alternating => format!(
                "{HOT_KEYS} hot keys in turn, alternating with uniform draws from {} others.",
                keys / MANY_DIVISOR
            ),
        }
    }
}

/// A scan follows after this fraction (1 / n) of the key count of ordinary requests.
const SCAN_EVERY_DIVISOR: u32 = 2;
/// A scan has this fraction (1 / n) of the key count: exactly a cache of 10%.
const SCAN_DIVISOR: u32 = 10;
/// Hot keys of the alternating workload.
const HOT_KEYS: u32 = 8;
/// The other keys of the alternating workload, as a fraction (1 / n) of the key count: twice the
/// capacity of a cache of 10%.
const MANY_DIVISOR: u32 = 5;

/// A sequence of requested key numbers.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Key numbers in the order of the requests.
    pub requests: Vec<u32>,
    /// Key numbers are below this.
    pub key_bound: u32,
    /// Requests of the warm-up, which are not counted.
    pub warm_up: usize,
}

impl Trace {
    /// A trace over `keys` keys with `counted` measured requests and as many for the warm-up.
    pub fn generate(workload: Workload, keys: u32, counted: usize, seed: u64) -> Trace {
        let mut rng = SmallRng::seed_from_u64(seed);
        let total = counted * 2;
        let mut requests = Vec::with_capacity(total);
        let mut key_bound = keys;
        match workload {
            Workload::Zipf => {
                requests = Popularity::zipf(u64::from(keys), 0.99).draws(&mut rng, total)
            }
            Workload::Scan => {
                let mut law = Popularity::zipf(u64::from(keys), 0.99).sampler();
                while requests.len() < total {
                    requests
                        .extend((0..keys / SCAN_EVERY_DIVISOR).map(|_| law.draw(&mut rng) as u32));
                    let scan_end = key_bound + keys / SCAN_DIVISOR;
                    requests.extend(key_bound..scan_end);
                    key_bound = scan_end;
                }
                requests.truncate(total);
            }
            Workload::Alternating => {
                for turn in 0..total as u32 / 2 {
                    requests.push(turn % HOT_KEYS);
                    requests.push(HOT_KEYS + rng.random_range(0..keys / MANY_DIVISOR));
                }
                key_bound = HOT_KEYS + keys / MANY_DIVISOR;
            }
        }
        let warm_up = requests.len() / 2;
        Trace {
            requests,
            key_bound,
            warm_up,
        }
    }

    /// The share of counted requests for which `request` returns true.
    pub fn hit_ratio(&self, mut request: impl FnMut(u32) -> bool) -> f64 {
        let (warm_up, counted) = self.requests.split_at(self.warm_up);
        warm_up.iter().for_each(|&key| {
            request(key);
        });
        let hits = counted.iter().filter(|&&key| request(key)).count();
        hits as f64 / counted.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_its_seed() {
        for workload in Workload::ALL {
            let trace = Trace::generate(workload, 1000, 5000, 3);
            assert_eq!(
                trace.requests,
                Trace::generate(workload, 1000, 5000, 3).requests
            );
            assert_ne!(
                trace.requests,
                Trace::generate(workload, 1000, 5000, 4).requests
            );
            assert_eq!(trace.requests.len(), 10_000);
            assert!(trace.requests.iter().all(|&key| key < trace.key_bound));
        }
    }

    #[test]
    fn scanned_keys_occur_once() {
        let trace = Trace::generate(Workload::Scan, 1000, 5000, 3);
        let mut seen = vec![0; trace.key_bound as usize];
        trace
            .requests
            .iter()
            .for_each(|&key| seen[key as usize] += 1);
        assert!(trace.key_bound > 2000, "there were scans");
        assert!(seen[1000..].iter().all(|&times| times <= 1));
    }

    #[test]
    fn only_the_second_half_counts() {
        let trace = Trace::generate(Workload::Zipf, 100, 1000, 3);
        let mut asked = 0;
        let ratio = trace.hit_ratio(|_| {
            asked += 1;
            asked > 1000
        });
        assert_eq!((asked, ratio), (2000, 1.0));
    }
}
