//! The bytes of a value where they lie, which nothing changes meanwhile.

use super::Item;

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
