//! Bytes that a client has chosen, in lines that the server writes: keys in listings, logs and
//! statistics, and paths of sockets.
//!
//! A key of the binary protocol or of RESP has any bytes. A line end in it would begin a line that
//! the server has not written, and an escape sequence would be obeyed by a terminal. So each line
//! shows such bytes as `%` and two hexadecimal digits, and [`read`] gets the key back.

/// Appends bytes encoded as in a URI: letters, digits and `-._~` as they are, others as `%` and two
/// hexadecimal digits. memcached shows keys so to watchers and in `lru_crawler metadump`.
pub fn put_uri(out: &mut Vec<u8>, bytes: &[u8]) {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    put(out, bytes, keeps);
}

/// Appends bytes with every visible ASCII character but `%` as it is, where memcached shows keys
/// unchanged: there ordinary keys stay as they are.
pub fn put_visible(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes, |byte| byte.is_ascii_graphic() && byte != b'%');
}

/// [`put_visible`] as a string.
pub fn visible(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    put_visible(&mut out, bytes);
    // Every byte of it is ASCII.
    String::from_utf8_lossy(&out).into_owned()
}

fn put(out: &mut Vec<u8>, bytes: &[u8], keeps: impl Fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if keeps(byte) {
            out.push(byte);
        } else {
            let digit = |nibble: u8| DIGITS[usize::from(nibble)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The bytes that a line shows; none if a `%` is not followed by two hexadecimal digits.
pub fn read(shown: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_first_chunk::<2>()?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = tail;
    }
    Some(bytes)
}

/// Whether a line can show bytes as they are: text without spaces and control characters.
pub fn is_visible(bytes: &[u8]) -> bool {
    let is_visible = |character: char| !character.is_control() && !character.is_whitespace();
    bytes.iter().all(u8::is_ascii_graphic)
        || std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_visible))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_on_their_line() {
        assert_eq!(visible(b"user:1"), "user:1");
        assert_eq!(visible(b"a b%\r\n\x1b[2J\xff"), "a%20b%25%0D%0A%1B[2J%FF");
        let mut uri = Vec::new();
        put_uri(&mut uri, b"user:1~\0");
        assert_eq!(uri, b"user%3A1~%00");
    }

    #[test]
    fn what_is_shown_can_be_read() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        for put in [put_uri, put_visible] {
            let mut shown = Vec::new();
            put(&mut shown, &all);
            assert!(shown.iter().all(u8::is_ascii_graphic));
            assert_eq!(read(&shown).as_deref(), Some(&all[..]));
        }
        assert_eq!(read(b"%4"), None);
        assert_eq!(read(b"%4g"), None);
        assert_eq!(read(b"%+4"), None);
    }

    #[test]
    fn controls_are_not_visible() {
        for plain in ["a", "user:1", "ключ", "%"] {
            assert!(is_visible(plain.as_bytes()), "{plain}");
        }
        for other in [
            &b"a b"[..],
            b"\n",
            b"\x1b",
            b"\x7f",
            b"\xff",
            "\u{9b}".as_bytes(),
        ] {
            assert!(!is_visible(other), "{other:?}");
        }
    }
}
