//! Values whose every byte is determined by key, version and length, so that every read can be
//! verified.

/// Bits of the version that a value of at least eight bytes contains.
const VERSION_BITS: u32 = 24;
/// The difference between successive words of a value. It is odd, so that no two positions of a
/// value have the same word.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Generates the bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    first: u64,
    seed: u64,
}

impl Stream {
    /// The first word contains the version in its low bits and a check of key, version and length
    /// in the others. Each further word is determined by its position.
    #[inline]
    fn new(number: u64, version: u32, bytes: usize) -> Stream {
        let version_bits = match bytes {
            0..=3 => 0,
            4..=7 => 8,
            _ => VERSION_BITS,
        };
        let version = u64::from(version) & ((1 << version_bits) - 1);
        let seed = mix(mix(number.wrapping_add(STEP)) ^ version << 32 ^ bytes as u64);
        Stream {
            first: seed << version_bits | version,
            seed,
        }
    }

    #[inline]
    fn word(&self, place: usize) -> u64 {
        self.seed.wrapping_add((place as u64).wrapping_mul(STEP))
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the input.
#[inline]
pub(super) fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// Writes a version of a key's value. Values of fewer than 8 bytes contain 8 bits of the version,
/// those of fewer than 4 bytes none.
#[inline]
pub fn fill(value: &mut [u8], number: u64, version: u32) {
    let stream = Stream::new(number, version, value.len());
    let (words, rest) = value.as_chunks_mut::<8>();
    let whole = words.len();
    if let Some((first, others)) = words.split_first_mut() {
        *first = stream.first.to_le_bytes();
        for (place, word) in others.iter_mut().enumerate() {
            *word = stream.word(place + 1).to_le_bytes();
        }
    }
    if !rest.is_empty() {
        let last = if whole == 0 {
            stream.first
        } else {
            stream.word(whole)
        };
        rest.copy_from_slice(&last.to_le_bytes()[..rest.len()]);
    }
}

/// Appends a version of a key's value.
#[inline]
pub fn append(out: &mut Vec<u8>, bytes: usize, number: u64, version: u32) {
    let start = out.len();
    out.resize(start + bytes, 0);
    fill(&mut out[start..], number, version);
}

/// The version that a value contains, if every byte is correct for this key and length.
#[inline]
pub fn verify(value: &[u8], number: u64) -> Option<u32> {
    let (words, rest) = value.as_chunks::<8>();
    let Some((first, others)) = words.split_first() else {
        return verify_short(value, number);
    };
    let named = u64::from_le_bytes(*first);
    let version = named as u32 & ((1 << VERSION_BITS) - 1);
    let stream = Stream::new(number, version, value.len());
    let mut wrong = named ^ stream.first;
    for (place, word) in others.iter().enumerate() {
        wrong |= u64::from_le_bytes(*word) ^ stream.word(place + 1);
    }
    if !rest.is_empty() {
        let last = stream.word(words.len()).to_le_bytes();
        wrong |= u64::from(rest != &last[..rest.len()]);
    }
    (wrong == 0).then_some(version)
}

fn verify_short(value: &[u8], number: u64) -> Option<u32> {
    let version = if value.len() < 4 {
        0
    } else {
        u32::from(value[0])
    };
    let first = Stream::new(number, version, value.len())
        .first
        .to_le_bytes();
    (value == &first[..value.len()]).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: usize, number: u64, version: u32) -> Vec<u8> {
        let mut out = Vec::new();
        append(&mut out, bytes, number, version);
        out
    }

    #[test]
    fn values_name_their_version() {
        for bytes in [8, 9, 13, 16, 64, 1024, 1400, 500_000] {
            assert_eq!(
                verify(&value(bytes, 77, 0xabcdef), 77),
                Some(0xabcdef),
                "{bytes} bytes"
            );
        }
        for bytes in 4..8 {
            assert_eq!(
                verify(&value(bytes, 77, 0x1ff), 77),
                Some(0xff),
                "{bytes} bytes"
            );
        }
        for bytes in 0..4 {
            assert_eq!(verify(&value(bytes, 77, 5), 77), Some(0), "{bytes} bytes");
        }
    }

    #[test]
    fn any_wrong_bit_is_noticed() {
        for bytes in [1, 3, 4, 7, 8, 9, 15, 16, 61, 64] {
            let mut value = value(bytes, 77, 5);
            for bit in 0..bytes * 8 {
                value[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(verify(&value, 77), None, "bit {bit} of {bytes} bytes");
                value[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_value_of_another_key_version_or_length_is_noticed() {
        let (old, new) = (value(64, 3, 1), value(64, 3, 2));
        for cut in (8..64).step_by(8) {
            assert_eq!(
                verify(&[&new[..cut], &old[cut..]].concat(), 3),
                None,
                "torn at {cut}"
            );
        }
        for bytes in 8..128 {
            assert_eq!(
                verify(&value(bytes, 3, 1), 4),
                None,
                "another key, {bytes} bytes"
            );
            assert_eq!(
                verify(&value(bytes, 3, 1)[..bytes - 1], 3),
                None,
                "cut short, {bytes} bytes"
            );
        }
    }

    #[test]
    fn words_that_changed_places_are_noticed() {
        let mut shifted = value(64, 3, 1);
        shifted[8..].rotate_left(8);
        assert_eq!(verify(&shifted, 3), None);
    }
}
