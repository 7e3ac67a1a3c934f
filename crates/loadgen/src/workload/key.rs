//! Keys whose bytes are determined by a number.

/// Longest key in bytes, as in memcached.
pub const KEY_BYTES_MAX: usize = 250;
/// Keys of at least this length end with the sixteen hexadecimal digits of their number.
pub const HEX_BYTES: usize = 16;
/// Longer keys begin with repetitions of this prefix.
const PREFIX: &[u8; 8] = b"glimmer:";
/// The digits of shorter keys, six bits each.
const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// A key: its number and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    number: u64,
    bytes: u8,
}

impl Key {
    /// The key with this number and a length of `bytes`, from 1 to 250. Keys of fewer than 11 bytes
    /// hold six bits of the number per byte; the excess bits are dropped.
    #[inline]
    pub fn new(number: u64, bytes: usize) -> Key {
        debug_assert!((1..=KEY_BYTES_MAX).contains(&bytes));
        let number = match bytes {
            0..=10 => number & ((1 << (6 * bytes)) - 1),
            _ => number,
        };
        Key {
            number,
            bytes: bytes as u8,
        }
    }

    /// The number of different keys of this length, if it is below 2^64.
    pub fn count(bytes: usize) -> Option<u64> {
        (bytes <= 10).then(|| 1 << (6 * bytes))
    }

    /// The key's number.
    #[inline]
    pub fn number(self) -> u64 {
        self.number
    }

    /// The key's length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        usize::from(self.bytes)
    }

    /// Never: a key has at least one byte.
    pub fn is_empty(self) -> bool {
        false
    }

    /// Appends the key.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        if self.len() == HEX_BYTES {
            out.extend_from_slice(&hex(self.number));
        } else {
            self.write_other(out);
        }
    }

    fn write_other(self, out: &mut Vec<u8>) {
        let digit = |place| {
            let shift = 6 * place;
            let bits = if shift < 64 { self.number >> shift } else { 0 };
            DIGITS[(bits & 63) as usize]
        };
        if self.len() > HEX_BYTES {
            let prefix = PREFIX.iter().cycle().take(self.len() - HEX_BYTES);
            out.extend(prefix);
            out.extend_from_slice(&hex(self.number));
        } else if let Some(unused) = size_of::<u64>().checked_sub(self.len()) {
            // Written as one word: the hash function reads words, and a load after single-byte
            // stores would stall (store forwarding).
            let word = (0..8).rev();
            let word = word.fold(0, |word, place| word << 8 | u64::from(digit(place)));
            out.extend_from_slice(&word.to_be_bytes()[unused..]);
        } else {
            out.extend((0..self.len()).rev().map(digit));
        }
    }

    /// Whether `found` is this key.
    #[inline]
    pub fn matches(self, found: &[u8]) -> bool {
        if found.len() == HEX_BYTES && self.len() == HEX_BYTES {
            return found == hex(self.number);
        }
        found.len() == self.len() && Key::parse(found) == Some(self)
    }

    /// Parses a key. `None` if it is not one of ours.
    pub fn parse(found: &[u8]) -> Option<Key> {
        let bytes = u8::try_from(found.len())
            .ok()
            .filter(|&bytes| bytes > 0 && usize::from(bytes) <= KEY_BYTES_MAX)?;
        if found.len() >= HEX_BYTES {
            let (prefix, digits) = found.split_at(found.len() - HEX_BYTES);
            if !prefix.iter().eq(PREFIX.iter().cycle().take(prefix.len())) {
                return None;
            }
            let number = unhex(digits.try_into().ok()?)?;
            return Some(Key { number, bytes });
        }
        let mut number = 0u64;
        for &digit in found {
            let bits = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'z' => digit - b'a' + 10,
                b'A'..=b'Z' => digit - b'A' + 36,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            if number >> 58 != 0 {
                return None;
            }
            number = number << 6 | u64::from(bits);
        }
        Some(Key { number, bytes })
    }
}

/// A number as [`HEX_BYTES`] lower-case hexadecimal digits.
#[inline]
pub fn hex(number: u64) -> [u8; HEX_BYTES] {
    let mut digits = [0; HEX_BYTES];
    digits[..8].copy_from_slice(&half((number >> 32) as u32));
    digits[8..].copy_from_slice(&half(number as u32));
    digits
}

/// Eight digits, computed on all nibbles at once.
#[inline]
fn half(number: u32) -> [u8; 8] {
    let mut nibbles = u64::from(number);
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF;
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF;
    nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    // One in every byte whose nibble is ten or more: adding six carries into bit four.
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    let ascii = nibbles + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
    ascii.to_be_bytes()
}

/// The number that [`hex`] wrote as these sixteen digits, if they are valid.
#[inline]
fn unhex(digits: [u8; HEX_BYTES]) -> Option<u64> {
    let mut number = 0;
    for digit in digits {
        // Letters have bit six set and begin at 1. Invalid digits are detected below.
        number = number << 4 | u64::from((digit & 0xf) + 9 * (digit >> 6));
    }
    (hex(number) == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(key: Key) -> Vec<u8> {
        let mut out = Vec::new();
        key.write(&mut out);
        out
    }

    #[test]
    fn keys_of_every_length_name_their_number() {
        for length in 1..=KEY_BYTES_MAX {
            for number in [0, 1, 9, 10, 63, 0x0123_4567_89ab_cdef, u64::MAX] {
                let key = Key::new(number, length);
                let written = bytes(key);
                assert_eq!(written.len(), length);
                assert_eq!(
                    Key::parse(&written),
                    Some(key),
                    "{}",
                    written.escape_ascii()
                );
                assert!(key.matches(&written));
                assert!(written.iter().all(u8::is_ascii_graphic));
                let other = Key::new(number ^ 1, length);
                assert!(!other.matches(&written));
                if Key::count(length).is_none() {
                    assert_eq!(key.number(), number);
                }
            }
        }
    }

    #[test]
    fn keys_are_readable() {
        assert_eq!(bytes(Key::new(0xab, 16)), b"00000000000000ab");
        assert_eq!(bytes(Key::new(0xab, 20)), b"glim00000000000000ab");
        assert_eq!(bytes(Key::new(64, 8)), b"00000010");
        assert_eq!(Key::count(8), Some(1 << 48));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for wrong in [
            &b""[..],
            b"000000000000000G",
            b"00000000000000AB",
            b"glim+0000000000000ab",
            b"xlim00000000000000ab",
            b"0 000000",
        ] {
            assert_eq!(Key::parse(wrong), None, "{}", wrong.escape_ascii());
        }
        assert_eq!(Key::parse(&[b'0'; 251]), None);
        assert_eq!(Key::parse(b"____________"), None, "more than 64 bits");
    }
}
