//! The first byte that is a space or a control character, of eight or sixteen bytes at once.
//!
//! This file has the only unsafe code of the crate: it calls functions of the processor's SSE2,
//! which every x86-64 processor has.

/// The place of the first byte that is a space or a control character.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn first_of_block(block: &[u8; 16]) -> Option<usize> {
    use core::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
    };
    let [low, high] = halves(block).map(i64::from_le_bytes);
    // SAFETY: every x86-64 processor has SSE2.
    let small = unsafe {
        let block = _mm_set_epi64x(high, low);
        let small = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(b' ' as i8)), block);
        _mm_movemask_epi8(small)
    };
    (small != 0).then(|| small.trailing_zeros() as usize)
}

/// The place of the first byte that is a space or a control character.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn first_of_block(block: &[u8; 16]) -> Option<usize> {
    let [low, high] = halves(block);
    first_of_word(low).or_else(|| Some(8 + first_of_word(high)?))
}

#[inline(always)]
fn halves(block: &[u8; 16]) -> [[u8; 8]; 2] {
    let (words, _) = block.as_chunks::<8>();
    [words[0], words[1]]
}

/// The place of the first byte that is a space or a control character.
#[inline(always)]
pub(super) fn first_of_word(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(word);
    // A byte below 0x21 borrows into its highest bit. The borrow may change the bytes above it but
    // never those below, and only the lowest match counts.
    let small = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
    (small != 0).then(|| (small.trailing_zeros() / 8) as usize)
}
