//! Base64 as memcached reads it. Bytes outside the alphabet are skipped. The number of the others
//! must be a multiple of four, and the first group of four that ends with `=` is the last.

use glimmer_base::limits::KEY_BYTES_MAX;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Length of the longest decoded key in bytes.
pub const DECODED_BYTES_MAX: usize = KEY_BYTES_MAX / 4 * 3 + 3;

/// The value of each byte of the alphabet, and of `=`.
const fn values() -> [Option<u8>; 256] {
    let mut values = [None; 256];
    let mut i = 0;
    while i < ALPHABET.len() {
        values[ALPHABET[i] as usize] = Some(i as u8);
        i += 1;
    }
    values[b'=' as usize] = Some(0);
    values
}

static VALUES: [Option<u8>; 256] = values();

/// Decodes a key of at most [`KEY_BYTES_MAX`] bytes into `buffer`. `None` if the text is empty or
/// not base64.
pub fn decode<'b>(text: &[u8], buffer: &'b mut [u8; DECODED_BYTES_MAX]) -> Option<&'b [u8]> {
    let len = decoded_len(text, |at, bytes| buffer[at..at + 3].copy_from_slice(&bytes))?;
    Some(&buffer[..len])
}

/// Passes a key to `take`, decoded if it is base64.
#[inline(always)]
pub fn with_key<T>(key: &[u8], is_base64: bool, take: impl FnOnce(&[u8]) -> T) -> T {
    if is_base64 {
        let mut buffer = [0; DECODED_BYTES_MAX];
        return take(decode(key, &mut buffer).unwrap_or_default());
    }
    take(key)
}

/// Whether [`decode`] would succeed.
pub fn is_valid(text: &[u8]) -> bool {
    decoded_len(text, |_, _| {}).is_some()
}

/// Passes every decoded group of three bytes to `put`, with its position. Returns the number of
/// valid bytes.
fn decoded_len(text: &[u8], mut put: impl FnMut(usize, [u8; 3])) -> Option<usize> {
    let inside = text
        .iter()
        .filter(|&&byte| VALUES[usize::from(byte)].is_some());
    let count = inside.count();
    if count == 0 || count % 4 != 0 || text.len() > KEY_BYTES_MAX {
        return None;
    }
    let (mut len, mut group, mut digits, mut padding) = (0, 0_u32, 0, 0);
    for &byte in text {
        let Some(value) = VALUES[usize::from(byte)] else {
            continue;
        };
        padding += usize::from(byte == b'=');
        group = group << 6 | u32::from(value);
        digits += 1;
        if digits == 4 {
            let [_, bytes @ ..] = group.to_be_bytes();
            put(len, bytes);
            if padding > 2 {
                return None;
            }
            len += 3 - padding;
            (group, digits) = (0, 0);
            if padding > 0 {
                break;
            }
        }
    }
    Some(len)
}

/// Appends bytes as base64.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..1 + chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for digit in 0..4 {
            let value = group >> (18 - 6 * digit) & 63;
            let is_padding = digit as usize > chunk.len();
            out.push(if is_padding {
                b'='
            } else {
                ALPHABET[value as usize]
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Option<Vec<u8>> {
        let mut buffer = [0; DECODED_BYTES_MAX];
        let bytes = decode(text.as_bytes(), &mut buffer).map(<[u8]>::to_vec);
        assert_eq!(is_valid(text.as_bytes()), bytes.is_some());
        bytes
    }

    /// The test vectors of RFC 4648, and memcached's results for other inputs.
    #[test]
    fn keys() {
        let rows: &[(&str, Option<&[u8]>)] = &[
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg==", Some(b"foob")),
            ("Zm9vYmE=", Some(b"fooba")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("AAAA", Some(&[0, 0, 0])),
            ("Zm9v!", Some(b"foo")),
            ("Z!m9v", Some(b"foo")),
            ("Zm8=Zm9v", Some(b"fo")),
            ("foo", None),
            ("", None),
            ("!!!!", None),
            ("Z===", None),
        ];
        for (text, bytes) in rows {
            assert_eq!(decoded(text).as_deref(), *bytes, "{text:?}");
        }
    }

    #[test]
    fn the_longest_key_fits() {
        assert_eq!(decoded(&"A".repeat(248)).unwrap().len(), 186);
        assert_eq!(decoded(&"A".repeat(252)), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in proptest::collection::vec(any::<u8>(), 1..=186)) {
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            prop_assert_eq!(text.len(), bytes.len().div_ceil(3) * 4);
            let mut buffer = [0; DECODED_BYTES_MAX];
            prop_assert_eq!(decode(&text, &mut buffer), Some(&bytes[..]));
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..=260)) {
            let mut buffer = [0; DECODED_BYTES_MAX];
            let is_valid = is_valid(&text);
            prop_assert_eq!(decode(&text, &mut buffer).is_some(), is_valid);
        }
    }
}
