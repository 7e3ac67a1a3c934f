//! Keys and values whose every byte follows from a number, so that every read can be verified.

/// Length of every key in bytes: `glimmer:` and eight hexadecimal digits of the key's number.
pub const KEY_BYTES: usize = 16;

/// Smallest value in bytes: the word that names key and version, and one that proves it.
pub const VALUE_BYTES_MIN: usize = 16;

/// Largest value in bytes that the clients here handle.
pub const VALUE_BYTES_MAX: usize = 1024;

const PREFIX: &[u8; 8] = b"glimmer:";

/// The key of a number.
#[inline]
pub fn key(number: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(PREFIX);
    key[8..].copy_from_slice(&hex(number));
    key
}

/// The number of a key, if it is one of ours.
pub fn number(key: &[u8]) -> Option<u32> {
    let digits = key.strip_prefix(PREFIX)?;
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (digits == hex(number)).then_some(number)
}

/// Eight lower-case hexadecimal digits, computed on all nibbles at once.
#[inline]
fn hex(number: u32) -> [u8; 8] {
    let mut nibbles = u64::from(number);
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF;
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF;
    nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    // One in every byte whose nibble is ten or more: adding six carries into bit four.
    let letters = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let ascii = nibbles + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
    ascii.to_be_bytes()
}

/// Writes the value of a key's version into `value`: a word that names both, then words that follow from it and their place.
/// `value` is a multiple of 8 and at least [`VALUE_BYTES_MIN`] long.
#[inline]
pub fn fill(value: &mut [u8], number: u32, version: u32) {
    debug_assert!(value.len() >= VALUE_BYTES_MIN && value.len().is_multiple_of(8));
    let name = u64::from(number) << 32 | u64::from(version);
    let (words, _) = value.as_chunks_mut::<8>();
    words[0] = name.to_le_bytes();
    for (place, word) in words.iter_mut().enumerate().skip(1) {
        *word = proof(name, place).to_le_bytes();
    }
}

/// The version of a value, if every byte of it is that of this key.
#[inline]
pub fn verify(value: &[u8], number: u32) -> Option<u32> {
    let (words, _) = value.as_chunks::<8>();
    let name = u64::from_le_bytes(*words.first()?);
    let mut wrong = (name >> 32) ^ u64::from(number);
    for (place, word) in words.iter().enumerate().skip(1) {
        wrong |= u64::from_le_bytes(*word) ^ proof(name, place);
    }
    (wrong == 0).then_some(name as u32)
}

#[inline]
fn proof(name: u64, place: usize) -> u64 {
    let mixed = (name ^ place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hexadecimal_numbers() {
        for n in [0, 9, 10, 0x0123_4567, 0x89ab_cdef, 0xdead_beef, u32::MAX] {
            assert_eq!(key(n), format!("glimmer:{n:08x}").as_bytes());
            assert_eq!(number(&key(n)), Some(n));
        }
        assert_eq!(number(b"glimmer:0000000G"), None);
        assert_eq!(number(b"glimmer:+0000001"), None);
        assert_eq!(number(b"glimmer:00000"), None);
    }

    #[test]
    fn any_wrong_bit_is_noticed() {
        for length in [16, 32, 64] {
            let mut value = vec![0; length];
            fill(&mut value, 77, 5);
            assert_eq!(verify(&value, 77), Some(5));
            assert_eq!(verify(&value, 78), None);
            for bit in 0..length * 8 {
                value[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(verify(&value, 77), None, "bit {bit} of {length} bytes");
                value[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_value_of_another_version_in_part_is_noticed() {
        let (mut old, mut new) = ([0; 64], [0; 64]);
        fill(&mut old, 3, 1);
        fill(&mut new, 3, 2);
        for cut in (8..64).step_by(8) {
            let torn = [&new[..cut], &old[cut..]].concat();
            assert_eq!(verify(&torn, 3), None, "torn at {cut}");
        }
    }
}
