//! AES-128 (FIPS 197): by the processor's instructions where it has them, and in plain code
//! everywhere. Both compute the same.
//!
//! A block is a little-endian number: its first byte is the lowest. The first round key, which
//! whitens the input, is the caller's affair.
//!
//! The plain code looks bytes up in a table of 256 bytes, four cache lines that every call touches
//! throughout. On a processor without the instructions it takes some hundred nanoseconds.

/// The round keys of a key.
pub(super) type RoundKeys = [u128; ROUNDS + 1];

pub(super) const ROUNDS: usize = 10;

const SBOX: [u8; 256] = sbox();

/// Doubles an element of AES's field.
const fn double(x: u8) -> u8 {
    (x << 1) ^ if x >> 7 == 1 { 0x1B } else { 0 }
}

/// An element's multiplicative inverse, and then the affine map. `p` runs through all elements but
/// zero as powers of three, and `q` through their inverses.
const fn sbox() -> [u8; 256] {
    let mut table = [0x63; 256];
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= double(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        q ^= if q >> 7 == 1 { 0x09 } else { 0 };
        let mixed = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = mixed ^ 0x63;
        if p == 1 {
            return table;
        }
    }
}

/// The key schedule.
pub(super) fn round_keys(key: u128) -> RoundKeys {
    let mut words = [0u32; 4 * (ROUNDS + 1)];
    for (at, word) in words[..4].iter_mut().enumerate() {
        *word = (key >> (32 * at)) as u32;
    }
    let mut constant = 1u8;
    for at in 4..words.len() {
        let mut word = words[at - 1];
        if at % 4 == 0 {
            let substituted = word.to_le_bytes().map(|byte| SBOX[usize::from(byte)]);
            word = u32::from_le_bytes(substituted).rotate_right(8) ^ u32::from(constant);
            constant = double(constant);
        }
        words[at] = words[at - 4] ^ word;
    }
    std::array::from_fn(|round| {
        let words = &words[4 * round..][..4];
        words
            .iter()
            .rev()
            .fold(0, |key, &word| key << 32 | u128::from(word))
    })
}

/// Encrypts a block that has been whitened, in plain code.
pub(super) fn plain(keys: &RoundKeys, block: u128) -> u128 {
    let mut state = block;
    for (round, key) in keys.iter().enumerate().skip(1) {
        let bytes = state.to_le_bytes();
        // Row `at % 4` goes that many columns to the left.
        let mut shifted: [u8; 16] =
            std::array::from_fn(|at| SBOX[usize::from(bytes[(at + 4 * (at % 4)) % 16])]);
        if round < ROUNDS {
            shifted.as_chunks_mut().0.iter_mut().for_each(mix_column);
        }
        state = u128::from_le_bytes(shifted) ^ key;
    }
    state
}

fn mix_column(column: &mut [u8; 4]) {
    let old = *column;
    let all = old[0] ^ old[1] ^ old[2] ^ old[3];
    for row in 0..4 {
        column[row] ^= all ^ double(old[row] ^ old[(row + 1) % 4]);
    }
}

/// Encrypts a block that has been whitened.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "aes")]
pub(super) fn fast(keys: &RoundKeys, block: u128) -> u128 {
    use std::arch::x86_64::{__m128i, _mm_aesenc_si128, _mm_aesenclast_si128};
    // SAFETY: both types are 16 bytes in which every value is valid.
    let vector = |block: u128| unsafe { std::mem::transmute::<u128, __m128i>(block) };
    let mut state = vector(block);
    for key in &keys[1..ROUNDS] {
        state = _mm_aesenc_si128(state, vector(*key));
    }
    state = _mm_aesenclast_si128(state, vector(keys[ROUNDS]));
    // SAFETY: as above.
    unsafe { std::mem::transmute::<__m128i, u128>(state) }
}

/// Encrypts a block that has been whitened. The instruction adds a key before it substitutes, so
/// the first one adds zero.
#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "aes")]
pub(super) fn fast(keys: &RoundKeys, block: u128) -> u128 {
    use std::arch::aarch64::{uint8x16_t, vaeseq_u8, vaesmcq_u8};
    // SAFETY: both types are 16 bytes in which every value is valid, in the same order on the
    // little-endian targets that the server is built for.
    let vector = |block: u128| unsafe { std::mem::transmute::<u128, uint8x16_t>(block) };
    let mut state = vaesmcq_u8(vaeseq_u8(vector(block), vector(0)));
    for key in &keys[1..ROUNDS - 1] {
        state = vaesmcq_u8(vaeseq_u8(state, vector(*key)));
    }
    state = vaeseq_u8(state, vector(keys[ROUNDS - 1]));
    // SAFETY: as above.
    unsafe { std::mem::transmute::<uint8x16_t, u128>(state) ^ keys[ROUNDS] }
}

/// Whether this processor runs [`fast`].
pub(super) fn has_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> u128 {
        u128::from_str_radix(hex, 16).unwrap().swap_bytes()
    }

    /// FIPS 197, appendices A.1, B and C.1: key, plain text, cipher text.
    const STANDARD: [[&str; 3]; 2] = [
        [
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ],
        [
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        ],
    ];

    #[test]
    fn the_plain_code_is_the_standards() {
        for [key, text, cipher] in STANDARD.map(|row| row.map(block)) {
            let keys = round_keys(key);
            assert_eq!(plain(&keys, text ^ keys[0]), cipher);
        }
        let last = round_keys(block(STANDARD[0][0]))[ROUNDS];
        assert_eq!(last, block("d014f9a8c9ee2589e13f0cc8b6630ca6"));
    }
}
