//! The hash that places keys in slots.
//!
//! It is not the server's keyhash, which a program in the kernel could not compute: it takes eight
//! bytes at a time and needs nothing but 64-bit multiplications, shifts and exclusive or. It is
//! seeded, because a client that knew the places could fill both slots of another key. The mixing
//! steps are those of MurmurHash64A and of its finaliser.

const M: u64 = 0xc6a4_a793_5bd1_e995;

/// The hash of a key of 1 to 255 bytes. Eight bytes of the key make a little-endian word; the last
/// word is filled up with zeros.
#[inline]
pub fn hash(seed: u64, key: &[u8]) -> u64 {
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        hash = step(
            hash,
            u64::from_le_bytes(word.try_into().expect("eight bytes")),
        );
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = step(hash, u64::from_le_bytes(last));
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 47
}

#[inline(always)]
fn step(hash: u64, word: u64) -> u64 {
    let mut word = word.wrapping_mul(M);
    word ^= word >> 47;
    (hash ^ word.wrapping_mul(M)).wrapping_mul(M)
}

/// The two slots of a key among `slots`: the primary and the secondary one, which may be the same.
/// Each half of the hash is scaled to the number of slots, which need not be a power of two.
#[inline]
pub fn places(hash: u64, slots: usize) -> [usize; 2] {
    let scaled = |half: u64| ((half * slots as u64) >> 32) as usize;
    [scaled(hash & 0xFFFF_FFFF), scaled(hash >> 32)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in another language computes the same.
    #[test]
    fn golden_values() {
        for (seed, key, expected) in GOLDEN {
            assert_eq!(hash(*seed, key.as_bytes()), *expected, "{seed:x} {key}");
        }
    }

    const GOLDEN: &[(u64, &str, u64)] = &[
        (0, "k", 0x17fd_7e18_dfd1_a8c1),
        (1, "k", 0x1e0f_0e50_f77d_d1de),
        (0x0123_4567_89ab_cdef, "12345678", 0x9c72_b643_3fef_b7e8),
        (0x0123_4567_89ab_cdef, "123456789", 0x5627_82ff_8928_adf0),
        (
            u64::MAX,
            "a key of more than sixteen bytes",
            0x4859_5c32_3b64_0282,
        ),
    ];

    #[test]
    fn keys_spread_over_both_choices() {
        const SLOTS: usize = 1000;
        let mut seen = [[0u32; SLOTS]; 2];
        for key in 0..100_000u32 {
            let choices = places(hash(7, format!("key:{key}").as_bytes()), SLOTS);
            for (choice, place) in choices.into_iter().enumerate() {
                seen[choice][place] += 1;
            }
        }
        // A mean of 100 with a deviation of 10.
        assert!(
            seen.iter()
                .flatten()
                .all(|count| (40..=160).contains(count))
        );
    }

    #[test]
    fn a_zero_byte_more_is_another_key() {
        assert_ne!(hash(0, b"a"), hash(0, b"a\0"));
        assert_ne!(hash(0, b"12345678"), hash(0, b"12345678\0"));
    }
}
