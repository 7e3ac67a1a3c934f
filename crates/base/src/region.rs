//! Memory that the kernel stores to.

use std::marker::PhantomData;

/// A region that the kernel may store received bytes to.
///
/// It is not a slice, because optimistic readers may load from it at the same time. They find
/// afterwards that the item which they looked for is gone, and discard what they have read.
#[derive(Debug)]
pub struct Region<'a> {
    start: *mut u8,
    bytes: usize,
    memory: PhantomData<&'a ()>,
}

impl Region<'_> {
    /// The region of this many bytes that begins here.
    ///
    /// # Safety
    ///
    /// All of it can be stored to for the lifetime, and nobody else stores to it.
    #[must_use]
    pub unsafe fn new(start: *mut u8, bytes: usize) -> Self {
        Region {
            start,
            bytes,
            memory: PhantomData,
        }
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&mut self) -> *mut u8 {
        self.start
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
