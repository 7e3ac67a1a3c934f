//! Named workloads: data sets of the papers, Facebook's ETC pool as Minos models it, and YCSB's
//! core workloads.

use super::{Law, Mix, Sizes, Workload};
use glimmer_notation as notation;

/// The names that [`Workload::preset`] accepts, with descriptions.
pub const PRESETS: [(&str, &str); 10] = [
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
        "Facebook's ETC as Minos §5.2 has it: a share of the requests (0.00125, or 0.125%) is for \
         values of 1500 to MAX (500000) bytes; the paper's p_L are percentages",
    ),
    (
        "minos[:SHARE[:MAX]]",
        "the workload of Minos §5.2 at its size: as etc, with 16 million keys of which 10,000 are \
         large",
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
/// The keys of Minos §5.2, of which 10,000 are large.
const MINOS_KEYS: u64 = 16_000_000;
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
    /// A workload by name, over this number of keys. The default is a million, with `minos` 16
    /// million.
    pub fn preset(name: &str, keys: Option<u64>) -> Result<Workload, String> {
        if let Some(workload) = trimodal(name, keys)? {
            return Ok(workload);
        }
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
            _ => return Err(unknown(name)),
        };
        workload.keys = keys.unwrap_or(KEYS);
        workload.check()?;
        Ok(workload)
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
    let names = names.join(", ");
    format!("there is no workload {name:?}; there are {names}")
}

/// A share as Minos writes it, `0.125%`, or as everything else here does, `0.00125`.
fn share(text: &str) -> Result<f64, String> {
    let Some(percent) = text.strip_suffix('%') else {
        return notation::share(text);
    };
    match percent.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage is from 0% to 100%, such as 0.125%".to_owned()),
    }
}

/// `etc` or `minos`, alone or as `etc:SHARE` or `etc:SHARE:MAX`; `None` for another name.
fn trimodal(name: &str, keys: Option<u64>) -> Result<Option<Workload>, String> {
    let mut parts = name.split(':');
    let keys_by_default = match parts.next() {
        Some("etc") => KEYS,
        Some("minos") => MINOS_KEYS,
        _ => return Ok(None),
    };
    let keys = keys.unwrap_or(keys_by_default);
    let within = 1500..=u64::from(super::VALUE_BYTES_MAX);
    let bytes = notation::within::<u32>(notation::bytes, within);
    let large_share = parts.next().map_or(Ok(ETC_LARGE_SHARE), share)?;
    let large_max = parts.next().map_or(Ok(ETC_LARGE_MAX), bytes)?;
    if parts.next().is_some() || keys == 0 {
        return Err(unknown(name));
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
    Ok(Some(workload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{KEYS_MAX, Popularity};
    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::SmallRng};

    /// Minos's own figures (§5.2), and what the arithmetic makes of them: at 0.125% and 500 KB,
    /// large requests move 42% of the bytes.
    #[test]
    fn minos_is_the_papers_workload() {
        let minos = Workload::preset("minos", None).unwrap();
        assert_eq!(
            (minos.keys, minos.key_bytes, minos.mix.get),
            (16_000_000, 8, 0.95)
        );
        let Law::Trimodal {
            large_keys,
            large_share,
            exponent,
        } = minos.law
        else {
            panic!("{:?}", minos.law)
        };
        assert_eq!((large_keys, large_share, exponent), (10_000, 0.00125, 0.99));
        assert_eq!(minos.sizes.max(), 500_000);
        let [others, large] = [0.4 * 7.0 + 0.6 * 707.0, 250_750.0];
        let bytes = large_share * large;
        let share = bytes / (bytes + (1.0 - large_share) * others);
        assert!((share - 0.42).abs() < 0.01, "{share}");
        let small = Workload::preset("minos:0.75%:1000000", Some(160_000)).unwrap();
        assert_eq!(
            small,
            Workload::preset("etc:0.0075:1000000", Some(160_000)).unwrap()
        );
        assert!(matches!(
            small.law,
            Law::Trimodal {
                large_keys: 100,
                ..
            }
        ));
        assert!(Workload::preset("minos", Some(0)).is_err());
    }

    proptest! {
        #[test]
        fn a_preset_is_read_with_every_share_and_length(
            share in 0.0..=1.0f64, max in 1500u32..=64 << 20, keys in 2u64..1 << 40,
        ) {
            for name in ["etc", "minos"] {
                let workload = Workload::preset(&format!("{name}:{share}:{max}"), Some(keys));
                let Workload { law, sizes, .. } = workload.unwrap();
                let Law::Trimodal { large_share, large_keys, .. } = law else { panic!("{law:?}") };
                prop_assert_eq!((large_share, sizes.max()), (share, max));
                prop_assert!(large_keys >= 1 && large_keys < keys);
            }
        }

        #[test]
        fn no_name_of_a_preset_ends_the_program(
            name in "(etc|minos|[a-z]{0,5})(:[0-9.%a-z]{0,9}){0,3}",
        ) {
            let _ = Workload::preset(&name, Some(1000));
        }
    }

    #[test]
    fn more_keys_than_laws_can_count_are_refused() {
        for name in ["tiny", "small", "etc", "ycsb-d"] {
            for keys in [KEYS_MAX + 1, u64::MAX] {
                let error = Workload::preset(name, Some(keys)).unwrap_err();
                assert!(error.contains("at most"), "{name}: {error}");
            }
        }
        let mut rng = SmallRng::seed_from_u64(1);
        for law in [
            "uniform",
            "zipf",
            "zipf:1.2",
            "hotspot",
            "latest",
            "normal:1",
            "pareto:0.1:1e12",
            "shard:0.99:4095:4096",
            "sequential",
        ] {
            let mut sampler = Popularity::new(law.parse().unwrap(), KEYS_MAX).sampler();
            let mut draws = (0..1000).map(|_| sampler.draw(&mut rng));
            assert!(draws.all(|key| key < KEYS_MAX), "{law}");
        }
    }

    #[test]
    fn every_preset_is_sound() {
        for (name, _) in PRESETS {
            let name = name.split('[').next().unwrap();
            let workload = Workload::preset(name, None).unwrap();
            let keys = if name == "minos" { MINOS_KEYS } else { KEYS };
            assert_eq!((workload.keys, workload.check()), (keys, Ok(())), "{name}");
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
            "minos:125%",
            "minos:%",
            "minos:0.1:5000:3",
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
