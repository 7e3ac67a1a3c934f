//! Reports each read of a lookup to an observer, which counts them.

use std::sync::atomic::AtomicU64;

/// Hears of every place that a lookup reads.
pub trait Trace {
    /// The lookup comes to another bucket.
    fn bucket(&mut self);

    /// A word of the index is read.
    fn index(&mut self, word: &AtomicU64);

    /// An item is read: a reference is followed.
    fn item(&mut self);
}

/// Nobody listens, and nothing is left of the calls.
impl Trace for () {
    #[inline(always)]
    fn bucket(&mut self) {}

    #[inline(always)]
    fn index(&mut self, _: &AtomicU64) {}

    #[inline(always)]
    fn item(&mut self) {}
}
