//! The layout of an item, byte for byte, in whichever heap it lies.
//!
//! ```text
//! word 0     63        24 23         16 15      8 7       0
//!           +------------+-------------+---------+---------+
//!           | CAS unique | value length| key     | marks   |
//!           | 40 bits    | low 8 bits  | length  |         |
//!           +------------+-------------+---------+---------+
//! then      key,
//!           the upper 24 bits of the value's length (3 bytes, only with the mark WIDE: values of
//!           256 bytes and more),
//!           value,
//!           client flags (1 byte or 5, only with the mark FLAGS; see `flags_bytes`), with the
//!           birth of an item that has one (10 bytes or 14 in all),
//!           expiry (5 bytes, only with EXPIRY),
//!           the CAS unique's upper 24 bits and the second of the last access (3 and 4 bytes,
//!           only with EXTRA), up to the next word
//! ```
//!
//! A field that an item does not use costs nothing: a 16-byte key with a 32-byte value takes 56
//! bytes, 8 of them the header. The key begins on a word, so that it is compared eight bytes at a
//! time. The keyhash is not kept (the paper does); it is computed again in the one place that wants
//! it, the head of the log. A key length of zero marks a *filler*: unused space, whose length in
//! words stands where the CAS unique does.
//!
//! All reads are relaxed atomic loads of whole words, so an optimistic reader may run over bytes
//! that are being overwritten. It reads nonsense then, but never outside the view that the heap
//! gave of the item's place: sizes are read once, and compared with that view. What it makes of the
//! nonsense is thrown away when validation fails.

use super::history::EXTRA_BYTES;
use crate::groups::EVENT_BITS;
use crate::memory::Words;
use glimmer_base::Expiry;
use glimmer_base::sync::Ordering::Relaxed;

pub(super) const WIDE: u64 = 1 << 0;
pub(super) const FLAGS: u64 = 1 << 1;
pub(super) const EXPIRY: u64 = 1 << 2;
pub(super) const EXTRA: u64 = 1 << 7;
/// Of a filler: see [`write_reserved`](super::write_reserved).
pub(super) const RESERVED: u64 = 1 << 0;

/// Byte at which the key begins.
pub(super) const KEY_AT: usize = 8;
/// Values of this many bytes and more are WIDE: the header has no room for all of their length.
pub(super) const WIDE_BYTES_MIN: usize = 1 << LENGTH_BITS;
/// Bits of the value's length that the header has.
pub(super) const LENGTH_BITS: u32 = 8;
pub(super) const LENGTH_BYTES: usize = 3;
/// Bytes of the largest client flags.
pub(super) const FLAGS_BYTES_MAX: usize = 5;
/// Bytes of a birth, which follows the client's flags.
pub(super) const BIRTH_BYTES: usize = EVENT_BITS as usize / 8;
/// Bytes of small client flags with a birth.
pub(super) const BORN_BYTES: usize = FLAGS_BYTES_MAX + BIRTH_BYTES;
/// Bytes of client flags from [`ESCAPED_FLAGS`] on, with a birth.
pub(super) const BORN_BYTES_MAX: usize = BORN_BYTES + 4;
/// Words by which a birth may lengthen an item with all other fields.
pub(crate) const BIRTH_WORDS_MAX: u64 = ((BORN_BYTES_MAX - FLAGS_BYTES_MAX) as u64).div_ceil(8);
/// The first byte of client flags that four more bytes follow. Nearly all clients have smaller
/// ones, which take this byte alone.
pub(super) const LARGE_FLAGS: u8 = 0xFF;
/// Where four bytes follow, flags smaller than this are followed by a birth. This itself is
/// followed by the flags and a birth. (Without a birth, no flags that small take four bytes.)
pub(super) const ESCAPED_FLAGS: u32 = 0xFE;
pub(super) const EXPIRY_BYTES: usize = Expiry::BITS as usize / 8;
/// Bytes of all the fields that an item may have after its value.
pub(super) const ALL_FIELDS_BYTES: usize = FLAGS_BYTES_MAX + EXPIRY_BYTES + EXTRA_BYTES;

/// What decides an item's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the key.
    pub key_len: usize,
    /// Bytes of the value.
    pub value_len: usize,
    /// Bytes of the client's flags, none for flags of zero, and of the item's birth.
    pub flags_bytes: u8,
    /// Whether there is an expiry.
    pub expiry: bool,
    /// Whether there is a CAS unique above [`CAS_MAX`](super::CAS_MAX), or a time of the last
    /// access.
    pub extra: bool,
}

impl Layout {
    /// Whether the item bears the mark WIDE.
    #[inline(always)]
    pub(super) fn is_wide(self) -> bool {
        self.value_len >= WIDE_BYTES_MIN
    }

    /// Where the upper bits of the value's length are, if the item is wide.
    #[inline(always)]
    pub(super) fn length_at(self) -> usize {
        KEY_AT + self.key_len
    }

    /// What is there.
    #[inline(always)]
    pub(super) fn length_bytes(self) -> [u8; LENGTH_BYTES] {
        let [first, second, third, ..] = (self.value_len >> LENGTH_BITS).to_le_bytes();
        [first, second, third]
    }

    /// Byte of the item at which the value begins.
    #[inline(always)]
    pub(crate) fn value_at(self) -> usize {
        self.length_at() + if self.is_wide() { LENGTH_BYTES } else { 0 }
    }

    #[inline(always)]
    pub(super) fn flags_at(self) -> usize {
        self.value_at() + self.value_len
    }

    #[inline(always)]
    pub(super) fn expiry_at(self) -> usize {
        self.flags_at() + usize::from(self.flags_bytes)
    }

    #[inline(always)]
    pub(super) fn extra_at(self) -> usize {
        self.expiry_at() + if self.expiry { EXPIRY_BYTES } else { 0 }
    }

    /// Words that the item takes.
    #[inline(always)]
    pub fn words(self) -> usize {
        words_of(self.extra_at() + if self.extra { EXTRA_BYTES } else { 0 })
    }

    /// Words that the item takes if it gets every optional field. The limit of an item's size
    /// counts them always, so that a touch never makes an item too large.
    #[inline(always)]
    pub fn words_with_all(self) -> usize {
        words_of(self.flags_at() + ALL_FIELDS_BYTES)
    }
}

/// Bytes that client flags take.
#[inline(always)]
pub(super) fn flags_bytes(flags: u32) -> u8 {
    match flags {
        0 => 0,
        _ if flags < u32::from(LARGE_FLAGS) => 1,
        _ => FLAGS_BYTES_MAX as u8,
    }
}

/// Bytes that client flags take with a birth.
pub(super) fn born_bytes(flags: u32) -> u8 {
    match flags < ESCAPED_FLAGS {
        true => BORN_BYTES as u8,
        false => BORN_BYTES_MAX as u8,
    }
}

/// These bytes, and behind them others of no meaning.
#[inline(always)]
pub(super) fn flags_field(flags: u32, birth: u64) -> [u8; 16] {
    if birth != 0 {
        return born_field(flags, birth);
    }
    let field = match flags < u32::from(LARGE_FLAGS) {
        true => u64::from(flags),
        false => u64::from(flags) << 8 | u64::from(LARGE_FLAGS),
    };
    u128::from(field).to_le_bytes()
}

#[cold]
fn born_field(flags: u32, birth: u64) -> [u8; 16] {
    let (flags, birth) = (u128::from(flags), u128::from(birth));
    let (large, escaped) = (u128::from(LARGE_FLAGS), u128::from(ESCAPED_FLAGS));
    let field = match flags < escaped {
        true => large | flags << 8 | birth << 40,
        false => large | escaped << 8 | flags << 40 | birth << 72,
    };
    field.to_le_bytes()
}

/// Bytes of a field of client flags that begins with [`LARGE_FLAGS`]. None if the place ends before
/// they can be told.
#[cold]
pub(super) fn large_flags_bytes(place: Words<'_>, at: usize) -> Option<u8> {
    if at + FLAGS_BYTES_MAX > 8 * place.len() {
        return None;
    }
    Some(match bytes_at(place, at + 1, 4) as u32 {
        0..ESCAPED_FLAGS => BORN_BYTES as u8,
        ESCAPED_FLAGS => BORN_BYTES_MAX as u8,
        _ => FLAGS_BYTES_MAX as u8,
    })
}

/// Words that bytes take.
#[inline(always)]
#[expect(
    clippy::manual_div_ceil,
    reason = "`div_ceil` takes five instructions where two do, for numbers near the largest"
)]
pub(super) fn words_of(bytes: usize) -> usize {
    (bytes + 7) / 8
}

/// Up to eight bytes at a byte offset.
#[inline(always)]
pub(super) fn bytes_at(place: Words<'_>, offset: usize, count: usize) -> u64 {
    let (word, skip) = (offset / 8, offset % 8);
    let low = place.word(word).load(Relaxed) >> (8 * skip);
    let high = if skip + count > 8 {
        place.word(word + 1).load(Relaxed) << (64 - 8 * skip)
    } else {
        0
    };
    (low | high) & (u64::MAX >> (64 - 8 * count))
}

/// Fewer than eight bytes as the low bytes of a word.
#[inline(always)]
pub(super) fn partial_word(bytes: &[u8]) -> u64 {
    // Two loads that overlap: what both have is the same.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u16::from_le_bytes(*first), u16::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 2));
    }
    bytes.first().copied().unwrap_or(0).into()
}
