//! Values that replies show and that the table lends, instead of having them copied.
//!
//! A reply is data: bytes in a reply buffer, and for large values a [`LentPart`] that says where in
//! them a value belongs. The engine sends nothing, and does not know who does.

use glimmer_base::limits::REPLY_BYTES_HIGH;
use glimmer_store::table::LentValue;

/// A part of a reply that is not in the reply buffer.
pub struct LentPart {
    /// The reply buffer that it belongs to.
    pub out: u32,
    /// Its place: the number of bytes of the reply buffer that come before it.
    pub at: usize,
    /// Most of an item's value. The last bytes of the value follow in the reply buffer.
    pub value: Box<dyn LentValue>,
}

/// The lent parts of the replies of some batches, in the order of the replies of each buffer.
#[derive(Default)]
pub struct LentParts {
    /// One bit for each reply buffer that may have such parts.
    buffers: u64,
    parts: Vec<LentPart>,
}

impl LentParts {
    /// Says which reply buffers may have such parts from here on: bit `n` is for buffer `n`.
    pub fn lend_to(&mut self, buffers: u64) {
        self.buffers = buffers;
    }

    /// Whether there is no part.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.value.bytes()).sum()
    }

    /// Bytes of the parts of one reply buffer.
    pub fn bytes_of(&self, out: u32) -> usize {
        let parts = self.parts.iter().filter(|part| part.out == out);
        parts.map(|part| part.value.bytes()).sum()
    }

    /// The reply buffers of the parts, each as often as it has parts.
    pub fn buffers_of_parts(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|part| part.out)
    }

    /// Takes the parts of one reply buffer.
    pub fn take(&mut self, out: u32) -> impl Iterator<Item = LentPart> {
        self.parts.extract_if(.., move |part| part.out == out)
    }

    /// Whether this reply buffer may have such parts.
    pub(crate) fn may_lend(&self, out: u32) -> bool {
        self.buffers >> out & 1 != 0
    }

    /// Whether a reply buffer that holds this many bytes has enough for its client to take first.
    pub(crate) fn is_full(&self, out: u32, buffered: usize) -> bool {
        self.bytes_of(out) + buffered >= REPLY_BYTES_HIGH
    }

    pub(crate) fn push(&mut self, part: LentPart) {
        self.parts.push(part);
    }
}
