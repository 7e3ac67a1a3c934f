//! Floor 0: how command lines take numbers and server addresses, and how reports show them.
//!
//! On the command line, a count may end in `k`, `m` or `g` for powers of 1000. A length in bytes
//! takes the same letters for powers of 1024, as memcached's `-I` does. A memory limit is in MiB,
//! and a share is a fraction of one. In output, microseconds are `µs` and memory is in `MiB`.
//!
//! ```
//! use glimmer_notation::{bytes, count, memory};
//!
//! assert_eq!((count("10k"), bytes("64k")), (Ok(10_000), Ok(65_536)));
//! assert_eq!(memory(65_536.0), "64 KiB");
//! ```

mod location;

pub use location::{Location, PORT_DEFAULT};

use std::ops::RangeBounds;

/// Parses a count: `250`, `10k`, `1.5m`, `2g`. The letters stand for powers of 1000.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a whole number such as 250, 10k or 1m");
    let (digits, unit) = split(text, [1_000, 1_000_000, 1_000_000_000]);
    if is_whole(digits) {
        return product(digits, unit).ok_or_else(|| too_large(text));
    }
    let is_decimal = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = digits.parse::<f64>().ok().filter(|_| is_decimal);
    let number = number.ok_or_else(wrong)? * unit as f64;
    match number.fract() == 0.0 && number < 1e15 {
        true => Ok(number as u64),
        false => Err(wrong()),
    }
}

/// Parses a length in bytes: `512`, `64k`, `2m`. The letters stand for powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = split(text, [1 << 10, 1 << 20, 1 << 30]);
    match is_whole(digits) {
        true => product(digits, unit).ok_or_else(|| too_large(text)),
        false => Err(format!(
            "{text:?} is not a length in bytes such as 512, 64k or 2m"
        )),
    }
}

/// Parses a memory limit in MiB: `64`, `64m`, `4g`. The unit may be spelled out (`64MB`, `4GiB`).
pub fn mebibytes(text: &str) -> Result<u64, String> {
    let digits_end = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits_end);
    let mebibytes = match &*unit.to_ascii_lowercase() {
        "" | "m" | "mb" | "mi" | "mib" => Some(1),
        "g" | "gb" | "gi" | "gib" => Some(1 << 10),
        _ => None,
    };
    let mebibytes = mebibytes.filter(|_| digits_end > 0);
    let mebibytes =
        mebibytes.ok_or_else(|| format!("{text:?} is not in MiB, such as 1024, 1024m or 1g"))?;
    match product(digits, mebibytes) {
        Some(limit @ 1..) => Ok(limit),
        Some(0) => Err("a memory limit is at least 1 MiB".to_owned()),
        None => Err(too_large(text)),
    }
}

/// Parses a share: `0.95`, from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        Ok(percent) if (1.0..=100.0).contains(&percent) => Err(format!(
            "a share is from 0 to 1: {percent}% is {}",
            percent / 100.0
        )),
        _ => Err("a share is from 0 to 1, such as 0.95".to_owned()),
    }
}

/// Parses a number with `read` and accepts it only within `range`.
pub fn within<T: TryFrom<u64>>(
    read: impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static,
    range: impl RangeBounds<u64> + std::fmt::Debug + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    move |text| {
        let number = read(text)?;
        let fits = range.contains(&number).then(|| T::try_from(number).ok());
        fits.flatten().ok_or_else(|| {
            let least = match range.start_bound() {
                Included(least) => *least,
                Excluded(below) => below + 1,
                Unbounded => 0,
            };
            match range.end_bound() {
                Included(most) => format!("{number} is not in {least} to {most}"),
                Excluded(above) => format!("{number} is not in {least} to {}", above - 1),
                Unbounded if number < least => format!("{number} is not {least} or more"),
                Unbounded => {
                    let all = (0..u64::BITS).map(|bits| u64::MAX >> bits);
                    let most = all.into_iter().find(|&most| T::try_from(most).is_ok());
                    format!("{number} is not in {least} to {}", most.unwrap_or_default())
                }
            }
        })
    }
}

/// Whether a text has digits and nothing else.
fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number that digits stand for, times its unit, unless that is too large.
fn product(digits: &str, unit: u64) -> Option<u64> {
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn too_large(text: &str) -> String {
    format!("{text} is too large")
}

/// Splits a number from its letter. Returns the number and the factor that the letter stands for.
fn split(text: &str, [kilo, mega, giga]: [u64; 3]) -> (&str, u64) {
    let unit = match text.as_bytes().last() {
        Some(b'k' | b'K') => kilo,
        Some(b'm' | b'M') => mega,
        Some(b'g' | b'G') => giga,
        _ => return (text, 1),
    };
    (&text[..text.len() - 1], unit)
}

/// A number with its unit: `0.5 µs`, `131 µs`, `91.2 ms`, `2.50 s`.
pub fn microseconds(us: f64) -> String {
    match us {
        us if us < 10.0 => format!("{us:.1} µs"),
        us if us < 1e4 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// A rate: `900/s`, `93.0 k/s`, `3.40 M/s`.
pub fn per_second(rate: f64) -> String {
    // Adding zero turns a negative zero, the sum of an empty list, into a positive one.
    match rate + 0.0 {
        rate if rate < 1e4 => format!("{rate:.0}/s"),
        rate if rate < 1e6 => format!("{:.1} k/s", rate / 1e3),
        rate => format!("{:.2} M/s", rate / 1e6),
    }
}

/// Memory: `512 B`, `1.0 KiB`, `64 MiB`, `1.5 GiB`.
pub fn memory(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [
        ((1u64 << 40) as f64, "TiB"),
        ((1u64 << 30) as f64, "GiB"),
        ((1u64 << 20) as f64, "MiB"),
        ((1u64 << 10) as f64, "KiB"),
    ];
    let bytes = bytes + 0.0;
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes < 10.0 * unit => format!("{:.1} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.0} {name}", bytes / unit),
        None => format!("{bytes:.0} B"),
    }
}

/// A number of things, by the name of one: `1 item`, `2 items`.
pub fn counted(number: u64, name: &str) -> String {
    match number {
        1 => format!("1 {name}"),
        _ => format!("{number} {name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_letters_for_powers_of_1000() {
        for (text, number) in [
            ("0", 0),
            ("250", 250),
            ("10k", 10_000),
            ("1m", 1_000_000),
            ("1.5M", 1_500_000),
            ("2g", 2_000_000_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for wrong in [
            "", "k", "x", "-1", "1e6", "1.2345k", "1.5", "10 k", "inf", "nan", ".",
        ] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        for large in ["99999999999g", "18446744073709551616"] {
            assert!(count(large).unwrap_err().contains("too large"), "{large}");
        }
    }

    #[test]
    fn lengths_take_letters_for_powers_of_1024() {
        assert_eq!(
            ["512", "64k", "2M", "1g"].map(bytes),
            [512, 64 << 10, 2 << 20, 1 << 30].map(Ok)
        );
        for wrong in ["", "k", "1.5m", "-1", "+1"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for large in ["18446744073709551615m", "18446744073709551616"] {
            assert!(bytes(large).unwrap_err().contains("too large"), "{large}");
        }
    }

    #[test]
    fn limits_are_in_mebibytes() {
        for text in ["64", "64m", "64M", "64MB", "64MiB"] {
            assert_eq!(mebibytes(text), Ok(64), "{text}");
        }
        assert_eq!(["1g", "4GiB"].map(mebibytes), [Ok(1024), Ok(4096)]);
        for wrong in ["", "m", "0", "-1", "1k", "1.5m", "64 m", "1t"] {
            assert!(mebibytes(wrong).is_err(), "{wrong}");
        }
        for large in ["18446744073709551616", "18014398509481984g"] {
            let error = mebibytes(large).unwrap_err();
            assert!(error.contains("too large"), "{error}");
        }
    }

    #[test]
    fn a_percentage_is_told_what_it_is_as_a_share() {
        assert_eq!(["0", "0.95", "1"].map(share), [Ok(0.0), Ok(0.95), Ok(1.0)]);
        assert!(share("95").unwrap_err().contains("95% is 0.95"));
        for wrong in ["", "x", "-0.1", "101", "nan"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_named() {
        let read = within::<u16>(count, 1..=1000);
        assert_eq!(read("1k"), Ok(1000));
        assert_eq!(read("2k"), Err("2000 is not in 1 to 1000".to_owned()));
        let read = within::<u32>(count, 1..);
        assert_eq!(read("0"), Err("0 is not 1 or more".to_owned()));
        assert!(read("5g").is_err(), "it is no u32");
    }

    #[test]
    fn figures_carry_their_units() {
        assert_eq!(
            [0.5, 131.0, 91_234.0, 2.5e6].map(microseconds),
            ["0.5 µs", "131 µs", "91.2 ms", "2.50 s"]
        );
        assert_eq!(
            [-0.0, 900.0, 93_000.0, 3.4e6].map(per_second),
            ["0/s", "900/s", "93.0 k/s", "3.40 M/s"]
        );
        assert_eq!(
            [-0.0, 512.0, 1024.0, 67_108_864.0, 1.5e12].map(memory),
            ["0 B", "512 B", "1.0 KiB", "64 MiB", "1.4 TiB"]
        );
    }

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            [0, 1, 2].map(|number| counted(number, "item")),
            ["0 items", "1 item", "2 items"]
        );
    }
}
