//! The requests of a workload: which keys, which value sizes, which verbs, in which order.

mod ask;
mod drawn;
pub mod key;
mod mix;
pub mod popularity;
mod presets;
mod shard;
mod sizes;
pub mod trace;
pub mod value;
pub mod zipf;

pub use ask::{Ask, Source, Then, Verb};
pub use drawn::Drawn;
pub use key::Key;
pub use mix::{Mix, TTL_S_MAX, Ttl};
pub use popularity::{Law, Popularity, Sampler};
pub use presets::PRESETS;
pub use shard::Shard;
pub use sizes::{Empirical, Sizes, VALUE_BYTES_MAX};

use serde::{Serialize, Serializer};

/// The largest number of keys. Laws of popularity compute with `f64`, which has every whole number
/// up to this one.
pub const KEYS_MAX: u64 = 1 << f64::MANTISSA_DIGITS;

/// A complete description of randomly drawn requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// The number of keys that exist before the measurement.
    pub keys: u64,
    /// Their popularity.
    #[serde(serialize_with = "as_text")]
    pub law: Law,
    /// Length of a key in bytes.
    pub key_bytes: usize,
    /// Lengths of the values.
    #[serde(serialize_with = "as_text")]
    pub sizes: Sizes,
    /// The mix of verbs.
    pub mix: Mix,
}

fn as_text<S: Serializer>(
    value: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

impl Workload {
    /// The key popularity.
    pub fn popularity(&self) -> Popularity {
        Popularity::new(self.law, self.keys)
    }

    /// The key with this number.
    #[inline]
    pub fn key(&self, number: u64) -> Key {
        Key::new(number, self.key_bytes)
    }

    /// Checks that the fields fit together.
    pub fn check(&self) -> Result<(), String> {
        self.mix.check()?;
        if self.keys == 0 {
            return Err("a workload has at least one key".to_owned());
        }
        if self.keys > KEYS_MAX {
            return Err(format!("a workload has at most {KEYS_MAX} keys"));
        }
        if Key::count(self.key_bytes).is_some_and(|count| self.keys > count) {
            return Err(format!(
                "there are not {} keys of {} bytes",
                self.keys, self.key_bytes
            ));
        }
        Ok(())
    }
}

/// The thread, out of `parts`, to which a key belongs.
#[inline]
pub(crate) fn key_part(number: u64, parts: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(mixed) * u128::from(parts)) >> 64) as u64
}
