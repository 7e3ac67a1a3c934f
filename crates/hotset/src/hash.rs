//! The hash that places keys in slots.
//!
//! It is not the server's keyhash, which a program in the kernel could not compute: it takes eight
//! bytes at a time and needs nothing but 64-bit multiplications, shifts and exclusive or. It is
//! seeded, because a client that knew the places could fill both slots of another key. The seed is
//! in no reply and no statistic.
//!
//! The mixing steps are those of MurmurHash64A and of its finaliser, except that each word is
//! combined with the seed before it is mixed. In MurmurHash64A it is not. There a client can choose
//! words that differ by the highest bit once they are mixed, which no multiplication changes, so
//! that two such words cancel one another under every seed (Aumasson and Bernstein, 2012). This is
//! no cryptographic hash all the same. Who finds keys that collide in it keeps another key out of
//! its slots if they are read more often; its reads are then answered by the server.

const M: u64 = 0xc6a4_a793_5bd1_e995;

/// The hash of a key of 1 to 255 bytes. Eight bytes of the key make a little-endian word; the last
/// word is filled up with zeros.
#[inline]
pub fn hash(seed: u64, key: &[u8]) -> u64 {
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        hash = step(seed, hash, word);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = step(seed, hash, u64::from_le_bytes(last));
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 47
}

#[inline(always)]
fn step(seed: u64, hash: u64, word: u64) -> u64 {
    let mut word = (word ^ seed).wrapping_mul(M);
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
        (1, "k", 0x25bb_e1b6_7b85_b24e),
        (0x0123_4567_89ab_cdef, "12345678", 0xb29b_69a8_68f0_04a7),
        (0x0123_4567_89ab_cdef, "123456789", 0x252a_ee32_fc82_3cd5),
        (
            u64::MAX,
            "a key of more than sixteen bytes",
            0x33ef_bb42_6405_4b53,
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

    /// The other word that is mixed to the same but for the highest bit, where the seed is zero.
    fn twin(word: u64) -> u64 {
        let mut inverse = M;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(M.wrapping_mul(inverse)));
        }
        let mut mixed = word.wrapping_mul(M);
        mixed = (mixed ^ mixed >> 47).wrapping_mul(M) ^ 1 << 63;
        mixed = mixed.wrapping_mul(inverse);
        (mixed ^ mixed >> 47).wrapping_mul(inverse)
    }

    #[test]
    fn no_two_keys_collide_under_every_seed() {
        let key = |words: [u64; 2]| words.map(u64::to_le_bytes).concat();
        let words = [0x1122_3344_5566_7788, 0x99AA_BBCC_DDEE_FF00];
        let (one, other) = (key(words), key(words.map(twin)));
        assert_eq!(hash(0, &one), hash(0, &other), "the attack is right");
        for number in 1..10_000u64 {
            let seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert_ne!(hash(seed, &one), hash(seed, &other), "seed {seed}");
        }
    }

    #[test]
    fn a_zero_byte_more_is_another_key() {
        assert_ne!(hash(0, b"a"), hash(0, b"a\0"));
        assert_ne!(hash(0, b"12345678"), hash(0, b"12345678\0"));
    }
}
