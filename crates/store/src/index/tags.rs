//! Finding a tag among a main bucket's 15 entries or a spare one's 7: on x86-64 four entries at a
//! time, elsewhere (and under loom and Miri) one at a time.

use super::bucket::Bucket;
#[cfg(any(test, not(all(target_arch = "x86_64", not(any(loom, miri))))))]
use super::bucket::{BUCKET_ENTRIES, SPARE_ENTRIES};
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
use core::arch::x86_64::*;

/// Places of a bucket's entries, lowest first. Bit 0 stands for version and link and is never set,
/// bit 1 for place 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matches(u32);

impl Iterator for Matches {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let word = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(word - 1)
    }
}

/// The places of a main bucket's entries whose tag is the upper half of `tag_and_more`.
#[inline(always)]
pub fn matching(bucket: &Bucket, tag_and_more: u32) -> Matches {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    return Matches(sse2(bucket, tag_and_more));
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    return Matches(plain(bucket, BUCKET_ENTRIES, tag_and_more));
}

/// The places of a spare bucket's entries whose tag is the upper half of `tag_and_more`. Only its
/// own line is read.
#[inline(always)]
pub fn matching_spare(bucket: &Bucket, tag_and_more: u32) -> Matches {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    return Matches(sse2_spare(bucket, tag_and_more));
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    return Matches(plain(bucket, SPARE_ENTRIES, tag_and_more));
}

#[cfg(any(test, not(all(target_arch = "x86_64", not(any(loom, miri))))))]
fn plain(bucket: &Bucket, entries: usize, tag_and_more: u32) -> u32 {
    let tag = (tag_and_more >> 16) as u16;
    (0..entries).fold(0, |places, at| {
        places | u32::from(bucket.entry(at).tag() == tag) << (1 + at)
    })
}

/// Takes the tags of four entries with two loads: the second one shuffles the high halves of four
/// entries into one vector. There the upper half of each lane is a tag. Only the upper halves of
/// what is compared matter, as the sign of a lane survives both packings. The first entry's place
/// is taken by version and link, whose outcome is dropped.
///
/// The loads are made in assembly because the entries may be changing: to the language this is
/// eight relaxed loads of two atomics each, which is what the processor does with an aligned
/// 16-byte load (each half is read whole).
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
fn sse2(bucket: &Bucket, tag: u32) -> u32 {
    let line = [
        eight::<0, 1, 2, 3>(bucket, tag),
        eight::<4, 5, 6, 7>(bucket, tag),
    ];
    outcomes(line)
}

/// As [`sse2`], for the entries of a bucket's first line.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
fn sse2_spare(bucket: &Bucket, tag: u32) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    let none = unsafe { _mm_setzero_si128() };
    outcomes([eight::<0, 1, 2, 3>(bucket, tag), none])
}

/// The mask of what was compared: a bit for each entry.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
fn outcomes([low, high]: [__m128i; 2]) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32 & !1 }
}

/// Compares the tags of eight words, those of four aligned 16-byte parts of a bucket, with the
/// upper half of `tag`. Negative lanes stand for tags that are equal.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
fn eight<const A: usize, const B: usize, const C: usize, const D: usize>(
    bucket: &Bucket,
    tag: u32,
) -> __m128i {
    let head = core::ptr::from_ref(bucket).cast::<__m128i>();
    #[inline(always)]
    fn high_halves<const LOW: usize, const HIGH: usize>(head: *const __m128i) -> __m128i {
        const { assert!(LOW < size_of::<Bucket>() / 16 && HIGH < size_of::<Bucket>() / 16) };
        let value: __m128i;
        // SAFETY: the parts are the eight aligned 16-byte ones of a bucket; the asm only reads it.
        // The distance is a part of the instruction, so that it takes no other.
        unsafe {
            core::arch::asm!(
                "movaps {value}, [{head} + {low}]",
                "shufps {value}, [{head} + {high}], 0xDD",
                value = out(xmm_reg) value,
                head = in(reg) head,
                low = const 16 * LOW,
                high = const 16 * HIGH,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        value
    }
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let wanted = _mm_set1_epi32(tag.cast_signed());
        _mm_packs_epi32(
            _mm_cmpeq_epi16(high_halves::<A, B>(head), wanted),
            _mm_cmpeq_epi16(high_halves::<C, D>(head), wanted),
        )
    }
}

#[cfg(all(test, target_arch = "x86_64", not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::index::Entry;
    use crate::memory::ZeroAtomics;
    use rand::{Rng, SeedableRng};

    #[test]
    fn the_vector_finds_what_the_plain_loop_finds() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = rand::rngs::SmallRng::seed_from_u64(seed);
        let bucket = Bucket::zero();
        for _ in 0..10_000 {
            for place in 0..BUCKET_ENTRIES {
                let tag = if rng.random_bool(0.3) {
                    rng.random_range(0..4u64)
                } else {
                    rng.random_range(0..1 << 16)
                };
                bucket.set_entry(
                    place,
                    Entry::from_raw(tag << 48 | rng.random::<u64>() >> 16),
                );
            }
            bucket.set_next(Some(rng.random_range(0..1 << 30)));
            let wanted = rng.random_range(0..4) << 16 | rng.random_range(0..1 << 16);
            assert_eq!(
                sse2(&bucket, wanted),
                plain(&bucket, BUCKET_ENTRIES, wanted)
            );
            assert_eq!(
                sse2_spare(&bucket, wanted),
                plain(&bucket, SPARE_ENTRIES, wanted)
            );
        }
    }
}
