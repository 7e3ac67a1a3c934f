//! A value in the words of a heap.

use super::layout::words_of;
use super::wide;
use crate::memory::Words;
use core::mem::MaybeUninit;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// A value where it lies in a heap.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    pub(super) place: Words<'a>,
    pub(super) first_byte: usize,
    pub(super) len: usize,
}

impl<'a> Value<'a> {
    /// Bytes of the value.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Of the value, the bytes from `from` on, `bytes` of them, as far as there are as many.
    pub fn part(&self, from: usize, bytes: usize) -> Value<'a> {
        let from = from.min(self.len);
        Value {
            first_byte: self.first_byte + from,
            len: bytes.min(self.len - from),
            ..*self
        }
    }

    /// Appends the value to `out`. Words are stored as they come and overlap, so that nothing has
    /// to be shifted.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if self.len >= wide::BYTES_MIN {
            return self.append_long(out);
        }
        if self.len > 0 {
            self.append_with(out, wide::load_short);
        }
    }

    #[inline(never)]
    fn append_long(&self, out: &mut Vec<u8>) {
        self.append_with(out, wide::load);
    }

    #[inline(always)]
    fn append_with(
        &self,
        out: &mut Vec<u8>,
        load: impl FnOnce(&[AtomicU64], &mut [[MaybeUninit<u8>; 8]]),
    ) {
        out.reserve(self.len + 8);
        let start = out.len();
        let space = &mut out.spare_capacity_mut()[..self.len + 8];
        let (skip, first, rest) = self.words();
        space[..8].write_copy_of_slice(&(first.load(Relaxed) >> (8 * skip)).to_le_bytes());
        let (space, _) = space[8 - skip..].as_chunks_mut::<8>();
        load(rest, space);
        // SAFETY: `reserve` made room for len + 8 bytes, and the words written above cover the
        // first `len` of them without a gap.
        unsafe { out.set_len(start + self.len) };
    }

    /// The words that the value is in, of which there is one at least, and how many bytes of the
    /// first are the key's. To get the value, shift that word and put each other word eight bytes
    /// after the one before.
    #[inline(always)]
    fn words(&self) -> (usize, &'a AtomicU64, &'a [AtomicU64]) {
        let skip = self.first_byte % 8;
        let count = words_of(skip + self.len);
        let words = self.place.range(self.first_byte / 8, count);
        (skip, &words[0], &words[1..])
    }

    /// A value of `N` bytes, a number of whole words that the compiler knows.
    #[inline(always)]
    pub fn array<const N: usize>(&self) -> Option<[u8; N]> {
        const { assert!(N >= 8 && N.is_multiple_of(8), "whole words") };
        if self.len != N {
            return None;
        }
        let (first, skip) = (self.first_byte / 8, self.first_byte % 8);
        let mut bytes = [0; N];
        let (space, _) = bytes.as_chunks_mut::<8>();
        if skip == 0 {
            for (space, word) in space.iter_mut().zip(self.place.range(first, N / 8)) {
                *space = word.load(Relaxed).to_le_bytes();
            }
        } else {
            let words = self.place.range(first, N / 8 + 1);
            for (space, pair) in space.iter_mut().zip(words.windows(2)) {
                let low = pair[0].load(Relaxed) >> (8 * skip);
                let high = pair[1].load(Relaxed) << (64 - 8 * skip);
                *space = (low | high).to_le_bytes();
            }
        }
        Some(bytes)
    }

    /// The value's bytes, if they are at most 24.
    #[inline(always)]
    pub fn short_bytes<'b>(&self, buffer: &'b mut [u8; 32]) -> Option<&'b [u8]> {
        if self.len > 24 {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        let (skip, first, rest) = self.words();
        buffer[..8].copy_from_slice(&(first.load(Relaxed) >> (8 * skip)).to_le_bytes());
        let (space, _) = buffer[8 - skip..].as_chunks_mut::<8>();
        for (space, word) in space.iter_mut().zip(rest) {
            *space = word.load(Relaxed).to_le_bytes();
        }
        Some(&buffer[..self.len])
    }

    /// Whether the value consists of these bytes. In memory that others write meanwhile, the
    /// answer may be wrong.
    pub fn equals(&self, bytes: &[u8]) -> bool {
        const AT_ONCE: usize = 24;
        let mut buffer = [0; 32];
        self.len == bytes.len()
            && bytes.chunks(AT_ONCE).enumerate().all(|(nth, chunk)| {
                let part = self.part(nth * AT_ONCE, AT_ONCE);
                part.short_bytes(&mut buffer) == Some(chunk)
            })
    }
}
