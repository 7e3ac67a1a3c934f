//! Parses decimal numbers as memcached does, in two ways.
//!
//! Most words of a command consist of digits only, with a minus where negative numbers make sense:
//! [`digits_64`], [`digits_32`], [`signed_digits_32`]. The flags and expiry time of a storage
//! command, and values that are incremented or decremented, are parsed as by C's `strtol` and
//! `strtoull`: white space and a sign may precede the digits, white space followed by anything may
//! follow them, and a number that does not fit is invalid. In these places 32-bit numbers are
//! parsed with 64 bits and truncated, so flags of 2^32 + 1 become flags of 1.

/// Longest word that is accepted as a 32-bit number.
const WORD_32_BYTES_MAX: usize = 11;
/// Longest word that is accepted as a 64-bit number.
const WORD_64_BYTES_MAX: usize = 22;

/// A word of digits: the delta of `incr`, the unique of `cas`.
#[inline]
pub fn digits_64(text: &[u8]) -> Option<u64> {
    if let Some(value) = plain_digits(text) {
        return Some(value);
    }
    if text.is_empty() || text.len() > WORD_64_BYTES_MAX {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        let value = value.checked_mul(10)?.checked_add(digit.into())?;
        (digit <= 9).then_some(value)
    })
}

/// A word of digits that fits into 32 bits: the level of `verbosity`.
#[inline]
pub fn digits_32(text: &[u8]) -> Option<u32> {
    let fits = text.len() <= WORD_32_BYTES_MAX;
    digits_64(text).filter(|_| fits)?.try_into().ok()
}

/// A word of digits, with an optional minus, that fits into 32 bits: the length of a value, the
/// expiry time of `touch`. A lone minus is 0, as in memcached.
#[inline]
pub fn signed_digits_32(text: &[u8]) -> Option<i32> {
    if text.len() > WORD_32_BYTES_MAX {
        return None;
    }
    let value = match text.strip_prefix(b"-") {
        Some([]) => 0,
        Some(digits) => -i64::try_from(digits_64(digits)?).ok()?,
        None => digits_64(text)?.try_into().ok()?,
    };
    value.try_into().ok()
}

/// A word of digits, with an optional minus, that fits into 64 bits: an expiry time in
/// milliseconds.
pub fn signed_digits_64(text: &[u8]) -> Option<i64> {
    let magnitude = |digits| i64::try_from(digits_64(digits)?).ok();
    match text.strip_prefix(b"-") {
        Some([]) => Some(0),
        Some(digits) => magnitude(digits).map(|number| -number),
        None => magnitude(text),
    }
}

/// A 64-bit unsigned number in any form that C accepts: the stored value that `incr` and `decr`
/// change.
///
/// A negative number wraps to its two's complement and is invalid if the result has its highest bit
/// set (memcached's `safe_strtoull`). `-1` is therefore invalid.
#[inline]
pub fn unsigned_64(text: &[u8]) -> Option<u64> {
    if let Some(value) = plain_digits(text) {
        return Some(value);
    }
    let scan = Scan::of(text)?;
    let value = if scan.negative {
        scan.magnitude.wrapping_neg()
    } else {
        scan.magnitude
    };
    // Here memcached looks for a minus anywhere in the word, even after the number.
    if value > i64::MAX as u64 && text.contains(&b'-') {
        return None;
    }
    Some(value)
}

/// An unsigned number in any form that C accepts, truncated to 32 bits: the flags of a storage
/// command.
#[inline]
pub fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned_64(text).map(|value| value as u32)
}

/// A signed number in any form that C accepts, truncated to 32 bits: the expiry time of a storage
/// command.
#[inline]
pub fn signed_32(text: &[u8]) -> Option<i32> {
    if let Some(value) = plain_digits(text) {
        return (value <= i64::MAX as u64).then_some(value as i32);
    }
    let scan = Scan::of(text)?;
    let (largest, value) = match scan.negative {
        false => (i64::MAX as u64, scan.magnitude as i32),
        true => (1 << 63, scan.magnitude.wrapping_neg() as i32),
    };
    (scan.magnitude <= largest).then_some(value)
}

/// Up to 19 digits and nothing else, which cannot overflow. This is what clients send.
#[inline]
pub(crate) fn plain_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut value = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// A number in any form that C accepts.
struct Scan {
    negative: bool,
    magnitude: u64,
}

impl Scan {
    /// `None` if there are no digits, if they exceed 64 bits, or if anything but white space
    /// follows.
    #[cold]
    fn of(text: &[u8]) -> Option<Scan> {
        let start = text.iter().position(|&byte| !is_space(byte))?;
        let (negative, text) = match text[start] {
            b'-' => (true, &text[start + 1..]),
            b'+' => (false, &text[start + 1..]),
            _ => (false, &text[start..]),
        };
        let digits = text
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(text.len());
        let ends_well = text
            .get(digits)
            .is_none_or(|&byte| is_space(byte) || byte == 0);
        if digits == 0 || !ends_well {
            return None;
        }
        let mut magnitude: u64 = 0;
        for digit in &text[..digits] {
            magnitude = magnitude
                .checked_mul(10)?
                .checked_add(u64::from(digit - b'0'))?;
        }
        Some(Scan {
            negative,
            magnitude,
        })
    }
}

/// White space in C's default locale.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_digits() {
        let rows: &[(&str, Option<u64>, Option<i32>)] = &[
            ("0", Some(0), Some(0)),
            ("2147483647", Some(2_147_483_647), Some(i32::MAX)),
            ("2147483648", Some(2_147_483_648), None),
            ("-2147483648", None, Some(i32::MIN)),
            ("-2147483649", None, None),
            ("00000000001", Some(1), Some(1)),
            ("000000000001", Some(1), None),
            ("0000000000000000000001", Some(1), None),
            ("00000000000000000000001", None, None),
            ("18446744073709551615", Some(u64::MAX), None),
            ("18446744073709551616", None, None),
            ("-0", None, Some(0)),
            ("-", None, Some(0)),
            ("--1", None, None),
            ("+1", None, None),
            ("\t1", None, None),
            ("1\t", None, None),
            ("1.5", None, None),
            ("", None, None),
        ];
        for (text, unsigned, signed) in rows {
            assert_eq!(digits_64(text.as_bytes()), *unsigned, "{text:?}");
            assert_eq!(signed_digits_32(text.as_bytes()), *signed, "{text:?}");
            let short = unsigned.filter(|_| text.len() <= 11);
            let short = short.and_then(|value| u32::try_from(value).ok());
            assert_eq!(digits_32(text.as_bytes()), short, "{text:?}");
        }
    }

    /// Each row was sent to memcached 1.6.18 as the delta of `incr`, or, if it has a zero byte, as
    /// the value to change.
    #[test]
    fn unsigned_numbers() {
        let rows: &[(&str, Option<u64>)] = &[
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("000000000000000000000000000005", Some(5)),
            ("+1", Some(1)),
            ("-0", Some(0)),
            ("-1", None),
            ("-9223372036854775809", Some(9223372036854775807)),
            ("-18446744073709551615", Some(1)),
            ("\t5", Some(5)),
            ("5\tx", Some(5)),
            ("5\0x", Some(5)),
            ("5-", None),
            ("5\t-", Some(5)),
            ("9223372036854775808\t-", None),
            ("1.5", None),
            ("0x10", None),
            ("abc", None),
            ("\t", None),
            ("-", None),
            ("", None),
        ];
        for (text, value) in rows {
            assert_eq!(unsigned_64(text.as_bytes()), *value, "{text:?}");
        }
    }

    /// Each row was sent to memcached 1.6.18 as the expiry time of `touch` or the length of `set`.
    #[test]
    fn signed_numbers_keep_32_bits() {
        let rows: &[(&str, Option<i32>)] = &[
            ("2147483647", Some(i32::MAX)),
            ("2147483648", Some(i32::MIN)),
            ("4294967297", Some(1)),
            ("-4294967295", Some(1)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(-1)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(0)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("1\tx", Some(1)),
            ("", None),
        ];
        for (text, value) in rows {
            assert_eq!(signed_32(text.as_bytes()), *value, "{text:?}");
        }
    }

    #[test]
    fn flags_keep_32_bits() {
        for (text, value) in [
            ("4294967295", Some(u32::MAX)),
            ("4294967296", Some(0)),
            ("4294967297", Some(1)),
            ("-4294967296", None),
            ("-9223372036854775809", Some(u32::MAX)),
            ("-18446744073709551615", Some(1)),
        ] {
            assert_eq!(unsigned_32(text.as_bytes()), value, "{text:?}");
        }
    }
}
