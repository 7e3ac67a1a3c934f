//! Bytes at any offset in words that racing readers may be looking at. Reading and writing are
//! relaxed, and for the writer only.

use super::layout::words_of;
use super::wide;
use crate::memory::Words;
use core::mem::MaybeUninit;
use glimmer_base::sync::Ordering::Relaxed;
use std::ops::Range;

/// Bytes that are held outside of the heap while they are moved. They fit into the first cache.
const CHUNK_BYTES: usize = 4 << 10;

/// Enough words for [`CHUNK_BYTES`] bytes at any offset.
type Chunk = [[MaybeUninit<u8>; 8]; CHUNK_BYTES / 8 + 1];

/// Copies `len` bytes from byte `at` on, with the rest of the words that they lie in.
fn load<'a>(words: Words<'_>, at: usize, len: usize, chunk: &'a mut Chunk) -> &'a [u8] {
    let (first, skip) = (at / 8, at % 8);
    let count = words_of(skip + len);
    let chunk = &mut chunk[..count];
    wide::load(words.range(first, count), chunk);
    // SAFETY: the words were copied to all of the chunk.
    let bytes = unsafe { chunk.as_flattened().assume_init_ref() };
    &bytes[skip..skip + len]
}

/// Writes bytes from byte `at` on; those on either side stay.
pub(crate) fn store(words: Words<'_>, at: usize, mut bytes: &[u8]) {
    let (mut word, skip) = (at / 8, at % 8);
    if skip > 0 {
        let (first, rest) = bytes.split_at(bytes.len().min(8 - skip));
        merge(words, word, skip, first);
        (word, bytes) = (word + 1, rest);
    }
    let (whole, rest) = bytes.as_chunks::<8>();
    let space = words.range(word, whole.len());
    match bytes.len() < wide::BYTES_MIN {
        true => wide::store_short(space, whole),
        false => wide::store(space, whole),
    }
    word += whole.len();
    merge(words, word, 0, rest);
}

/// Appends the bytes from one on up to another one to `out`.
pub(crate) fn append(words: Words<'_>, range: Range<usize>, out: &mut Vec<u8>) {
    let mut chunk = [[MaybeUninit::uninit(); 8]; CHUNK_BYTES / 8 + 1];
    for at in range.clone().step_by(CHUNK_BYTES) {
        let bytes = CHUNK_BYTES.min(range.end - at);
        out.extend_from_slice(load(words, at, bytes, &mut chunk));
    }
}

/// Writes fewer than eight bytes within one word.
fn merge(words: Words<'_>, word: usize, skip: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let word = words.word(word);
    let mut merged = word.load(Relaxed).to_le_bytes();
    merged[skip..skip + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_le_bytes(merged), Relaxed);
}

/// Moves `len` bytes. The two stretches may overlap.
pub(super) fn shift(
    (from, from_byte): (Words<'_>, usize),
    (to, to_byte): (Words<'_>, usize),
    len: usize,
) {
    let mut chunk = [[MaybeUninit::uninit(); 8]; CHUNK_BYTES / 8 + 1];
    let mut shift_chunk = |start: usize| {
        let bytes = CHUNK_BYTES.min(len - start);
        let loaded = load(from, from_byte + start, bytes, &mut chunk);
        store(to, to_byte + start, loaded);
    };
    let address = |words: Words<'_>, byte| words.address() + byte;
    let is_to_the_right = address(to, to_byte) > address(from, from_byte);
    let chunks = len.div_ceil(CHUNK_BYTES);
    for nth in 0..chunks {
        // What is overwritten has been read before.
        let nth = if is_to_the_right {
            chunks - 1 - nth
        } else {
            nth
        };
        shift_chunk(nth * CHUNK_BYTES);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use glimmer_base::sync::AtomicU64;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn bytes_move_as_in_a_slice() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let bytes = |words: &[AtomicU64]| -> Vec<u8> {
            let words = words.iter().map(|word| word.load(Relaxed));
            words.flat_map(u64::to_le_bytes).collect()
        };
        for _ in 0..if cfg!(miri) { 4 } else { 3_000 } {
            let words: Vec<AtomicU64> = (0..2_500).map(|_| AtomicU64::new(rng.random())).collect();
            let mut model = bytes(&words);
            let len = match rng.random_bool(0.5) {
                true => rng.random_range(0..1_200),
                false => rng.random_range(0..4 * CHUNK_BYTES),
            };
            let from_byte: usize = rng.random_range(0..20_000 - len);
            let to_byte = match rng.random_bool(0.5) {
                true => rng.random_range(0..20_000 - len),
                false => (from_byte + rng.random_range(0..17))
                    .saturating_sub(8)
                    .min(20_000 - len),
            };
            // Two views that begin at different words.
            let to_first = rng.random_range(0..=to_byte / 8);
            let to = Words::of(&words[to_first..]);
            shift(
                (Words::of(&words), from_byte),
                (to, to_byte - 8 * to_first),
                len,
            );
            model.copy_within(from_byte..from_byte + len, to_byte);
            assert_eq!(
                bytes(&words),
                model,
                "{len} bytes from {from_byte} to {to_byte}"
            );
        }
    }
}
