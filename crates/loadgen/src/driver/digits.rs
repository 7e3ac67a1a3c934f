//! Decimal numbers in requests and replies.

/// Appends a number.
#[inline]
pub fn push(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The number at the start of `input` and how many digits it has, if that is at most nine.
#[inline]
pub fn read(input: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (digits, &byte) in input.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return (digits > 0).then_some((number, digits));
        }
        if digits == 9 {
            return None;
        }
        number = number * 10 + usize::from(byte - b'0');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_the_first_other_byte() {
        assert_eq!(read(b"64\r\n"), Some((64, 2)));
        assert_eq!(read(b"0 "), Some((0, 1)));
        assert_eq!(read(b"999999999\r"), Some((999_999_999, 9)));
        for wrong in [&b""[..], b"x", b"-1 ", b"64", b"1234567890 "] {
            assert_eq!(read(wrong), None, "{}", wrong.escape_ascii());
        }
        let mut out = b"a".to_vec();
        push(&mut out, 1024u32);
        assert_eq!(out, b"a1024");
    }
}
