//! Partial sums of the Internet checksum (RFC 1071): a reply's checksum is put together from the
//! sums of its pieces, so that sending it does not read the value once more.
//!
//! A sum is that of 16-bit words in the byte order of the machine, with the carries added back, so
//! it is below 2^16. RFC 1071 (§2 (B)) shows that the order does not matter as long as the result
//! is stored in the same order. A piece of odd length counts as if a zero byte followed it.

/// The sum of a piece that begins at an even offset.
#[inline]
pub fn of(bytes: &[u8]) -> u32 {
    let mut sum = 0u64;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut rest = [0; 4];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(sum + u64::from(u32::from_ne_bytes(rest)))
}

/// The sum of two pieces' sums.
#[inline]
pub fn add(one: u32, other: u32) -> u32 {
    fold(u64::from(one) + u64::from(other))
}

/// The sum of the same piece at this offset: at an odd one, each of its bytes falls on the other
/// half of a word.
#[inline]
pub fn at(offset: usize, sum: u32) -> u32 {
    if offset.is_multiple_of(2) {
        sum
    } else {
        u32::from((sum as u16).swap_bytes())
    }
}

/// The checksum that makes this sum complete, in the byte order of the machine.
#[inline]
pub fn checksum(sum: u32) -> u16 {
    !(fold(u64::from(sum)) as u16)
}

/// Adds the carries back until 16 bits are left.
#[inline]
fn fold(sum: u64) -> u32 {
    let sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    let sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    ((sum >> 16) + (sum & 0xFFFF)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// RFC 1071's own definition, one big-endian word after the other.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            if sum > 0xFFFF {
                sum -= 0xFFFF;
            }
        }
        sum as u16
    }

    /// Zero has two forms in this arithmetic.
    fn same(one: u16, other: u16) -> bool {
        one == other || (one ^ other == 0xFFFF && (one == 0 || other == 0))
    }

    #[test]
    fn the_rfcs_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!((of(&bytes) as u16).to_ne_bytes(), [0xdd, 0xf2]);
        assert_eq!(checksum(of(&bytes)).to_ne_bytes(), [0x22, 0x0d]);
    }

    #[test]
    fn pieces_at_any_offset_make_the_whole() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..2000 {
            let mut whole = vec![0u8; rng.random_range(0..2000)];
            rng.fill(&mut whole[..]);
            if rng.random_bool(0.1) {
                whole.fill(0xFF);
            }
            let cut = rng.random_range(0..=whole.len());
            let cut2 = rng.random_range(cut..=whole.len());
            let [first, second, third] = [&whole[..cut], &whole[cut..cut2], &whole[cut2..]];
            let sum = add(add(of(first), at(cut, of(second))), at(cut2, of(third)));
            assert!(
                same((sum as u16).to_be(), plain(&whole)),
                "{cut} {cut2} {whole:?}"
            );
            assert!(same((of(&whole) as u16).to_be(), plain(&whole)));
        }
    }
}
