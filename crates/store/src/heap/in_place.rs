//! Bytes of a heap where they lie, as bytes and not as words.

use super::Item;
use super::bytes;
use crate::memory::Words;
use core::ptr::NonNull;

/// Whether words lie in memory as the bytes that they consist of. Loom has words of its own.
const ARE_BYTES: bool = cfg!(all(target_endian = "little", not(loom)));

/// `len` bytes from byte `at` on where they lie. `None` where words do not lie in memory as bytes
/// do.
pub(crate) fn bytes_in_place(words: Words<'_>, at: usize, len: usize) -> Option<NonNull<[u8]>> {
    assert!(at + len <= 8 * words.len());
    if !ARE_BYTES {
        return None;
    }
    let first = NonNull::from(words.range(0, words.len())).cast::<u8>();
    // SAFETY: the bytes lie within the words.
    let first = unsafe { first.add(at) };
    Some(NonNull::slice_from_raw_parts(first, len))
}

/// Writes a few bytes from byte `at` on. Unlike [`bytes::store`] it does not store to the bytes
/// before them either, which share a word with them.
pub(super) fn store_beside(words: Words<'_>, at: usize, stored: &[u8]) {
    let head = at.wrapping_neg() % 8;
    let (first, rest) = stored.split_at(stored.len().min(head));
    // Miri has no atomic stores of two sizes to the same memory.
    match bytes_in_place(words, at, first.len()).filter(|_| !cfg!(miri)) {
        Some(place) => write_bytes(place, first),
        None => bytes::store(words, at, first),
    }
    bytes::store(words, at + first.len(), rest);
}

#[cfg(not(loom))]
fn write_bytes(place: NonNull<[u8]>, bytes: &[u8]) {
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
    assert_eq!(place.len(), bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        // SAFETY: the byte is one of a word of a heap, which is used through shared references only
        // and may be written through them. An optimistic reader that looks at the word meanwhile
        // discards what it has read, as with any store to a place that is not an item's.
        let place = unsafe { AtomicU8::from_ptr(place.cast::<u8>().as_ptr().add(at)) };
        place.store(*byte, Relaxed);
    }
}

#[cfg(loom)]
fn write_bytes(_place: NonNull<[u8]>, _bytes: &[u8]) {
    unreachable!("words are not bytes here")
}

impl<'a> Item<'a> {
    /// The first `len` bytes of the value where they lie. `None` where words do not lie in memory
    /// as bytes do.
    ///
    /// # Safety
    ///
    /// Nothing writes to these bytes while the result is in use.
    #[inline(always)]
    pub(crate) unsafe fn bytes_in_place(&self, len: usize) -> Option<&'a [u8]> {
        let words = Words::of(self.place().range(0, self.words()));
        let bytes = bytes_in_place(words, self.layout().value_at(), len)?;
        // SAFETY: the bytes live as long as the item. The caller answers for the rest.
        Some(unsafe { bytes.as_ref() })
    }
}
