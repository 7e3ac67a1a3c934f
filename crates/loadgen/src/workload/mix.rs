//! The mix of verbs and their options.

use std::{fmt, str::FromStr};

use rand::Rng;
use serde::Serialize;

/// Shares of the verbs, which are drawn independently of each other and of the keys. They sum to
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// Reads.
    pub get: f64,
    /// Writes of keys that exist.
    pub set: f64,
    /// Writes of keys that have not existed before (YCSB D).
    pub insert: f64,
    /// Reads that are followed by a write of the same key (YCSB F).
    pub read_modify_write: f64,
    /// Deletes.
    pub delete: f64,
    /// Keys per read. If a read has several keys, the shares count keys, so that reads are rarer
    /// accordingly.
    pub keys_per_get: u32,
    /// Whether a key that was not found is then written, as by an application in front of a
    /// database.
    pub set_on_miss: bool,
    /// When written values expire.
    pub ttl: Ttl,
}

impl Mix {
    /// Reads with this probability, otherwise writes.
    pub fn reads(get: f64) -> Mix {
        Mix {
            get,
            set: 1.0 - get,
            insert: 0.0,
            read_modify_write: 0.0,
            delete: 0.0,
            keys_per_get: 1,
            set_on_miss: false,
            ttl: Ttl::Never,
        }
    }

    /// Sets the number of keys per read.
    pub fn keys_per_get(self, keys: u32) -> Mix {
        assert!(keys > 0, "a read has at least one key");
        Mix {
            keys_per_get: keys,
            ..self
        }
    }

    /// Checks that the shares are valid and sum to one.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            self.get,
            self.set,
            self.insert,
            self.read_modify_write,
            self.delete,
        ];
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || (sum - 1.0).abs() > 1e-9 {
            return Err(format!("the shares of the verbs sum to {sum} and not to 1"));
        }
        if self.keys_per_get == 0 {
            return Err("a read has at least one key".to_owned());
        }
        Ok(())
    }
}

/// When an item expires after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ttl {
    /// Never.
    Never,
    /// After this many seconds.
    Seconds(u32),
    /// After a number of seconds drawn uniformly from this range.
    Uniform(u32, u32),
}

/// The longest time in seconds that memcached treats as relative.
pub const TTL_S_MAX: u32 = 30 * 24 * 60 * 60;

impl Ttl {
    /// Draws a time to live in seconds; zero means never.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        match *self {
            Ttl::Never => 0,
            Ttl::Seconds(seconds) => seconds,
            Ttl::Uniform(min, max) => rng.random_range(min..=max),
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ttl::Never => write!(out, "never"),
            Ttl::Seconds(seconds) => write!(out, "{seconds}"),
            Ttl::Uniform(min, max) => write!(out, "uniform:{min}:{max}"),
        }
    }
}

impl FromStr for Ttl {
    type Err = String;

    fn from_str(text: &str) -> Result<Ttl, String> {
        let seconds = |text: &str| match text.parse::<u32>() {
            Ok(seconds) if (1..=TTL_S_MAX).contains(&seconds) => Ok(seconds),
            _ => Err(format!(
                "seconds from 1 to {TTL_S_MAX}, uniform:MIN:MAX or never"
            )),
        };
        if text == "never" {
            return Ok(Ttl::Never);
        }
        match text
            .strip_prefix("uniform:")
            .map(|ends| ends.split_once(':'))
        {
            Some(Some((min, max))) if seconds(min)? <= seconds(max)? => {
                Ok(Ttl::Uniform(seconds(min)?, seconds(max)?))
            }
            Some(_) => Err("uniform:MIN:MAX".to_owned()),
            None => seconds(text).map(Ttl::Seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    #[test]
    fn shares_sum_to_one() {
        assert_eq!(Mix::reads(0.95).check(), Ok(()));
        assert!(
            Mix {
                delete: 0.1,
                ..Mix::reads(0.95)
            }
            .check()
            .is_err()
        );
        assert!(
            Mix {
                set: -0.1,
                delete: 0.15,
                ..Mix::reads(0.95)
            }
            .check()
            .is_err()
        );
    }

    #[test]
    fn times_to_live_are_read_and_drawn() {
        let mut rng = SmallRng::seed_from_u64(1);
        for (text, range) in [
            ("never", 0..=0),
            ("60", 60..=60),
            ("uniform:10:20", 10..=20),
        ] {
            let ttl: Ttl = text.parse().unwrap();
            assert_eq!(ttl.to_string(), text);
            assert!((0..1000).all(|_| range.contains(&ttl.draw(&mut rng))));
        }
        for wrong in ["0", "", "uniform:3", "uniform:9:3", "99999999"] {
            assert!(wrong.parse::<Ttl>().is_err(), "{wrong}");
        }
    }
}
