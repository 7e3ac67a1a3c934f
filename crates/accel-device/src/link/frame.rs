//! Frames: four bytes with the number of the bytes that follow, and these. All numbers are little
//! endian.

use glimmer_base::limits::LINK_MEMORY_BYTES_MAX;

/// Bytes of the number in front.
pub(crate) const HEAD_BYTES: usize = 4;
/// Most bytes of a frame after the number: a kind, an operation's registers, and its memory.
pub const FRAME_BYTES_MAX: usize = 1 + 1 + 8 + 8 + LINK_MEMORY_BYTES_MAX;

/// What is wrong with bytes that are no frame, or no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The number in front is zero, or more than [`FRAME_BYTES_MAX`].
    #[error("a frame has 1 to {FRAME_BYTES_MAX} bytes")]
    Length,
    /// Nobody has this kind of message.
    #[error("there is no message of this kind")]
    Kind,
    /// There are more bytes than the message has fields, or fewer.
    #[error("a message is longer or shorter than its fields")]
    Fields,
    /// The other side is no accelerator, and no server.
    #[error("the other side speaks another protocol")]
    Magic,
    /// A field has a value that it cannot have.
    #[error("the {0} is out of range")]
    Field(&'static str),
}

/// Takes the first frame off. `None` if it has not come to its end.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*head) as usize;
    if !(1..=FRAME_BYTES_MAX).contains(&length) {
        return Err(Malformed::Length);
    }
    let end = HEAD_BYTES + length;
    Ok(bytes.get(HEAD_BYTES..end).map(|frame| (frame, end)))
}

/// Appends a frame whose bytes `write` appends.
pub(crate) fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEAD_BYTES]);
    write(out);
    let length = (out.len() - start - HEAD_BYTES) as u32;
    out[start..][..HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// What is left of a message.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Fields)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// There is nothing left.
    pub fn end(self) -> Result<(), Malformed> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Malformed::Fields),
        }
    }
}
