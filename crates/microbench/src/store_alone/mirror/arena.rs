//! Chunks of one size: links, header, key, value.

use std::{
    array,
    hint::black_box,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use anyhow::{Result, ensure};
use glimmer_store::memory::{PagePolicy, ZeroedSlice};

use super::Chunk;

/// Words of a chunk that every kind of table has: times, sizes and flags, like memcached's header
/// without its links and reference count.
pub const HEADER_WORDS: usize = 4;

/// See the module's text.
pub struct Arena<const K: usize, const V: usize> {
    words: ZeroedSlice<AtomicU64>,
    chunk_words: usize,
    /// Words before the header: first the index's, then the list's.
    link_words: usize,
    index_words: usize,
    capacity: u32,
    /// Chunks that have been handed out so far.
    used: AtomicU32,
    /// The first free chunk of those. Free chunks are linked through their headers.
    free: AtomicU32,
}

impl<const K: usize, const V: usize> Arena<K, V> {
    /// Room for this many items, with this many words per chunk for the index and for the list.
    pub fn new(
        items: usize,
        index_words: usize,
        list_words: usize,
        pages: PagePolicy,
    ) -> Result<Self> {
        ensure!(
            (1..u32::MAX as usize).contains(&items),
            "a table holds at least one item"
        );
        let link_words = index_words + list_words;
        let chunk_words = link_words + HEADER_WORDS + (K + V) / 8;
        Ok(Arena {
            // Chunk zero means no chunk.
            words: ZeroedSlice::new((items + 1) * chunk_words, pages, None)?,
            chunk_words,
            link_words,
            index_words,
            capacity: items as u32,
            used: AtomicU32::new(0),
            free: AtomicU32::new(0),
        })
    }

    /// A free chunk, or zero. For writers.
    pub fn take(&self) -> Chunk {
        let free = self.free.load(Relaxed);
        if free != 0 {
            self.free
                .store(self.header(free).load(Relaxed) as u32, Relaxed);
            return free;
        }
        let used = self.used.load(Relaxed);
        if used == self.capacity {
            return 0;
        }
        self.used.store(used + 1, Relaxed);
        used + 1
    }

    /// Frees a chunk. For writers.
    pub fn give_back(&self, chunk: Chunk) {
        self.header(chunk)
            .store(self.free.load(Relaxed).into(), Relaxed);
        self.free.store(chunk, Relaxed);
    }

    #[inline(always)]
    fn word(&self, chunk: Chunk, at: usize) -> &AtomicU64 {
        &self.words[chunk as usize * self.chunk_words + at]
    }

    /// The word of the index.
    #[inline(always)]
    pub fn index_link(&self, chunk: Chunk) -> &AtomicU64 {
        self.word(chunk, 0)
    }

    /// A word of the list.
    #[inline(always)]
    pub fn list_link(&self, chunk: Chunk, at: usize) -> &AtomicU64 {
        self.word(chunk, self.index_words + at)
    }

    #[inline(always)]
    fn header(&self, chunk: Chunk) -> &AtomicU64 {
        self.word(chunk, self.link_words)
    }

    #[inline(always)]
    fn key_word(&self, chunk: Chunk, at: usize) -> u64 {
        self.word(chunk, self.link_words + HEADER_WORDS + at)
            .load(Relaxed)
    }

    #[inline(always)]
    fn value_word(&self, chunk: Chunk, at: usize) -> &AtomicU64 {
        self.word(chunk, self.link_words + HEADER_WORDS + K / 8 + at)
    }

    /// The chunk's key.
    #[inline(always)]
    pub fn key(&self, chunk: Chunk) -> [u8; K] {
        gather(|at| self.key_word(chunk, at))
    }

    /// Whether the chunk has this key: compared word by word, or by `memcmp` with a length that the
    /// compiler does not know.
    #[inline(always)]
    pub fn key_is<const BY_WORDS: bool>(&self, chunk: Chunk, key: &[u8; K]) -> bool {
        if BY_WORDS {
            return (0..K / 8).all(|at| self.key_word(chunk, at) == word_of(key, at));
        }
        let (stored, length) = (self.key(chunk), black_box(K));
        stored[..length] == key[..length]
    }

    /// The chunk's value.
    #[inline(always)]
    pub fn value(&self, chunk: Chunk) -> [u8; V] {
        gather(|at| self.value_word(chunk, at).load(Relaxed))
    }

    /// Writes a value.
    #[inline(always)]
    pub fn set_value(&self, chunk: Chunk, value: &[u8; V]) {
        for at in 0..V / 8 {
            self.value_word(chunk, at)
                .store(word_of(value, at), Relaxed);
        }
    }

    /// Writes an item.
    pub fn write(&self, chunk: Chunk, key: &[u8; K], value: &[u8; V]) {
        self.header(chunk).store((K << 32 | V) as u64, Relaxed);
        for at in 0..K / 8 {
            self.word(chunk, self.link_words + HEADER_WORDS + at)
                .store(word_of(key, at), Relaxed);
        }
        self.set_value(chunk, value);
    }
}

#[inline(always)]
fn word_of<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let part: [u8; 8] = array::from_fn(|i| bytes[8 * at + i]);
    u64::from_le_bytes(part)
}

#[inline(always)]
fn gather<const N: usize>(word: impl Fn(usize) -> u64) -> [u8; N] {
    let mut bytes = [0; N];
    for (at, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&word(at).to_le_bytes());
    }
    bytes
}
