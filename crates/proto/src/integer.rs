//! Signed numbers of 64 bits, written as Redis reads them.

/// Bytes of the longest number.
pub const DIGITS_MAX: usize = 20;

/// Reads a number: digits, a minus sign in front of a negative one, and nothing else; neither
/// zeros in front nor minus zero.
pub fn signed_64(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > DIGITS_MAX {
        return None;
    }
    let (is_negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut number: i64 = 0;
    for byte in digits {
        let digit = i64::from(byte.checked_sub(b'0').filter(|digit| *digit <= 9)?);
        // Counted down, as the least number has no positive twin.
        number = number.checked_mul(10)?.checked_sub(digit)?;
    }
    match is_negative {
        true => Some(number),
        false => number.checked_neg(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_strict() {
        for number in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN] {
            assert_eq!(signed_64(number.to_string().as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "1a",
            "a1",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "100000000000000000000",
        ] {
            assert_eq!(signed_64(text.as_bytes()), None, "{text:?}");
        }
    }
}
