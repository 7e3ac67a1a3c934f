//! Chooses the key of the next request.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rand::{Rng, RngCore};
use rand_distr::StandardNormal;
use serde::{Serialize, Serializer};

use super::{
    KEYS_MAX,
    shard::Shard,
    zipf::{EXPONENT_MAX, Zipf},
};

/// The largest number of shards that is read.
const SHARDS_MAX: f64 = 4096.0;
/// The largest shape or scale of a Pareto distribution that is read.
const POSITIVE_MAX: f64 = 1e12;

/// A law of key popularity. Key numbers are popularity ranks: the most popular key is number 0.
/// Servers hash keys, so keys of similar popularity are not neighbours in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// All keys are equally popular.
    Uniform,
    /// The key of rank `r`, counted from one, has a probability proportional to `r^-exponent`. YCSB
    /// and MICA (§5.1) use the exponent 0.99.
    Zipf {
        /// Above 0; may exceed 1.
        exponent: f64,
    },
    /// A share of the keys receives a share of the requests. Within both parts, all keys are
    /// equally popular.
    Hotspot {
        /// Share of the keys that are hot.
        keys_share: f64,
        /// Share of the requests that go to them.
        requests_share: f64,
    },
    /// Zipf's law on age: the key inserted last is the most popular (YCSB D).
    Latest {
        /// As for Zipf's law.
        exponent: f64,
    },
    /// The keys of one of several servers, among which clients divide keys that follow Zipf's law
    /// together. Each server has as many keys as this law is over. Key numbers are popularity ranks
    /// among the keys of the server.
    Shard {
        /// As for Zipf's law.
        exponent: f64,
        /// The server's number, below `shards`.
        shard: u32,
        /// Servers.
        shards: u32,
    },
    /// All keys in turn, repeatedly.
    Sequential,
    /// Zipf's law over all keys but the last `large_keys`. These receive `large_share` of the
    /// requests and are equally popular (Minos §5.2).
    Trimodal {
        /// As for Zipf's law.
        exponent: f64,
        /// Keys of large items.
        large_keys: u64,
        /// Share of the requests that go to them.
        large_share: f64,
    },
    /// A normal distribution over the keys, cut off where they end. Ranks count from its middle
    /// outwards, to both sides in turn.
    Normal {
        /// Standard deviation as a share of the keys.
        deviation: f64,
    },
    /// A Pareto distribution of the second kind (Lomax), cut off where the keys end: a key with a
    /// rank above `r` has the probability `(1 + r / scale)^-shape`.
    Pareto {
        /// Above 0.
        shape: f64,
        /// In keys. The larger, the flatter is the law.
        scale: f64,
    },
}

/// A law over a number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Popularity {
    /// The law.
    pub law: Law,
    /// Key numbers are below this. Keys inserted later have higher numbers.
    pub keys: u64,
}

impl Popularity {
    /// A law over `keys` keys; at least one, and at most [`KEYS_MAX`].
    pub fn new(law: Law, keys: u64) -> Self {
        assert!(keys > 0, "a workload has at least one key");
        assert!(keys <= KEYS_MAX, "a workload has at most {KEYS_MAX} keys");
        Popularity { law, keys }
    }

    /// All keys are equally popular.
    pub fn uniform(keys: u64) -> Self {
        Popularity::new(Law::Uniform, keys)
    }

    /// Zipf's law.
    pub fn zipf(keys: u64, exponent: f64) -> Self {
        Popularity::new(Law::Zipf { exponent }, keys)
    }

    /// Prepares to draw. This takes microseconds to milliseconds; drawing takes nanoseconds.
    pub fn sampler(&self) -> Sampler {
        self.sampler_in(0, 1, &Arc::new(AtomicU64::new(self.keys)))
    }

    /// The sampler of one of `parts` threads. The threads share the number of inserted keys and
    /// start a sequential scan at different keys.
    pub fn sampler_in(&self, part: u64, parts: u64, inserted: &Arc<AtomicU64>) -> Sampler {
        let keys = self.keys;
        let how = match self.law {
            Law::Uniform => How::Uniform,
            Law::Zipf { exponent } => How::Zipf(Zipf::new(keys, exponent)),
            Law::Hotspot {
                keys_share,
                requests_share,
            } => {
                let hot_keys = ((keys as f64 * keys_share).round() as u64).clamp(1, keys);
                let requests_share = if hot_keys == keys {
                    1.0
                } else {
                    requests_share
                };
                How::Hotspot {
                    hot_keys,
                    requests_share,
                }
            }
            Law::Latest { exponent } => How::Latest {
                age: Zipf::new(keys, exponent),
                inserted: inserted.clone(),
            },
            Law::Shard {
                exponent,
                shard,
                shards,
            } => How::Shard(Arc::new(Shard::new(keys, exponent, shard, shards))),
            Law::Sequential => How::Sequential {
                next: (u128::from(keys) * u128::from(part) / u128::from(parts)) as u64,
            },
            Law::Trimodal {
                exponent,
                large_keys,
                large_share,
            } => {
                let large_keys = large_keys.min(keys - 1);
                let large_share = if large_keys == 0 { 0.0 } else { large_share };
                How::Trimodal {
                    others: Zipf::new(keys - large_keys, exponent),
                    large_keys,
                    large_share,
                }
            }
            Law::Normal { deviation } => How::Normal {
                deviation: deviation * keys as f64,
            },
            Law::Pareto { shape, scale } => How::Pareto {
                power: -1.0 / shape,
                scale,
                within: 1.0 - (1.0 + keys as f64 / scale).powf(-shape),
            },
        };
        Sampler { how, keys }
    }

    /// Draws many key numbers in advance, for loops that must not spend time on drawing. Key
    /// numbers are below 2^32.
    pub fn draws(&self, rng: &mut impl Rng, count: usize) -> Vec<u32> {
        assert!(self.keys <= 1 << 32, "key numbers of 32 bits");
        let mut sampler = self.sampler();
        (0..count).map(|_| sampler.draw(rng) as u32).collect()
    }
}

/// A prepared law.
#[derive(Clone, Debug)]
pub struct Sampler {
    how: How,
    keys: u64,
}

#[derive(Clone, Debug)]
enum How {
    Uniform,
    Zipf(Zipf),
    Hotspot {
        hot_keys: u64,
        requests_share: f64,
    },
    Latest {
        age: Zipf,
        inserted: Arc<AtomicU64>,
    },
    Shard(Arc<Shard>),
    Sequential {
        next: u64,
    },
    Trimodal {
        others: Zipf,
        large_keys: u64,
        large_share: f64,
    },
    Normal {
        /// In keys.
        deviation: f64,
    },
    Pareto {
        power: f64,
        scale: f64,
        /// The probability of the keys that exist.
        within: f64,
    },
}

/// A number below `bound`, uniform up to an error of `bound` / 2^64.
#[inline]
fn below(rng: &mut impl RngCore, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

impl Sampler {
    /// Draws a key number.
    #[inline]
    pub fn draw(&mut self, rng: &mut impl Rng) -> u64 {
        match &mut self.how {
            How::Uniform => below(rng, self.keys),
            How::Zipf(law) => law.draw(rng) - 1,
            How::Hotspot {
                hot_keys,
                requests_share,
            } => {
                if rng.random::<f64>() < *requests_share {
                    below(rng, *hot_keys)
                } else {
                    *hot_keys + below(rng, self.keys - *hot_keys)
                }
            }
            // The law covers the initial number of keys: older keys are no longer requested.
            How::Latest { age, inserted } => inserted.load(Ordering::Relaxed) - age.draw(rng),
            How::Shard(shard) => shard.draw(rng),
            How::Sequential { next } => {
                let number = *next;
                *next = if number + 1 == self.keys {
                    0
                } else {
                    number + 1
                };
                number
            }
            How::Trimodal {
                others,
                large_keys,
                large_share,
            } => {
                if rng.random::<f64>() < *large_share {
                    self.keys - *large_keys + below(rng, *large_keys)
                } else {
                    others.draw(rng) - 1
                }
            }
            How::Normal { deviation } => loop {
                let at: f64 = rng.sample::<f64, _>(StandardNormal) * *deviation;
                let rank = 2 * (at.abs() as u64) + u64::from(at < 0.0);
                if rank < self.keys {
                    return rank;
                }
            },
            How::Pareto {
                power,
                scale,
                within,
            } => {
                let above = 1.0 - rng.random::<f64>() * *within;
                let rank = *scale * (above.powf(*power) - 1.0);
                (rank as u64).min(self.keys - 1)
            }
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Uniform => write!(out, "uniform"),
            Law::Zipf { exponent } => write!(out, "zipf:{exponent}"),
            Law::Hotspot {
                keys_share,
                requests_share,
            } => {
                write!(out, "hotspot:{keys_share}:{requests_share}")
            }
            Law::Latest { exponent } => write!(out, "latest:{exponent}"),
            Law::Shard {
                exponent,
                shard,
                shards,
            } => write!(out, "shard:{exponent}:{shard}:{shards}"),
            Law::Sequential => write!(out, "sequential"),
            Law::Trimodal {
                exponent,
                large_keys,
                large_share,
            } => {
                write!(out, "trimodal:{exponent}:{large_keys}:{large_share}")
            }
            Law::Normal { deviation } => write!(out, "normal:{deviation}"),
            Law::Pareto { shape, scale } => write!(out, "pareto:{shape}:{scale}"),
        }
    }
}

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Law, String> {
        let (name, figures) = text.split_once(':').unwrap_or((text, ""));
        let figures: Vec<f64> = figures
            .split(':')
            .filter(|figure| !figure.is_empty())
            .map(|figure| {
                figure
                    .parse()
                    .map_err(|_| format!("{figure:?} is not a number"))
            })
            .collect::<Result<_, _>>()?;
        let exponent = |exponent: f64| match exponent > 0.0 && exponent <= EXPONENT_MAX {
            true => Ok(exponent),
            false => Err(format!("an exponent is above 0 and at most {EXPONENT_MAX}")),
        };
        let share = |share: f64| match (0.0..=1.0).contains(&share) {
            true => Ok(share),
            false => Err("a share is from 0 to 1".to_owned()),
        };
        let positive = |figure: f64| match figure > 0.0 && figure <= POSITIVE_MAX {
            true => Ok(figure),
            false => Err(format!(
                "a shape or a scale is above 0 and at most {POSITIVE_MAX}"
            )),
        };
        match (name, figures[..].as_ref()) {
            ("uniform", []) => Ok(Law::Uniform),
            ("sequential", []) => Ok(Law::Sequential),
            ("zipf", []) => Ok(Law::Zipf { exponent: 0.99 }),
            ("zipf", &[figure]) => Ok(Law::Zipf {
                exponent: exponent(figure)?,
            }),
            ("latest", []) => Ok(Law::Latest { exponent: 0.99 }),
            ("latest", &[figure]) => Ok(Law::Latest {
                exponent: exponent(figure)?,
            }),
            ("hotspot", []) => Ok(Law::Hotspot {
                keys_share: 0.2,
                requests_share: 0.8,
            }),
            ("hotspot", &[keys, requests]) => Ok(Law::Hotspot {
                keys_share: share(keys)?,
                requests_share: share(requests)?,
            }),
            ("normal", []) => Ok(Law::Normal { deviation: 0.125 }),
            ("normal", &[figure]) => match share(figure)? > 0.0 {
                true => Ok(Law::Normal { deviation: figure }),
                false => Err("a standard deviation is above 0".to_owned()),
            },
            ("shard", &[figure, shard, shards]) => {
                let whole = |figure: f64| figure.fract() == 0.0 && figure >= 0.0;
                match whole(shard) && whole(shards) && shard < shards && shards <= SHARDS_MAX {
                    true => Ok(Law::Shard {
                        exponent: exponent(figure)?,
                        shard: shard as u32,
                        shards: shards as u32,
                    }),
                    false => Err(format!(
                        "a shard has a number from 0 on, below that of shards, of at most \
                         {SHARDS_MAX}"
                    )),
                }
            }
            ("pareto", []) => Ok(Law::Pareto {
                shape: 1.16,
                scale: 6800.0,
            }),
            ("pareto", &[shape, scale]) => Ok(Law::Pareto {
                shape: positive(shape)?,
                scale: positive(scale)?,
            }),
            _ => Err(
                "uniform, zipf[:EXPONENT], hotspot[:KEYS:REQUESTS], latest[:EXPONENT], \
                      normal[:DEVIATION], pareto[:SHAPE:SCALE], shard:EXPONENT:SHARD:SHARDS or \
                      sequential"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    const DRAWS: usize = 64 * 4096;

    fn counts(popularity: Popularity) -> Vec<u32> {
        let mut seen = vec![0; popularity.keys as usize];
        let draws = popularity.draws(&mut SmallRng::seed_from_u64(5), DRAWS);
        draws.iter().for_each(|&key| seen[key as usize] += 1);
        seen
    }

    #[test]
    fn uniform_draws_cover_all_keys_alike() {
        // Five standard deviations of a count with mean 4096.
        let seen = counts(Popularity::uniform(64));
        assert!(
            seen.iter().all(|&count| count.abs_diff(4096) < 5 * 64),
            "{seen:?}"
        );
    }

    #[test]
    fn a_hot_part_of_the_keys_receives_its_part_of_the_requests() {
        let law = Law::Hotspot {
            keys_share: 0.25,
            requests_share: 0.9,
        };
        let seen = counts(Popularity::new(law, 64));
        let hot: u32 = seen[..16].iter().sum();
        assert!((f64::from(hot) / DRAWS as f64 - 0.9).abs() < 0.005, "{hot}");
        let mean = (DRAWS as u32 - hot) / 48;
        assert!(
            seen[16..]
                .iter()
                .all(|&count| count.abs_diff(mean) < mean / 5),
            "{seen:?}"
        );
        let all = Law::Hotspot {
            keys_share: 1.0,
            requests_share: 0.1,
        };
        assert!(
            counts(Popularity::new(all, 4))
                .iter()
                .all(|&count| count > 0)
        );
    }

    #[test]
    fn the_key_inserted_last_is_the_most_popular() {
        let inserted = Arc::new(AtomicU64::new(100));
        let law = Popularity::new(Law::Latest { exponent: 0.99 }, 100);
        let mut sampler = law.sampler_in(0, 1, &inserted);
        let mut rng = SmallRng::seed_from_u64(3);
        for newest in [100, 150, 1000] {
            inserted.store(newest, Ordering::Relaxed);
            let mut seen = vec![0u32; newest as usize];
            (0..10_000).for_each(|_| seen[sampler.draw(&mut rng) as usize] += 1);
            assert!(seen[newest as usize - 1] > 1500);
            assert!(
                seen[..newest as usize - 100]
                    .iter()
                    .all(|&count| count == 0)
            );
        }
    }

    #[test]
    fn a_scan_visits_every_key_in_turn_and_parts_begin_apart() {
        let law = Popularity::new(Law::Sequential, 10);
        let inserted = Arc::new(AtomicU64::new(10));
        let mut rng = SmallRng::seed_from_u64(0);
        let mut scan = |part| -> Vec<u64> {
            let mut sampler = law.sampler_in(part, 2, &inserted);
            (0..11).map(|_| sampler.draw(&mut rng)).collect()
        };
        assert_eq!(scan(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        assert_eq!(scan(1), [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn large_items_are_asked_for_as_often_as_told_and_all_alike() {
        let law = Law::Trimodal {
            exponent: 0.99,
            large_keys: 8,
            large_share: 0.25,
        };
        let seen = counts(Popularity::new(law, 64));
        let mean = DRAWS as u32 / 4 / 8;
        assert!(
            seen[56..]
                .iter()
                .all(|&count| count.abs_diff(mean) < mean / 10),
            "{seen:?}"
        );
        assert!(seen[0] > 10 * seen[40]);
    }

    /// Two neighbouring ranks lie at the same distance from the middle.
    #[test]
    fn a_normal_law_is_flat_in_the_middle_and_falls_to_both_sides() {
        let seen = counts(Popularity::new(Law::Normal { deviation: 0.25 }, 64));
        // One standard deviation is 16 keys to either side: ranks below 32.
        let within: u32 = seen[..32].iter().sum();
        let share = f64::from(within) / DRAWS as f64;
        // Of two standard deviations, which are all keys, one has this share.
        assert!((share - 0.6827 / 0.9545).abs() < 0.005, "{share}");
        assert!(seen[0].abs_diff(seen[1]) < seen[0] / 10, "{seen:?}");
        assert!(seen[63] > 0 && seen[63] < seen[0] / 4, "{seen:?}");
        assert_eq!(
            counts(Popularity::new(Law::Normal { deviation: 0.1 }, 1)).len(),
            1
        );
    }

    #[test]
    fn a_pareto_law_gives_the_first_keys_their_share() {
        let law = "pareto".parse().unwrap();
        let mut sampler = Popularity::new(law, 1_000_000).sampler();
        let mut rng = SmallRng::seed_from_u64(11);
        let ranks: Vec<u64> = (0..DRAWS).map(|_| sampler.draw(&mut rng)).collect();
        let hot = ranks.iter().filter(|&&rank| rank < 1024).count() as f64 / DRAWS as f64;
        // 1 - (1 + 1024 / 6800)^-1.16, of the keys that exist.
        assert!((hot - 0.1507).abs() < 0.004, "{hot}");
        assert!(ranks.iter().all(|&rank| rank < 1_000_000));
        assert_eq!(counts(Popularity::new(law, 1)), [DRAWS as u32]);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "uniform",
            "zipf:1.2",
            "hotspot:0.1:0.9",
            "latest:0.5",
            "normal:0.2",
            "pareto:1.5:300",
            "shard:0.99:3:16",
            "sequential",
        ] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Law::Zipf { exponent: 0.99 }));
        for wrong in [
            "",
            "zip",
            "zipf:0",
            "zipf:-1",
            "zipf:x",
            "zipf:NaN",
            "hotspot:2:0.5",
            "hotspot:1",
            "normal:0",
            "normal:2",
            "pareto:1",
            "pareto:0:5",
            "shard:0.99:16:16",
            "shard:0.99:0.5:16",
            "shard:0.99:0",
            "uniform:1",
        ] {
            assert!(wrong.parse::<Law>().is_err(), "{wrong}");
        }
    }
}
