//! Copies of many words between a heap, where others may be reading or writing, and plain memory.
//!
//! To the language, both functions access each word of the heap once, with relaxed ordering, and
//! the words in no particular order. That is all that optimistic readers need: a reader's acquire
//! fence and last look follow *all* its loads, and a writer's release fence comes before *all* its
//! stores (see [`CircularLog`](super::CircularLog) and [`Bucket`](crate::index::Bucket)). No order
//! within a copy is relied on, and what is torn between two words is found out by the last look.
//!
//! A compiler may not merge relaxed accesses, so a loop over them moves eight bytes a step. On
//! x86-64 a long copy is made in assembly instead, sixteen bytes a step. This is the same set of
//! accesses:
//!
//! - An aligned 16-byte access of ordinary memory loads or stores each of its two words whole. It
//!   takes one access or two of eight bytes, and one of eight bytes is atomic (AMD64 manual, volume
//!   2, §7.3.2; Intel SDM, volume 3, §10.1.1). The search for tags relies on the same.
//! - Such loads and stores are ordered as all others are: loads with later loads, stores with later
//!   stores. So an acquire or release fence, which on x86-64 only holds the compiler, orders them
//!   as well. (This is not so for string instructions. They are not used.)
//! - The stores of a large value bypass the caches (non-temporal). Its place was last used long
//!   ago, and an ordinary store would first read every line of it from memory. The processor may
//!   reorder such stores with all others, so an `sfence` comes before the first and after the last
//!   of them (Intel SDM, volume 3, §10.2.2). So what the thread stored before, such as the mark of
//!   a writer, is visible before any of them, and all of them before what it stores afterwards.
//! - The assembly may read and write memory as far as the compiler knows. So it moves neither
//!   across a fence nor across an atomic access that has to stay in order with it.
//!
//! Loom and Miri check the loop, with every order and every old value that relaxed accesses allow.
//! A test holds the assembly against the loop.

use core::mem::MaybeUninit;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// Fewer bytes are better copied by the loop where they are.
pub(super) const BYTES_MIN: usize = 256;
/// A value of at least this many bytes bypasses the caches when it is stored. A smaller value may
/// be read while it is still in the caches: bypassing them costs a sixth of the time of a store and
/// a read of 20 KB, and hardly anything at 100 KB.
const STREAMED_BYTES_MIN: usize = 128 << 10;

/// Copies words of a heap to the beginning of `out`, which is as long at least. The bytes of a word
/// are in the order of their addresses on a little-endian machine.
pub(super) fn load(words: &[AtomicU64], out: &mut [[MaybeUninit<u8>; 8]]) {
    let out = &mut out[..words.len()];
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    sse2::load(words, out);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    load_short(words, out);
}

/// Copies bytes to words of a heap, of which there are as many.
pub(super) fn store(words: &[AtomicU64], bytes: &[[u8; 8]]) {
    assert_eq!(words.len(), bytes.len());
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    sse2::store(words, bytes);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    store_short(words, bytes);
}

/// [`load`], as a loop.
#[inline(always)]
pub(super) fn load_short(words: &[AtomicU64], out: &mut [[MaybeUninit<u8>; 8]]) {
    for (out, word) in out.iter_mut().zip(words) {
        out.write_copy_of_slice(&word.load(Relaxed).to_le_bytes());
    }
}

/// [`store`], as a loop.
#[inline(always)]
pub(super) fn store_short(words: &[AtomicU64], bytes: &[[u8; 8]]) {
    for (word, bytes) in words.iter().zip(bytes) {
        word.store(u64::from_le_bytes(*bytes), Relaxed);
    }
}

#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
mod sse2 {
    use super::*;
    use core::arch::asm;

    /// Words of a step: a cache line.
    const STEP: usize = 8;

    /// Bytes at a multiple of which steps begin: those of an access, and those of a cache line.
    const ACCESS: usize = 16;
    const LINE: usize = 64;

    /// The words before the first multiple of `align` bytes, and those of whole steps after them.
    fn parts(words: &[AtomicU64], align: usize) -> (usize, usize) {
        let head = words.as_ptr().addr().wrapping_neg() % align / size_of::<AtomicU64>();
        let head = head.min(words.len());
        (head, (words.len() - head) / STEP * STEP)
    }

    /// Stores whole steps, with this instruction.
    macro_rules! store_steps {
        ($instruction:literal, $words:expr, $bytes:expr) => {
            for (words, bytes) in $words.chunks_exact(STEP).zip($bytes.chunks_exact(STEP)) {
                // SAFETY: both are slices of 64 bytes, and the words begin at a multiple of 16. The
                // bytes are only read. The words are atomic integers, so that they may be written
                // through a shared reference; each of them is written whole.
                unsafe {
                    asm!(
                        "movups {a}, [{from}]",
                        "movups {b}, [{from} + 16]",
                        "movups {c}, [{from} + 32]",
                        "movups {d}, [{from} + 48]",
                        concat!($instruction, " [{to}], {a}"),
                        concat!($instruction, " [{to} + 16], {b}"),
                        concat!($instruction, " [{to} + 32], {c}"),
                        concat!($instruction, " [{to} + 48], {d}"),
                        from = in(reg) bytes.as_ptr(),
                        to = in(reg) words.as_ptr(),
                        a = out(xmm_reg) _,
                        b = out(xmm_reg) _,
                        c = out(xmm_reg) _,
                        d = out(xmm_reg) _,
                        options(nostack, preserves_flags)
                    );
                }
            }
        };
    }

    #[inline]
    pub fn load(words: &[AtomicU64], out: &mut [[MaybeUninit<u8>; 8]]) {
        let (head, wide) = parts(words, ACCESS);
        let (first, words) = words.split_at(head);
        let (first_out, out) = out.split_at_mut(head);
        load_short(first, first_out);
        let (words, last) = words.split_at(wide);
        let (out, last_out) = out.split_at_mut(wide);
        for (words, out) in words.chunks_exact(STEP).zip(out.chunks_exact_mut(STEP)) {
            // SAFETY: both are slices of 64 bytes, the words begin at a multiple of 16, and the
            // bytes are borrowed for writing. The words are only read, each of them whole.
            unsafe {
                asm!(
                    "movaps {a}, [{from}]",
                    "movaps {b}, [{from} + 16]",
                    "movaps {c}, [{from} + 32]",
                    "movaps {d}, [{from} + 48]",
                    "movups [{to}], {a}",
                    "movups [{to} + 16], {b}",
                    "movups [{to} + 32], {c}",
                    "movups [{to} + 48], {d}",
                    from = in(reg) words.as_ptr(),
                    to = in(reg) out.as_mut_ptr(),
                    a = out(xmm_reg) _,
                    b = out(xmm_reg) _,
                    c = out(xmm_reg) _,
                    d = out(xmm_reg) _,
                    options(nostack, preserves_flags)
                );
            }
        }
        load_short(last, last_out);
    }

    #[inline]
    pub fn store(words: &[AtomicU64], bytes: &[[u8; 8]]) {
        if size_of_val(bytes) >= STREAMED_BYTES_MIN {
            return store_streamed(words, bytes);
        }
        store_around(words, bytes, ACCESS, |words, bytes| {
            store_steps!("movaps", words, bytes);
        });
    }

    /// [`store`] past the caches.
    #[inline(never)]
    fn store_streamed(words: &[AtomicU64], bytes: &[[u8; 8]]) {
        store_around(words, bytes, LINE, |words, bytes| {
            fence_stores();
            store_steps!("movntps", words, bytes);
            fence_stores();
        });
    }

    /// Stores what lies before the first multiple of `align` bytes and what is left after whole
    /// steps. `store_steps` stores what is between them.
    #[inline(always)]
    fn store_around(
        words: &[AtomicU64],
        bytes: &[[u8; 8]],
        align: usize,
        store_steps: impl FnOnce(&[AtomicU64], &[[u8; 8]]),
    ) {
        let (head, wide) = parts(words, align);
        let (first, words) = words.split_at(head);
        let (first_bytes, bytes) = bytes.split_at(head);
        store_short(first, first_bytes);
        let (words, last) = words.split_at(wide);
        let (bytes, last_bytes) = bytes.split_at(wide);
        store_steps(words, bytes);
        store_short(last, last_bytes);
    }

    /// Has all stores before it become visible before all stores after it, of either kind.
    fn fence_stores() {
        // SAFETY: the instruction changes neither registers nor memory. As the compiler cannot know
        // that, it moves no access to memory across it.
        unsafe { asm!("sfence", options(nostack, preserves_flags)) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// At every alignment of either side, with every number of words around the steps.
    #[test]
    fn wide_copies_are_like_the_loop_and_touch_nothing_else() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        // Up to some steps, and around those that bypass the caches.
        let streamed = STREAMED_BYTES_MIN / 8;
        let lens: Vec<usize> = match cfg!(miri) {
            true => (30..34).collect(),
            false => (0..120).chain(streamed - 1..streamed + 9).collect(),
        };
        let places = lens
            .into_iter()
            .flat_map(|len| (0..9).map(move |at| (len, at)));
        for (len, at) in places {
            let (first, skip) = (at, at % 4 + 1);
            let words: Vec<AtomicU64> = (0..len + 10)
                .map(|_| AtomicU64::new(rng.random()))
                .collect();
            let heap = &words[first..first + len];
            let values = || {
                words
                    .iter()
                    .map(|word| word.load(Relaxed))
                    .collect::<Vec<u64>>()
            };
            let before = values();

            let [mut wide, mut plain] = [(); 2].map(|()| vec![MaybeUninit::new(7); 8 * len + 16]);
            load(heap, wide[skip..skip + 8 * len].as_chunks_mut().0);
            load_short(heap, plain[skip..skip + 8 * len].as_chunks_mut().0);
            // SAFETY: every byte was initialised when the vectors were made.
            let [wide, plain] = [&wide, &plain].map(|bytes| unsafe { bytes.assume_init_ref() });
            assert_eq!(wide, plain, "{len} words from word {first} to byte {skip}");

            let bytes: Vec<u8> = (0..8 * len + 16).map(|_| rng.random()).collect();
            store(heap, bytes[skip..skip + 8 * len].as_chunks().0);
            let wide = values();
            for (word, before) in words.iter().zip(before) {
                word.store(before, Relaxed);
            }
            store_short(heap, bytes[skip..skip + 8 * len].as_chunks().0);
            assert_eq!(
                wide,
                values(),
                "{len} words from byte {skip} to word {first}"
            );
        }
    }
}
