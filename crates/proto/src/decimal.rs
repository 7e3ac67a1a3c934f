//! Decimal fractions, added exactly. Redis adds them as binary floating-point numbers of 80 bits
//! and shows 17 digits after the point.

use std::fmt;

/// Digits after the point. What a number has beyond them is rounded away.
const FRACTION_DIGITS: u32 = 17;

/// Units of one.
const ONE: i128 = 10i128.pow(FRACTION_DIGITS);

/// The largest number: sums of two are in range.
const LARGEST: i128 = i128::MAX / 4;

/// Bytes of the longest text of a number.
pub const TEXT_BYTES_MAX: usize = 64;

/// A number in units of 10^-17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal(i128);

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal(0);

    /// Reads a number: digits, with a sign in front or not, with a point or not, and with an
    /// exponent or not. None if it is something else or has more than 20 digits before its point.
    pub fn read(text: &[u8]) -> Option<Decimal> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (is_negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let end = rest.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (digits, exponent) = match end {
            Some(end) => (&rest[..end], exponent(&rest[end + 1..])?),
            None => (rest, 0),
        };
        let point = digits.iter().position(|&byte| byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (&digits[..point], &digits[point + 1..]),
            None => (digits, &[][..]),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let scale = FRACTION_DIGITS as i64 + i64::from(exponent) - fraction.len() as i64;
        let mut number: i128 = 0;
        // Digits that are too small to count, of which the first decides about rounding.
        let dropped = usize::try_from(-scale).unwrap_or(0);
        let all = whole.iter().chain(fraction);
        let kept = (whole.len() + fraction.len()).saturating_sub(dropped);
        let mut rounds_up = false;
        for (nth, byte) in all.enumerate() {
            let digit = byte.checked_sub(b'0').filter(|&digit| digit <= 9)?;
            if nth < kept {
                number = number.checked_mul(10)?.checked_add(digit.into())?;
            } else if nth == kept && dropped <= whole.len() + fraction.len() {
                rounds_up = digit >= 5;
            }
        }
        number += i128::from(rounds_up);
        for _ in 0..scale.max(0) {
            if number == 0 {
                break;
            }
            number = number.checked_mul(10)?;
        }
        (number <= LARGEST).then_some(Decimal(if is_negative { -number } else { number }))
    }

    /// The sum, unless it is out of range.
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let sum = self.0 + other.0;
        (sum.abs() <= LARGEST).then_some(Decimal(sum))
    }
}

/// The number after the letter of an exponent.
fn exponent(text: &[u8]) -> Option<i32> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    let mut number = 0;
    for byte in digits {
        number = 10 * number + i32::from(byte.checked_sub(b'0').filter(|&digit| digit <= 9)?);
    }
    Some(if is_negative { -number } else { number })
}

/// Without zeros after the last digit that counts.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0.abs() / ONE, self.0.abs() % ONE);
        let sign = if self.0 < 0 { "-" } else { "" };
        let digits = format!("{fraction:017}");
        match digits.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            digits => write!(f, "{sign}{whole}.{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written() {
        for (text, shown) in [
            ("0", "0"),
            ("-0", "0"),
            ("10.50", "10.5"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("+3", "3"),
            ("5.0e3", "5000"),
            ("1E-3", "0.001"),
            ("1e-17", "0.00000000000000001"),
            ("1e-18", "0"),
            ("5e-18", "0.00000000000000001"),
            ("9e-30", "0"),
            ("0e99", "0"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            let number = Decimal::read(text.as_bytes()).expect(text);
            assert_eq!(number.to_string(), shown, "{text}");
        }
        for text in [
            "", "-", ".", "e1", "1e", "1e+", "x", "1x", " 1", "1 ", "--1", "1.2.3", "inf", "nan",
            "0x1", "1e99999", "1e30",
        ] {
            assert_eq!(Decimal::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn sums_are_exact() {
        let number = |text: &str| Decimal::read(text.as_bytes()).expect(text);
        let sum = |a, b| number(a).checked_add(number(b)).map(|it| it.to_string());
        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(sum("10.50", "-10.5").as_deref(), Some("0"));
        assert_eq!(sum("-1.25", "0.5").as_deref(), Some("-0.75"));
        assert_eq!(sum("4e20", "4e20"), None);
    }
}
