//! Pearson's hash, as the paper's circuit computes it (§IV-A1): byte j of the hash begins with
//! `T[x[0] + j]`, and each further byte of the key is folded in by `T[h ^ x[i]]`. All bytes of the
//! hash are computed side by side. Two tables `T` give a primary and a secondary hash.

/// A permutation of all bytes.
pub type Table = [u8; 256];

/// The two tables. The paper does not print its own.
pub const TABLES: [Table; 2] = [
    permutation(0x243F_6A88_85A3_08D3),
    permutation(0x1319_8A2E_0370_7344),
];

/// A hash of two bytes, the first one low. The key has at least one byte.
pub fn pearson(table: &Table, key: &[u8]) -> u16 {
    let byte = |j: u8| {
        let first = table[usize::from(key[0].wrapping_add(j))];
        key[1..]
            .iter()
            .fold(first, |hash, byte| table[usize::from(hash ^ byte)])
    };
    u16::from_le_bytes([byte(0), byte(1)])
}

/// Shuffles all bytes (Fisher and Yates) with Marsaglia's xorshift from a seed: digits of pi.
const fn permutation(mut random: u64) -> Table {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = at as u8;
        at += 1;
    }
    while at > 1 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let other = (random >> 32) as usize % at;
        at -= 1;
        let byte = table[at];
        table[at] = table[other];
        table[other] = byte;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_permutations_and_differ() {
        for table in TABLES {
            let mut sorted = table;
            sorted.sort_unstable();
            assert!((0..=255).eq(sorted));
        }
        assert_ne!(TABLES[0], TABLES[1]);
    }

    /// The paper's program, one byte of the hash after the other.
    #[test]
    fn it_is_the_papers_algorithm() {
        for table in &TABLES {
            for key in [&b"k"[..], b"greeting", &[0xFF; 255]] {
                let mut h = [0u8; 2];
                for j in 0..2 {
                    h[j] = table[(usize::from(key[0]) + j) & 0xFF];
                    for byte in &key[1..] {
                        h[j] = table[usize::from(h[j] ^ byte)];
                    }
                }
                assert_eq!(pearson(table, key).to_le_bytes(), h);
            }
        }
    }
}
