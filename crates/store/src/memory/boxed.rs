//! The plain twin of the mapped memory, for loom and Miri: boxed slices, and a modulo where the
//! mapping has a mirror.

use super::{PagePolicy, ZeroAtomics};
use glimmer_base::sync::AtomicU64;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// See the mapped twin.
pub struct MirroredWords {
    words: Box<[AtomicU64]>,
}

impl MirroredWords {
    /// See the mapped twin.
    pub fn new(
        words: usize,
        _mirror: usize,
        _policy: PagePolicy,
        _node: Option<u32>,
    ) -> io::Result<Self> {
        Ok(MirroredWords {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// See the mapped twin.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// See the mapped twin.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[at % self.words.len()]
    }

    /// See the mapped twin.
    pub fn range(&self, at: usize, count: usize) -> impl Iterator<Item = &AtomicU64> {
        (at..at + count).map(|i| self.word(i))
    }

    /// See the mapped twin.
    pub fn view(&self, at: usize, count: usize) -> Words<'_> {
        Words {
            all: &self.words,
            at,
            len: count,
        }
    }

    /// See the mapped twin.
    pub fn prefetch(&self, _at: usize) {}

    /// See the mapped twin.
    pub fn addresses(&self) -> Range<usize> {
        0..0
    }
}

/// See the mapped twin; goes on at the beginning, where the mapping has a mirror.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    all: &'a [AtomicU64],
    at: usize,
    len: usize,
}

impl<'a> Words<'a> {
    /// See the mapped twin.
    pub fn of(words: &'a [AtomicU64]) -> Words<'a> {
        Words {
            all: words,
            at: 0,
            len: words.len(),
        }
    }

    /// See the mapped twin.
    #[expect(clippy::len_without_is_empty, reason = "no item is without words")]
    pub fn len(self) -> usize {
        self.len
    }

    /// See the mapped twin.
    pub fn word(self, at: usize) -> &'a AtomicU64 {
        assert!(at < self.len);
        &self.all[(self.at + at) % self.all.len()]
    }

    /// See the mapped twin.
    pub fn range(self, at: usize, count: usize) -> impl Iterator<Item = &'a AtomicU64> {
        (at..at + count).map(move |i| self.word(i))
    }
}

/// See the mapped twin.
pub struct ZeroedSlice<T>(Arc<[T]>);

impl<T> Clone for ZeroedSlice<T> {
    fn clone(&self) -> Self {
        ZeroedSlice(self.0.clone())
    }
}

impl<T: ZeroAtomics> ZeroedSlice<T> {
    /// See the mapped twin.
    pub fn new(len: usize, _policy: PagePolicy, _node: Option<u32>) -> io::Result<Self> {
        Ok(ZeroedSlice((0..len).map(|_| T::zero()).collect()))
    }

    /// See the mapped twin.
    pub fn addresses(&self) -> Range<usize> {
        0..0
    }

    /// See the mapped twin.
    pub fn prefetch(&self, _at: usize) {}
}

impl<T> core::ops::Deref for ZeroedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
