//! Lengths of values. All versions of a key's value have the same length, drawn once from the key's
//! number.

use std::{fmt, fs::File, io::Read as _, ops::Range, path::Path, str::FromStr, sync::Arc};

use glimmer_notation as notation;

/// Longest value in bytes that the load generator writes.
pub const VALUE_BYTES_MAX: u32 = 64 << 20;
/// Longest file with a distribution of lengths, in bytes. A longer one is refused.
const EMPIRICAL_FILE_BYTES_MAX: u64 = 16 << 20;

/// In Minos's model of Facebook's ETC pool (§5.2): the share of tiny items among those that are not
/// large, and the bounds of the classes in bytes.
const TINY_SHARE: f64 = 0.4;
const TINY: (u32, u32) = (1, 13);
const SMALL: (u32, u32) = (14, 1400);
const LARGE_MIN: u32 = 1500;
/// A mean length is that of about this many keys, spread evenly over those of a class.
const KEYS_SAMPLED: u64 = 1000;

/// A law of value lengths.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All values have this length.
    Fixed(u32),
    /// Uniform over this range.
    Uniform(u32, u32),
    /// For keys below `large_from`: 40% tiny (1 to 13 bytes) and 60% small (14 to 1400). For the
    /// other keys: large (1500 to `large_max`). Uniform within each class (Minos §5.2).
    Trimodal {
        /// The first key with a large value.
        large_from: u64,
        /// Longest value in bytes.
        large_max: u32,
    },
    /// A measured distribution.
    Empirical(Empirical),
}

/// Lengths with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    name: String,
    /// The cumulative share of keys up to each length, in units of 2^-64.
    steps: Arc<[(u64, u32)]>,
}

impl Empirical {
    /// A distribution of lengths in bytes with their weights.
    pub fn new(name: &str, weights: &[(u32, f64)]) -> Result<Empirical, String> {
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let sound = weights
            .iter()
            .all(|&(bytes, weight)| weight >= 0.0 && bytes <= VALUE_BYTES_MAX);
        if !(sound && total > 0.0 && total.is_finite()) {
            return Err(format!(
                "lengths up to {VALUE_BYTES_MAX} and weights of which one is above zero"
            ));
        }
        let mut sum = 0.0;
        let mut steps: Vec<(u64, u32)> = Vec::new();
        for &(bytes, weight) in weights.iter().filter(|&&(_, weight)| weight > 0.0) {
            sum += weight;
            steps.push(((sum / total * 2f64.powi(64)) as u64, bytes));
        }
        steps.last_mut().expect("one weight is above zero").0 = u64::MAX;
        Ok(Empirical {
            name: name.to_owned(),
            steps: steps.into(),
        })
    }

    /// Reads a file with a length and a weight on every line, separated by a comma or blanks. `#`
    /// begins a comment.
    pub fn read(file: &Path) -> Result<Empirical, String> {
        let mut text = String::new();
        File::open(file)
            .and_then(|file| {
                let mut part = file.take(EMPIRICAL_FILE_BYTES_MAX + 1);
                part.read_to_string(&mut text)
            })
            .map_err(|error| format!("{}: {error}", file.display()))?;
        if text.len() as u64 > EMPIRICAL_FILE_BYTES_MAX {
            let most = notation::memory(EMPIRICAL_FILE_BYTES_MAX as f64);
            return Err(format!("{} has more than {most}", file.display()));
        }
        let mut weights = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut fields = line
                .split([',', ' ', '\t'])
                .filter(|field| !field.is_empty());
            match (fields.next(), fields.next(), fields.next()) {
                (None, ..) => {}
                (Some(bytes), Some(weight), None)
                    if bytes.parse::<u32>().is_ok() && weight.parse::<f64>().is_ok() =>
                {
                    weights.push((
                        bytes.parse().expect("parsed"),
                        weight.parse().expect("parsed"),
                    ));
                }
                _ => {
                    return Err(format!(
                        "{}, line {}: a length and a weight",
                        file.display(),
                        number + 1
                    ));
                }
            }
        }
        Empirical::new(&file.display().to_string(), &weights)
    }
}

/// A 64-bit hash of a key's number, from which its length is drawn.
#[inline]
fn scatter(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A length from `min` to `max`, uniform over hashes.
#[inline]
fn between((min, max): (u32, u32), hash: u64) -> u32 {
    min + ((u128::from(hash) * u128::from(max - min + 1)) >> 64) as u32
}

impl Sizes {
    /// Length in bytes of a key's value.
    #[inline]
    pub fn of(&self, number: u64) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Uniform(min, max) => between((*min, *max), scatter(number)),
            Sizes::Trimodal {
                large_from,
                large_max,
            } => {
                let hash = scatter(number);
                let within = scatter(hash);
                if number >= *large_from {
                    between((LARGE_MIN, *large_max), within)
                } else if (hash as f64) < TINY_SHARE * 2f64.powi(64) {
                    between(TINY, within)
                } else {
                    between(SMALL, within)
                }
            }
            Sizes::Empirical(Empirical { steps, .. }) => {
                let hash = scatter(number);
                steps[steps.partition_point(|&(end, _)| end < hash)].1
            }
        }
    }

    /// Mean length in bytes of the values of the keys below `keys`, from a sample of them. Large
    /// values are sampled apart, because they are few and most of the bytes.
    pub fn mean(&self, keys: u64) -> f64 {
        let large_from = match self {
            Sizes::Trimodal { large_from, .. } => keys.min(*large_from),
            _ => keys,
        };
        let bytes = |numbers: Range<u64>| {
            let count = numbers.end - numbers.start;
            let sampled = numbers.step_by((count / KEYS_SAMPLED).max(1) as usize);
            let (sum, of) = sampled.fold((0.0, 0), |(sum, of), number| {
                (sum + f64::from(self.of(number)), of + 1)
            });
            sum / f64::from(of.max(1)) * count as f64
        };
        (bytes(0..large_from) + bytes(large_from..keys)) / keys.max(1) as f64
    }

    /// Longest value in bytes.
    pub fn max(&self) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Uniform(_, max) => *max,
            Sizes::Trimodal { large_max, .. } => *large_max,
            Sizes::Empirical(empirical) => empirical
                .steps
                .iter()
                .map(|&(_, bytes)| bytes)
                .max()
                .unwrap_or(0),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(bytes) => write!(out, "{bytes}"),
            Sizes::Uniform(min, max) => write!(out, "uniform:{min}:{max}"),
            Sizes::Trimodal {
                large_from,
                large_max,
            } => write!(out, "trimodal:{large_from}:{large_max}"),
            Sizes::Empirical(empirical) => write!(out, "empirical:{}", empirical.name),
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let bytes = notation::within::<u32>(notation::bytes, 0..=u64::from(VALUE_BYTES_MAX));
        if let Some(file) = text.strip_prefix("empirical:") {
            return Ok(Sizes::Empirical(Empirical::read(Path::new(file))?));
        }
        match text
            .strip_prefix("uniform:")
            .map(|ends| ends.split_once(':'))
        {
            Some(Some((min, max))) if bytes(min)? <= bytes(max)? => {
                Ok(Sizes::Uniform(bytes(min)?, bytes(max)?))
            }
            Some(_) => Err("uniform:MIN:MAX".to_owned()),
            None => bytes(text)
                .map(Sizes::Fixed)
                .map_err(|error| format!("{error}; or uniform:MIN:MAX, or empirical:FILE")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn mean(sizes: &Sizes, keys: std::ops::Range<u64>) -> f64 {
        let count = (keys.end - keys.start) as f64;
        keys.map(|key| f64::from(sizes.of(key))).sum::<f64>() / count
    }

    #[test]
    fn uniform_lengths_reach_both_ends() {
        let sizes: Sizes = "uniform:10:20".parse().unwrap();
        let mut seen = [0u32; 21];
        (0..11_000).for_each(|key| seen[sizes.of(key) as usize] += 1);
        assert!(seen[..10].iter().all(|&count| count == 0));
        assert!(
            seen[10..].iter().all(|&count| count.abs_diff(1000) < 160),
            "{seen:?}"
        );
    }

    #[test]
    fn trimodal_lengths_are_minoss() {
        let sizes = Sizes::Trimodal {
            large_from: 100_000,
            large_max: 500_000,
        };
        let tiny = (0..100_000).filter(|&key| sizes.of(key) <= 13).count();
        assert!(tiny.abs_diff(40_000) < 800, "{tiny}");
        assert!((0..100_000).all(|key| (1..=1400).contains(&sizes.of(key))));
        assert!((100_000..110_000).all(|key| (1500..=500_000).contains(&sizes.of(key))));
        let large = mean(&sizes, 100_000..110_000);
        assert!((large - 250_750.0).abs() < 5.0 * 1440.0, "{large}");
        let others = mean(&sizes, 0..100_000);
        assert!(
            (others - (0.4 * 7.0 + 0.6 * 707.0)).abs() < 5.0 * 1.5,
            "{others}"
        );
    }

    #[test]
    fn a_mean_counts_the_few_large_values_that_come_last() {
        let trimodal = Sizes::Trimodal {
            large_from: 49_970,
            large_max: 1_000_000,
        };
        for (sizes, keys) in [
            (&trimodal, 50_000),
            (&trimodal, 1000),
            (&Sizes::Uniform(0, 1000), 123_456),
            (&Sizes::Fixed(64), 3),
        ] {
            let (exact, sampled) = (mean(sizes, 0..keys), sizes.mean(keys));
            assert!((sampled / exact - 1.0).abs() < 0.1, "{sampled}, {exact}");
        }
        assert_eq!(Sizes::Fixed(64).mean(0), 0.0);
    }

    #[test]
    fn empirical_lengths_follow_their_weights() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sizes");
        fs::write(&file, "# bytes weight\n100, 1\n200\t2 # most\n\n5 1\n7 0\n").unwrap();
        let sizes: Sizes = format!("empirical:{}", file.display()).parse().unwrap();
        let count = |bytes| (0..40_000).filter(|&key| sizes.of(key) == bytes).count();
        assert!(
            count(100).abs_diff(10_000) < 500
                && count(200).abs_diff(20_000) < 500
                && count(5).abs_diff(10_000) < 500
        );
        assert_eq!((count(7), sizes.max()), (0, 200));
        fs::write(&file, "100\n").unwrap();
        assert!(Empirical::read(&file).unwrap_err().contains("line 1"));
        let endless = Empirical::read(Path::new("/dev/zero"));
        assert!(endless.unwrap_err().ends_with("more than 16 MiB"));
        assert!(Empirical::new("none", &[]).is_err());
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["64", "uniform:1:1024"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        assert_eq!("uniform:1k:2k".parse(), Ok(Sizes::Uniform(1024, 2048)));
        for wrong in [
            "",
            "x",
            "-1",
            "uniform:5",
            "uniform:9:5",
            "99999999999",
            "empirical:/nowhere",
        ] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
