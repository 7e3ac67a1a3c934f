//! Values of flags in memcached's syntax.

use glimmer_dispatch::Settings;
use glimmer_notation as notation;
use glimmer_server::machine;
use glimmer_server::memory_plan::memory_mib_max;
use glimmer_server::{Accepts, Mode, TableKind};
use std::fmt;
use std::str::FromStr;

/// `-p` and `-U`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// 0: do not listen.
    None,
    /// -1: any free port.
    Any,
    /// This one.
    Number(u16),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Port::None => f.write_str("0"),
            Port::Any => f.write_str("-1"),
            Port::Number(port) => write!(f, "{port}"),
        }
    }
}

/// `-p` and `-U`: a port, 0 or -1.
pub fn port(text: &str) -> Result<Port, String> {
    match text.trim_start().parse() {
        Ok(0) => Ok(Port::None),
        Ok(-1) => Ok(Port::Any),
        number => number
            .ok()
            .and_then(|port| u16::try_from(port).ok())
            .map(Port::Number)
            .ok_or_else(|| "a port is a number up to 65535, or -1 for any free port".into()),
    }
}

/// `-a`: permissions in octal.
pub fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text.trim_start(), 8) {
        Ok(mode @ 0..=0o777) => Ok(mode),
        _ => Err("permissions are octal, 0 to 777".into()),
    }
}

/// `-c`: at least one connection.
pub fn connections(text: &str) -> Result<usize, String> {
    positive(text, "Maximum connections must be greater than 0")
}

/// `-t`: at least one thread.
pub fn threads(text: &str) -> Result<usize, String> {
    positive(text, "Number of threads must be greater than 0")
}

/// `-R`: at least one request.
pub fn requests(text: &str) -> Result<usize, String> {
    positive(text, "Number of requests per event must be greater than 0")
}

/// `--dispatch`: a policy, with what may follow its name.
pub fn policy(text: &str) -> Result<String, String> {
    glimmer_dispatch::named(text, &Settings::DEFAULT).map(|_| text.to_owned())
}

/// `--dispatch-percentile`: above 0 and below 100.
pub fn percentile(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("a percentage above 0 and below 100".into()),
    }
}

/// `--dispatch-alpha`: above 0, at most 1.
pub fn weight(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(weight) if weight > 0.0 && weight <= 1.0 => Ok(weight),
        _ => Err("a number above 0 and at most 1".into()),
    }
}

/// A value that knows its own notation.
pub fn parsed<T: FromStr<Err = &'static str>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|expected| format!("one of {expected}"))
}

/// `-n`: at least one byte.
pub fn chunk_size(text: &str) -> Result<u32, String> {
    match item_size(text)? {
        0 => Err("Chunk size must be greater than 0".into()),
        bytes => bytes.try_into().map_err(|_| "too large".into()),
    }
}

/// `-b`: connections that may wait to be accepted.
pub fn backlog(text: &str) -> Result<i32, String> {
    notation::within(notation::count, 0..=i32::MAX as u64)(text.trim_start())
}

/// `-N`: refuses the same values as memcached.
pub fn napi_ids(text: &str) -> Result<u32, String> {
    let number = text.trim_start().parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "Maximum number of NAPI IDs must be greater than 0".into())
}

/// `-f`: a number greater than one.
pub fn growth_factor(text: &str) -> Result<f64, String> {
    match text.trim_start().parse() {
        Ok(factor) if factor > 1.0 => Ok(factor),
        _ => Err("Factor must be greater than 1".into()),
    }
}

/// `-B`: refuses the same values as memcached.
pub fn protocol(text: &str) -> Result<Accepts, String> {
    let names = |of: &[Accepts]| of.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ");
    let [any, ascii, others @ ..] = Accepts::ALL else {
        unreachable!("there are more than two");
    };
    text.trim_start().parse().map_err(|_| {
        let others = names(others);
        let text = if text.is_empty() { "''" } else { text };
        format!("-B {text} should be one of {any}, {others}, or {ascii}")
    })
}

/// `-D`: the first character, which must be one byte.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.trim_start().as_bytes() {
        [] => Err("No delimiter specified".into()),
        [byte, ..] => Ok(*byte),
    }
}

/// `--prefix-delimiter`: one byte that a key of the text protocol may have.
pub fn prefix_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [] => Err("No delimiter specified".into()),
        [byte] if byte.is_ascii_graphic() => Ok(*byte),
        [_] => Err("keys have no spaces and no control characters".into()),
        _ => Err("a delimiter is one ASCII character, such as : or /".into()),
    }
}

/// `--lru-threshold`: any number; the configuration says which are in range.
pub fn decimal(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "not a number such as 0.5".to_owned())
}

fn positive(text: &str, otherwise: &str) -> Result<usize, String> {
    let text = text.trim_start();
    match text.strip_prefix('-') {
        Some(_) => Err(otherwise.into()),
        None => match notation::count(text)? {
            0 => Err(otherwise.into()),
            number => usize::try_from(number).map_err(|_| format!("{text} is too large")),
        },
    }
}

/// `-m`: MiB, or a share of what the process may take, returned in bytes.
pub fn memory_limit(text: &str) -> Result<usize, String> {
    if let Some(percent) = text.trim().strip_suffix('%') {
        let percent: u8 = match percent.parse() {
            Ok(percent @ 1..=100) => percent,
            _ => return Err("a share of the memory is 1% to 100%".to_owned()),
        };
        let allowed = machine::memory_allowed().ok_or("the system does not tell its memory")?;
        let mebibytes = (allowed.bytes >> 20) * u64::from(percent) / 100;
        return Ok((mebibytes.max(1) as usize) << 20);
    }
    let mebibytes = notation::mebibytes(text.trim_start())?;
    let bytes = usize::try_from(mebibytes).ok();
    let bytes = bytes.and_then(|mebibytes| mebibytes.checked_mul(1 << 20));
    bytes.ok_or_else(|| {
        let largest_mib = memory_mib_max(Mode::Cache, TableKind::Mica);
        format!("{text} is too large: no table takes more than {largest_mib} MiB")
    })
}

/// `-I` and `--item-size-hint`: a number of bytes, optionally with `k` or `m`.
pub fn item_size(text: &str) -> Result<usize, String> {
    let bytes = notation::bytes(text.trim_start())?;
    usize::try_from(bytes).map_err(|_| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        assert_eq!(port("0"), Ok(Port::None));
        assert_eq!(port("-1"), Ok(Port::Any));
        assert_eq!(port(" 11211"), Ok(Port::Number(11211)));
        for wrong in ["", "x", "65536", "-2"] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!((connections("1"), threads("9")), (Ok(1), Ok(9)));
        assert_eq!(requests("99999999999"), Ok(99_999_999_999));
        assert!(connections("0").is_err() && threads("-1").is_err() && requests("0").is_err());
        assert_eq!(octal("0755"), Ok(0o755));
        assert!(octal("8").is_err() && octal("7777").is_err());
        assert_eq!(growth_factor("1.25"), Ok(1.25));
        assert!(growth_factor("1.0").is_err() && growth_factor("NaN").is_err());
        assert_eq!(delimiter(":x"), Ok(b':'));
        assert!(delimiter("").is_err());
    }

    #[test]
    fn numbers_take_letters() {
        assert_eq!((connections("10k"), requests("1k")), (Ok(10_000), Ok(1000)));
        assert_eq!((chunk_size("1k"), backlog("4k")), (Ok(1024), Ok(4000)));
        assert!(connections("10q").is_err() && threads("1.5").is_err());
    }

    #[test]
    fn memory_is_in_mebibytes() {
        for text in ["64", " 64", "64m", "64MiB"] {
            assert_eq!(memory_limit(text), Ok(64 << 20), "{text}");
        }
        assert_eq!(memory_limit("1g"), Ok(1 << 30));
        for wrong in ["", "0", "-1", "64k"] {
            assert!(memory_limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_of_any_number_of_digits_is_a_number_or_too_large() {
        assert_eq!(memory_limit("16777216"), Ok(1 << 44));
        assert_eq!(memory_limit("99999999g"), Ok(99_999_999 << 30));
        for large in [
            "17592186044416",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999",
            "99999999999999g",
            "99999999999999999999g",
        ] {
            let error = memory_limit(large).unwrap_err();
            assert!(error.contains("too large"), "{large}: {error}");
        }
    }

    #[test]
    fn item_sizes() {
        assert_eq!(item_size("1048576"), Ok(1 << 20));
        assert_eq!(item_size("512k"), Ok(512 << 10));
        assert_eq!(item_size("1M"), Ok(1 << 20));
        for wrong in ["", "k", "1.5m", "-1", "99999999999999999999m"] {
            assert!(item_size(wrong).is_err(), "{wrong}");
        }
    }
}
