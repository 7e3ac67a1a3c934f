//! Keys and values that are determined by numbers, with sizes known at compile time.

use glimmer_base::{Keyhash, Seed};

/// The seed of every keyhash here.
pub const SEED: Seed = Seed(0x5EED);

/// Length of keys and of values in bytes (MICA §5.1, "tiny").
pub const TINY_BYTES: usize = 8;
/// Length of keys in MemC3 in bytes (§5.3).
pub const PAPER_KEY_BYTES: usize = 16;
/// Length of values in MemC3 in bytes.
pub const PAPER_VALUE_BYTES: usize = 32;

/// Repeats a word to fill the bytes, whose number is a multiple of eight.
#[inline(always)]
fn repeat<const N: usize>(word: u64) -> [u8; N] {
    const { assert!(N >= 8 && N.is_multiple_of(8), "whole words") };
    let mut bytes = [0; N];
    for part in bytes.chunks_exact_mut(8) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The key of a number.
#[inline(always)]
pub fn key<const K: usize>(number: u32) -> [u8; K] {
    repeat(u64::from(number))
}

/// The keyhash of a number's key.
#[inline(always)]
pub fn keyhash<const K: usize>(number: u32) -> Keyhash {
    SEED.keyhash(&key::<K>(number))
}

/// The value of a key after this many writes: the low half of its words contains the version.
#[inline(always)]
pub fn value<const V: usize>(number: u32, version: u32) -> [u8; V] {
    repeat(u64::from(number) << 32 | u64::from(version))
}

/// Whether these bytes are a value of the key, with the same version in all words.
#[inline(always)]
pub fn is_value<const V: usize>(bytes: &[u8; V], number: u32) -> bool {
    let word = |at: usize| {
        let part = bytes[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(part)
    };
    let first = word(0);
    first >> 32 == u64::from(number) && (8..V).step_by(8).all(|at| word(at) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_its_key_and_of_one_version() {
        let mut bytes = value::<32>(7, 3);
        assert!(is_value(&bytes, 7) && !is_value(&bytes, 8));
        bytes[24..].copy_from_slice(&value::<8>(7, 4));
        assert!(!is_value(&bytes, 7));
        assert!(is_value(&value::<8>(1, 2), 1));
        assert_ne!(key::<16>(1), key::<16>(2));
    }
}
