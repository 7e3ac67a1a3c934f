//! The plain twin of the mapped memory, for loom and Miri: boxed slices.

use super::{PagePolicy, ZeroAtomics};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// There is no page to be taken.
#[derive(Clone, Debug)]
pub struct PagesAhead;

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
    pub fn within(len: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        Self::new(len, policy, node)
    }

    /// See the mapped twin.
    pub fn sparse(len: usize, policy: PagePolicy, node: Option<u32>) -> io::Result<Self> {
        Self::new(len, policy, node)
    }

    /// See the mapped twin. There is no file.
    pub fn in_file(_: usize, _: &std::fs::File, _: u64, _: PagePolicy) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See the mapped twin.
    pub fn settle(&self, _policy: PagePolicy, _node: Option<u32>) -> io::Result<()> {
        Ok(())
    }

    /// See the mapped twin.
    pub fn grant(&self, _words: Range<usize>) {}

    /// See the mapped twin.
    pub fn take_ahead(&self, _words: Range<usize>, _by: &PagesAhead) {}

    /// See the mapped twin.
    pub fn withdraw(&self, _words: Range<usize>) {}

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
