//! Bytes at any offset in words that racing readers may be looking at. Reading and writing are
//! relaxed, and for the writer only.

use crate::memory::Words;
use glimmer_base::sync::Ordering::Relaxed;

/// Bytes that are held outside of the heap while they are moved.
const CHUNK_BYTES: usize = 256;

/// Copies `out.len()` bytes from byte `at` on.
fn load(words: Words<'_>, at: usize, out: &mut [u8]) {
    let (mut word, skip) = (at / 8, at % 8);
    for out in out.chunks_mut(8) {
        let mut bytes = words.word(word).load(Relaxed) >> (8 * skip);
        if skip + out.len() > 8 {
            bytes |= words.word(word + 1).load(Relaxed) << (64 - 8 * skip);
        }
        out.copy_from_slice(&bytes.to_le_bytes()[..out.len()]);
        word += 1;
    }
}

/// Writes bytes from byte `at` on; those on either side stay.
pub(super) fn store(words: Words<'_>, at: usize, mut bytes: &[u8]) {
    let (mut word, skip) = (at / 8, at % 8);
    if skip > 0 {
        let (first, rest) = bytes.split_at(bytes.len().min(8 - skip));
        merge(words, word, skip, first);
        (word, bytes) = (word + 1, rest);
    }
    let (whole, rest) = bytes.as_chunks::<8>();
    for bytes in whole {
        words.word(word).store(u64::from_le_bytes(*bytes), Relaxed);
        word += 1;
    }
    merge(words, word, 0, rest);
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
    let mut chunk = [0; CHUNK_BYTES];
    let mut shift_chunk = |start: usize| {
        let chunk = &mut chunk[..CHUNK_BYTES.min(len - start)];
        load(from, from_byte + start, chunk);
        store(to, to_byte + start, chunk);
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
            let words: Vec<AtomicU64> = (0..200).map(|_| AtomicU64::new(rng.random())).collect();
            let mut model = bytes(&words);
            let len = rng.random_range(0..1_200);
            let from_byte: usize = rng.random_range(0..1_600 - len);
            let to_byte = match rng.random_bool(0.5) {
                true => rng.random_range(0..1_600 - len),
                false => (from_byte + rng.random_range(0..17))
                    .saturating_sub(8)
                    .min(1_600 - len),
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
