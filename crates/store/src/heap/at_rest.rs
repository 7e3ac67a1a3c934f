//! Items whose bytes may be lent, because nothing changes them meanwhile.

use super::Item;
use std::ops::Deref;

/// An item that its partition's writer shows.
///
/// **Invariant.** While this exists, no thread writes to the item: the thread that has it is the
/// partition's only writer and does not write, and readers beside it never write to items.
pub struct ItemAtRest<'a>(Item<'a>);

impl<'a> ItemAtRest<'a> {
    /// An item at rest.
    ///
    /// # Safety
    ///
    /// The type's invariant holds until the result is dropped.
    #[inline(always)]
    pub(crate) unsafe fn new(item: Item<'a>) -> Self {
        ItemAtRest(item)
    }

    /// The value's bytes where they lie. `None` where words do not lie in memory as bytes do.
    #[inline(always)]
    pub fn value_bytes(&self) -> Option<&[u8]> {
        // SAFETY: nothing writes to the item while `self` is borrowed, by the invariant.
        unsafe { self.0.bytes_in_place(self.0.value().len()) }
    }
}

impl<'a> Item<'a> {
    /// The first `len` bytes of the value where they lie. `None` where words do not lie in memory
    /// as bytes do.
    ///
    /// # Safety
    ///
    /// Nothing writes to these bytes while the result is in use.
    #[cfg(all(target_endian = "little", not(loom)))]
    #[inline(always)]
    pub(crate) unsafe fn bytes_in_place(&self, len: usize) -> Option<&'a [u8]> {
        let words = self.place().range(0, self.words());
        let at = self.layout().value_at();
        assert!(at + len <= 8 * words.len());
        // SAFETY: the bytes lie within the words, which live as long as the item. The caller
        // answers for the rest.
        Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(at), len) })
    }

    /// The first `len` bytes of the value where they lie. `None` where words do not lie in memory
    /// as bytes do.
    ///
    /// # Safety
    ///
    /// Nothing writes to these bytes while the result is in use.
    #[cfg(not(all(target_endian = "little", not(loom))))]
    #[inline(always)]
    pub(crate) unsafe fn bytes_in_place(&self, _len: usize) -> Option<&'a [u8]> {
        None
    }
}

impl<'a> Deref for ItemAtRest<'a> {
    type Target = Item<'a>;

    #[inline(always)]
    fn deref(&self) -> &Item<'a> {
        &self.0
    }
}
