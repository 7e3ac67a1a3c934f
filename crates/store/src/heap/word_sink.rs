//! Joins byte strings into words, as items are written.

use super::layout::partial_word;
use super::wide;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// Joins byte strings into words without a gap.
pub(super) struct WordSink<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) partial: u64,
    pub(super) filled: usize,
}

impl<'a> WordSink<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        WordSink {
            words,
            partial: 0,
            filled: 0,
        }
    }

    #[inline(always)]
    fn word(&mut self, word: u64) {
        if let Some((space, rest)) = self.words.split_first() {
            space.store(word, Relaxed);
            self.words = rest;
        }
    }

    /// Bytes of which there are few. Two slices end this loop, so that the compiler does not
    /// prepare it for many.
    #[inline(always)]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let Some(mut bytes) = self.complete(bytes) else {
            return;
        };
        while let Some((word, rest)) = bytes.split_first_chunk() {
            let Some((space, behind)) = self.words.split_first() else {
                return;
            };
            space.store(u64::from_le_bytes(*word), Relaxed);
            (self.words, bytes) = (behind, rest);
        }
        self.partial = partial_word(bytes);
        self.filled = bytes.len();
    }

    /// [`bytes`](Self::bytes) for what may be long.
    #[inline(always)]
    pub(super) fn long_bytes(&mut self, bytes: &[u8]) {
        if bytes.len() < wide::BYTES_MIN {
            return self.bytes(bytes);
        }
        let Some(bytes) = self.complete(bytes) else {
            return;
        };
        let (words, rest) = bytes.as_chunks::<8>();
        let (space, behind) = self.words.split_at(words.len());
        wide::store(space, words);
        self.words = behind;
        self.partial = partial_word(rest);
        self.filled = rest.len();
    }

    /// Completes the word that has been begun. Returns the bytes after it, unless these bytes are
    /// too few.
    #[inline(always)]
    fn complete<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        if self.filled != 0 {
            let missing = 8 - self.filled;
            let first = match bytes.first_chunk() {
                Some(first) => u64::from_le_bytes(*first),
                None => partial_word(bytes),
            };
            self.partial |= first << (8 * self.filled);
            if bytes.len() < missing {
                self.filled += bytes.len();
                return None;
            }
            self.word(self.partial);
            return Some(&bytes[missing..]);
        }
        Some(bytes)
    }

    #[inline(always)]
    pub(super) fn finish(mut self) {
        if self.filled != 0 {
            self.word(self.partial);
        }
    }
}
