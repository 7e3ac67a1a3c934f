//! What has been received and does not fit or is incomplete.

use glimmer_transport::stream::{ByteStream, Received};

use crate::record::{self, Fault, Opener};

/// What has been received and does not fit or is incomplete: bytes of one record that are
/// decrypted, and then records that are not, of which the last is incomplete. There is memory
/// behind it only while it holds something.
#[derive(Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// Where the bytes lie that are decrypted and have not been handed on.
    plain: (usize, usize),
    /// Where the records begin.
    records: usize,
}

impl Kept {
    /// Records that were received before there were keys for them.
    pub fn records(bytes: Vec<u8>) -> Kept {
        Kept {
            bytes,
            ..Kept::default()
        }
    }

    /// Bytes of memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes that are decrypted.
    #[inline]
    pub fn plain(&self) -> &[u8] {
        &self.bytes[self.plain.0..self.plain.1]
    }

    /// Notes that decrypted bytes have been handed on.
    pub fn hand_on(&mut self, count: usize) {
        self.plain.0 += count;
        self.trim();
    }

    /// Bytes that are not decrypted.
    #[inline]
    pub fn encrypted(&self) -> &[u8] {
        &self.bytes[self.records..]
    }

    /// Whether what is not decrypted begins with a whole record.
    pub fn has_record(&self) -> Result<bool, Fault> {
        let encrypted = self.encrypted();
        let bytes = record::record_bytes(encrypted)?;
        Ok(bytes.is_some_and(|bytes| bytes <= encrypted.len()))
    }

    /// Decrypts its first record, where it lies. Returns its type. Nothing that is decrypted
    /// waits to be handed on.
    pub fn open(&mut self, opener: &mut Opener) -> Result<u8, Fault> {
        debug_assert!(self.plain().is_empty());
        let encrypted = &mut self.bytes[self.records..];
        let bytes = record::record_bytes(encrypted)?.unwrap_or(0);
        let (kind, length) = opener.open(&mut encrypted[..bytes], 0)?;
        self.plain = (self.records, self.records + length);
        self.records += bytes;
        Ok(kind)
    }

    /// Receives once, no further than to the end of the first record, or of its header.
    pub fn receive(&mut self, stream: &mut dyn ByteStream) -> Result<Received, Fault> {
        self.bytes.drain(..self.records);
        (self.records, self.plain) = (0, (0, 0));
        let whole = record::record_bytes(&self.bytes)?.unwrap_or(record::HEADER_BYTES);
        let missing = whole.saturating_sub(self.bytes.len()).max(1);
        self.bytes.reserve_exact(missing);
        Ok(stream.receive_at_most(&mut self.bytes, missing))
    }

    /// Moves what is not decrypted to the end of a buffer.
    pub fn move_to(&mut self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.bytes[self.records..]);
        *self = Kept::default();
    }

    /// Keeps these bytes of a record that is incomplete. It holds nothing else.
    pub fn keep(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let whole = record::record_bytes(bytes).ok().flatten();
            let mut kept = Vec::with_capacity(whole.unwrap_or(0).max(bytes.len()));
            kept.extend_from_slice(bytes);
            *self = Kept::records(kept);
        }
    }

    /// Gives its memory back if it holds nothing.
    fn trim(&mut self) {
        if self.plain().is_empty() && self.records == self.bytes.len() {
            *self = Kept::default();
        }
    }
}
