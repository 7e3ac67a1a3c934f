//! Values that replies show and that the table lends, instead of having them copied.
//!
//! A reply is data: bytes in a reply buffer, and for large values a [`LentPart`] that says where in
//! them a value belongs. The engine sends nothing, and does not know who does.

use glimmer_base::limits::{
    BUFFER_BYTES, LENT_AFTER_BYTES, LENT_BYTES_MIN, MEDIUM_BYTES_MIN, REPLY_BYTES_HIGH,
};
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

impl LentPart {
    /// The part, where what began at `from` begins at `to`.
    pub fn moved(self, from: usize, to: usize) -> LentPart {
        let at = self.at - from + to;
        LentPart { at, ..self }
    }
}

/// The lent parts of the replies of some batches, in the order of the replies of each buffer.
pub struct LentParts {
    /// One bit for each reply buffer that may have such parts.
    buffers: u64,
    /// Values of at least this many bytes are lent.
    bytes_min: usize,
    parts: Vec<LentPart>,
}

impl Default for LentParts {
    fn default() -> LentParts {
        LentParts {
            buffers: 0,
            bytes_min: LENT_BYTES_MIN,
            parts: Vec::new(),
        }
    }
}

impl LentParts {
    /// Says which reply buffers may have such parts from here on: bit `n` is for buffer `n`.
    pub fn lend_to(&mut self, buffers: u64) {
        self.buffers = buffers;
    }

    /// Says whether values of medium size are lent as well from here on, which saves memory for
    /// buffers.
    pub fn lend_medium(&mut self, lends: bool) {
        self.bytes_min = match lends {
            true => MEDIUM_BYTES_MIN,
            false => LENT_BYTES_MIN,
        };
    }

    /// Whether a value of this many bytes is lent, if it may be, and a reply buffer holds that many
    /// already.
    #[inline(always)]
    pub(crate) fn lends(&self, value_bytes: usize, buffered: usize) -> bool {
        value_bytes >= MEDIUM_BYTES_MIN
            && (value_bytes >= self.bytes_min
                || value_bytes >= BUFFER_BYTES / 2 && buffered >= LENT_AFTER_BYTES)
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
