//! Named workloads: data sets of the papers, Facebook's ETC pool as Minos models it, and YCSB's
//! core workloads.

use super::{Law, Mix, Sizes, Workload};
use glimmer_notation as notation;

/// The names that [`Workload::preset`] accepts, with descriptions.
pub const PRESETS: [(&str, &str); 9] = [
    (
        "tiny",
        "8-byte keys and values (MICA §5.1), 95% reads, Zipf 0.99",
    ),
    (
        "small",
        "16-byte keys, 64-byte values, 95% reads, Zipf 0.99",
    ),
    (
        "large",
        "128-byte keys, 1024-byte values, 95% reads, Zipf 0.99",
    ),
    (
        "etc[:SHARE[:MAX]]",
        "Facebook's ETC as Minos §5.2 has it: a share of the requests (0.00125) is for values of \
         1500 to MAX (500000) bytes",
    ),
    (
        "ycsb-a",
        "half reads, half updates, Zipf 0.99, 1000-byte records",
    ),
    ("ycsb-b", "95% reads, 5% updates"),
    ("ycsb-c", "reads alone"),
    (
        "ycsb-d",
        "95% reads, mostly of what was inserted last, 5% inserts",
    ),
    ("ycsb-f", "half reads, half read-modify-writes"),
];

/// The default number of keys.
const KEYS: u64 = 1_000_000;
/// The exponent of YCSB and MICA.
const EXPONENT: f64 = 0.99;
const ZIPF: Law = Law::Zipf { exponent: EXPONENT };
/// YCSB's records: `user` and 19 digits; ten fields of 100 bytes.
const YCSB_KEY_BYTES: usize = 23;
const YCSB_VALUE_BYTES: u32 = 1000;
/// Minos §5.2: 8-byte keys, one key in 1600 large.
const ETC_KEY_BYTES: usize = 8;
const ETC_KEYS_PER_LARGE: u64 = 1600;
const ETC_LARGE_SHARE: f64 = 0.00125;
const ETC_LARGE_MAX: u32 = 500_000;

impl Default for Workload {
    /// `small`.
    fn default() -> Workload {
        data_set(16, 64)
    }
}

fn data_set(key_bytes: usize, value_bytes: u32) -> Workload {
    Workload {
        keys: KEYS,
        law: ZIPF,
        key_bytes,
        sizes: Sizes::Fixed(value_bytes),
        mix: Mix::reads(0.95),
    }
}

fn ycsb(mix: Mix, law: Law) -> Workload {
    Workload {
        law,
        mix,
        ..data_set(YCSB_KEY_BYTES, YCSB_VALUE_BYTES)
    }
}

impl Workload {
    /// A workload by name, over this number of keys or a million by default.
    pub fn preset(name: &str, keys: Option<u64>) -> Result<Workload, String> {
        let keys = keys.unwrap_or(KEYS);
        let mut workload = match name {
            "tiny" => data_set(8, 8),
            "small" => data_set(16, 64),
            "large" => data_set(128, 1024),
            "ycsb-a" => ycsb(Mix::reads(0.5), ZIPF),
            "ycsb-b" => ycsb(Mix::reads(0.95), ZIPF),
            "ycsb-c" => ycsb(Mix::reads(1.0), ZIPF),
            "ycsb-d" => ycsb(
                Mix {
                    set: 0.0,
                    insert: 0.05,
                    ..Mix::reads(0.95)
                },
                Law::Latest { exponent: EXPONENT },
            ),
            "ycsb-f" => ycsb(
                Mix {
                    set: 0.0,
                    read_modify_write: 0.5,
                    ..Mix::reads(0.5)
                },
                ZIPF,
            ),
            _ => return etc(name, keys),
        };
        workload.keys = keys;
        workload.check()?;
        Ok(workload)
    }
}

/// `etc`, `etc:SHARE` or `etc:SHARE:MAX`.
fn etc(name: &str, keys: u64) -> Result<Workload, String> {
    let mut parts = name.split(':');
    let unknown = || {
        let names: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
        format!(
            "there is no workload {name:?}; there are {}",
            names.join(", ")
        )
    };
    if parts.next() != Some("etc") {
        return Err(unknown());
    }
    let within = 1500..=u64::from(super::VALUE_BYTES_MAX);
    let bytes = notation::within::<u32>(notation::bytes, within);
    let large_share = parts.next().map_or(Ok(ETC_LARGE_SHARE), notation::share)?;
    let large_max = parts.next().map_or(Ok(ETC_LARGE_MAX), bytes)?;
    if parts.next().is_some() {
        return Err(unknown());
    }
    let large_keys = keys.div_ceil(ETC_KEYS_PER_LARGE).min(keys - 1);
    let workload = Workload {
        keys,
        law: Law::Trimodal {
            exponent: EXPONENT,
            large_keys,
            large_share,
        },
        key_bytes: ETC_KEY_BYTES,
        sizes: Sizes::Trimodal {
            large_from: keys - large_keys,
            large_max,
        },
        mix: Mix::reads(0.95),
    };
    workload.check()?;
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound() {
        for (name, _) in PRESETS {
            let name = name.split('[').next().unwrap();
            let workload = Workload::preset(name, None).unwrap();
            assert_eq!((workload.keys, workload.check()), (KEYS, Ok(())), "{name}");
        }
        assert!(
            Workload::preset("ycsb-e", None)
                .unwrap_err()
                .contains("ycsb-d")
        );
        for wrong in [
            "",
            "etcetera",
            "etc:x",
            "etc:1.25",
            "etc:0.1:10",
            "etc:0.1:5000:3",
        ] {
            assert!(Workload::preset(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn etc_has_minoss_share_of_large_keys() {
        let etc = Workload::preset("etc:0.0075:1000000", Some(16_000_000)).unwrap();
        let Law::Trimodal {
            large_keys,
            large_share,
            ..
        } = etc.law
        else {
            panic!("{:?}", etc.law)
        };
        assert_eq!((large_keys, large_share), (10_000, 0.0075));
        assert_eq!(
            etc.sizes,
            Sizes::Trimodal {
                large_from: 15_990_000,
                large_max: 1_000_000
            }
        );
        assert!(etc.sizes.of(15_990_000) >= 1500 && etc.sizes.of(15_989_999) <= 1400);
    }
}
