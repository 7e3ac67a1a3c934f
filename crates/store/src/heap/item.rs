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
//!           client flags (1 byte or 5, only with the mark FLAGS; see `flags_bytes`),
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
//! that are being overwritten: it reads nonsense, never outside the view that the heap gave of the
//! item's place, because lengths are read once and clamped, and what it makes of it is thrown away
//! when validation fails.

use super::history::{ACCESSED_BYTES, CAS_BITS, CAS_HIGH_BYTES, EXTRA_BYTES, History, Marks};
use super::wide;
use crate::memory::Words;
use core::mem::MaybeUninit;
use glimmer_base::Expiry;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
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
const LENGTH_BITS: u32 = 8;
pub(super) const LENGTH_BYTES: usize = 3;
/// Bytes of the largest client flags.
pub(super) const FLAGS_BYTES_MAX: usize = 5;
/// The first byte of client flags that four more bytes follow. Nearly all clients have smaller
/// ones, which take this byte alone.
const LARGE_FLAGS: u8 = 0xFF;
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
    /// Bytes of the client's flags: none for flags of zero.
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

    #[inline(always)]
    pub(super) fn value_at(self) -> usize {
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

/// These bytes, and behind them others of no meaning.
#[inline(always)]
pub(super) fn flags_field(flags: u32) -> [u8; 8] {
    match flags_bytes(flags) {
        0 | 1 => u64::from(flags),
        _ => u64::from(flags) << 8 | u64::from(LARGE_FLAGS),
    }
    .to_le_bytes()
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

/// The first word of an entry, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(u64);

impl Header {
    #[inline(always)]
    pub fn read(place: Words<'_>) -> Header {
        Header(place.word(0).load(Relaxed))
    }

    #[inline(always)]
    pub fn key_len(self) -> usize {
        (self.0 >> 8) as u8 as usize
    }

    #[inline(always)]
    pub fn is_filler(self) -> bool {
        self.key_len() == 0
    }

    /// Whether a filler is the place of an item that is yet to be stored, or was never.
    pub fn is_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// Words of a filler.
    pub fn filler_words(self) -> u64 {
        self.0 >> 24
    }

    /// The value's length. None if the place ends before it.
    #[inline(always)]
    fn value_len(self, place: Words<'_>) -> Option<usize> {
        if self.0 & WIDE == 0 {
            return Some(self.short_value_len());
        }
        let at = KEY_AT + self.key_len();
        let is_within = at + LENGTH_BYTES <= 8 * place.len();
        is_within.then(|| {
            let upper = bytes_at(place, at, LENGTH_BYTES) as usize;
            upper << LENGTH_BITS | self.short_value_len()
        })
    }

    /// The value's length in an item that is not wide, and the lower bits of it in one that is.
    #[inline(always)]
    fn short_value_len(self) -> usize {
        (self.0 >> 16) as u8 as usize
    }

    /// Whether this is an item with a key of this length and, beside it, a value of less than 256
    /// bytes and nothing else: one comparison for most items.
    #[inline(always)]
    fn is_plain_with(self, key_len: usize) -> bool {
        const KEY_LEN: u64 = 0xFF << 8;
        self.0 & (KEY_LEN | WIDE | FLAGS | EXPIRY | EXTRA) == (key_len as u64) << 8
    }

    /// The item's sizes. None if the place ends before the field that says how large the client's
    /// flags are.
    #[inline(always)]
    fn layout(self, value_len: usize, place: Words<'_>) -> Option<Layout> {
        let mut layout = Layout {
            key_len: self.key_len(),
            value_len,
            flags_bytes: 0,
            expiry: self.0 & EXPIRY != 0,
            extra: self.0 & EXTRA != 0,
        };
        if self.0 & FLAGS != 0 {
            let at = layout.flags_at();
            if at >= 8 * place.len() {
                return None;
            }
            let is_large = bytes_at(place, at, 1) == u64::from(LARGE_FLAGS);
            layout.flags_bytes = if is_large { FLAGS_BYTES_MAX as u8 } else { 1 };
        }
        Some(layout)
    }
}

/// An item where it lies in a heap. Cheap to make: only the header has been read.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    pub(super) place: Words<'a>,
    header: Header,
    pub(super) layout: Layout,
    words: usize,
}

impl<'a> Item<'a> {
    /// The item at the beginning of `place`, or none if the bytes there cannot be an item of at
    /// most that length: a filler, or nonsense that a racing reader meets. A place has two words at
    /// least.
    #[inline(always)]
    pub(crate) fn read(place: Words<'a>) -> Option<Item<'a>> {
        let header = Header::read(place);
        let is_item = !header.is_filler() && header.key_len() <= KEY_BYTES_MAX;
        is_item.then(|| Item::with(place, header)).flatten()
    }

    /// The item at the beginning of `place` as [`read`](Self::read) gives it, if its key is this
    /// one, of 1 to 250 bytes.
    #[inline(always)]
    pub(crate) fn of_key(place: Words<'a>, key: &[u8]) -> Option<Item<'a>> {
        debug_assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
        let header = Header::read(place);
        if header.is_plain_with(key.len()) {
            return Item::plain_with_key(place, header, key);
        }
        if header.key_len() != key.len() {
            return None;
        }
        let item = Item::with(place, header)?;
        item.key_words_are(key).then_some(item)
    }

    /// [`of_key`](Self::of_key), if the item has nothing beside a key and a value of less than 256
    /// bytes.
    #[inline(always)]
    pub(crate) fn plain_of_key(place: Words<'a>, key: &[u8]) -> Option<Item<'a>> {
        let header = Header::read(place);
        match header.is_plain_with(key.len()) {
            true => Item::plain_with_key(place, header, key),
            false => None,
        }
    }

    /// [`of_key`](Self::of_key) for an item that [is plain](Header::is_plain_with) and has a key
    /// of the same length.
    #[inline(always)]
    fn plain_with_key(place: Words<'a>, header: Header, key: &[u8]) -> Option<Item<'a>> {
        let item = Item::plain_with(place, header, key.len())?;
        key_is_in(place, key).then_some(item)
    }

    /// [`with`](Self::with) for an item that [is plain](Header::is_plain_with).
    #[inline(always)]
    fn plain_with(place: Words<'a>, header: Header, key_len: usize) -> Option<Item<'a>> {
        let value_len = header.short_value_len();
        let words = words_of(KEY_AT + key_len + value_len);
        let layout = Layout {
            key_len,
            value_len,
            flags_bytes: 0,
            expiry: false,
            extra: false,
        };
        (words <= place.len()).then_some(Item {
            place,
            header,
            layout,
            words,
        })
    }

    #[inline(always)]
    fn with(place: Words<'a>, header: Header) -> Option<Item<'a>> {
        let value_len = header.value_len(place)?;
        let layout = header.layout(value_len, place)?;
        let words = layout.words();
        (words <= place.len()).then_some(Item {
            place,
            header,
            layout,
            words,
        })
    }

    /// Where it lies: as many words as its heap lets an item have there.
    #[inline(always)]
    pub(crate) fn place(&self) -> Words<'a> {
        self.place
    }

    /// Words that the item takes.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Whether the item's key is this one.
    #[inline(always)]
    pub fn key_is(&self, key: &[u8]) -> bool {
        self.layout.key_len == key.len() && self.key_words_are(key)
    }

    /// Whether the item's key, which is as long, is this one.
    #[inline(always)]
    fn key_words_are(&self, key: &[u8]) -> bool {
        key_is_in(self.place, key)
    }

    /// Copies the key into `buffer` and gives the filled part back.
    pub fn key<'b>(&self, buffer: &'b mut [u8; KEY_BYTES_MAX + 6]) -> &'b [u8] {
        let count = self.layout.key_len.div_ceil(8);
        let words = self.place.range(KEY_AT / 8, count).iter();
        for (word, space) in words.zip(buffer.as_chunks_mut::<8>().0) {
            *space = word.load(Relaxed).to_le_bytes();
        }
        &buffer[..self.layout.key_len]
    }

    /// The item's sizes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The CAS unique.
    #[inline]
    pub fn cas(&self) -> u64 {
        let low = self.header.0 >> 24;
        if self.layout.extra {
            self.bytes(self.layout.extra_at(), CAS_HIGH_BYTES) << CAS_BITS | low
        } else {
            low
        }
    }

    /// What the meta commands have left on the item.
    #[inline]
    pub fn marks(&self) -> Marks {
        Marks(self.header.0 as u8 & Marks::ALL)
    }

    /// The second of the last access, counted from the server's epoch; zero where none was noted.
    pub fn accessed_s(&self) -> u32 {
        if self.layout.extra {
            self.bytes(self.layout.extra_at() + CAS_HIGH_BYTES, ACCESSED_BYTES) as u32
        } else {
            0
        }
    }

    /// What would have to be given to a copy of the item for it to have the same past.
    pub fn history(&self) -> History {
        History {
            cas: Some(self.cas()),
            marks: self.marks(),
            accessed_s: self.accessed_s(),
        }
    }

    /// The client's flags.
    #[inline]
    pub fn flags(&self) -> u32 {
        let at = self.layout.flags_at();
        match self.layout.flags_bytes {
            0 => 0,
            1 => self.bytes(at, 1) as u32,
            _ => self.bytes(at + 1, 4) as u32,
        }
    }

    /// When the item expires.
    #[inline]
    pub fn expiry(&self) -> Expiry {
        if self.layout.expiry {
            Expiry::at_ms(self.bytes(self.layout.expiry_at(), EXPIRY_BYTES))
        } else {
            Expiry::NEVER
        }
    }

    /// Bytes of the value up to the end of the last word that holds nothing else after it. What
    /// changes the item's other fields where it lies never stores to the words of these.
    pub fn whole_bytes(&self) -> usize {
        let (from, to) = (self.layout.value_at(), self.layout.flags_at());
        (to / 8 * 8).saturating_sub(from)
    }

    /// The value's bytes.
    #[inline]
    pub fn value(&self) -> Value<'a> {
        Value {
            place: self.place,
            first_byte: self.layout.value_at(),
            len: self.layout.value_len,
        }
    }

    /// Up to eight bytes at a byte offset in the item.
    #[inline]
    fn bytes(&self, offset: usize, count: usize) -> u64 {
        bytes_at(self.place, offset, count)
    }
}

/// Up to eight bytes at a byte offset.
#[inline(always)]
fn bytes_at(place: Words<'_>, offset: usize, count: usize) -> u64 {
    let (word, skip) = (offset / 8, offset % 8);
    let low = place.word(word).load(Relaxed) >> (8 * skip);
    let high = if skip + count > 8 {
        place.word(word + 1).load(Relaxed) << (64 - 8 * skip)
    } else {
        0
    };
    (low | high) & (u64::MAX >> (64 - 8 * count))
}

/// Whether the key of the item at a place begins with this one.
#[inline(always)]
fn key_is_in(place: Words<'_>, key: &[u8]) -> bool {
    let (words, rest) = key.as_chunks::<8>();
    let stored = place.range(KEY_AT / 8, words_of(key.len()));
    let (whole, last) = stored.split_at(words.len());
    let is_same =
        |(stored, word): (&AtomicU64, &[u8; 8])| stored.load(Relaxed) == u64::from_le_bytes(*word);
    whole.iter().zip(words).all(is_same)
        && last.first().is_none_or(|last| {
            (last.load(Relaxed) ^ partial_word(rest)) << (64 - 8 * rest.len()) == 0
        })
}

/// A value where it lies in a heap.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    place: Words<'a>,
    first_byte: usize,
    len: usize,
}

impl<'a> Value<'a> {
    /// Bytes of the value.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Of the value, the bytes from `from` on, `bytes` of them, as far as there are as many.
    pub fn part(&self, from: usize, bytes: usize) -> Value<'a> {
        let from = from.min(self.len);
        Value {
            first_byte: self.first_byte + from,
            len: bytes.min(self.len - from),
            ..*self
        }
    }

    /// Appends the value to `out`. Words are stored as they come and overlap, so that nothing has
    /// to be shifted.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if self.len >= wide::BYTES_MIN {
            return self.append_long(out);
        }
        if self.len > 0 {
            self.append_with(out, wide::load_short);
        }
    }

    #[inline(never)]
    fn append_long(&self, out: &mut Vec<u8>) {
        self.append_with(out, wide::load);
    }

    #[inline(always)]
    fn append_with(
        &self,
        out: &mut Vec<u8>,
        load: impl FnOnce(&[AtomicU64], &mut [[MaybeUninit<u8>; 8]]),
    ) {
        out.reserve(self.len + 8);
        let start = out.len();
        let space = &mut out.spare_capacity_mut()[..self.len + 8];
        let (skip, first, rest) = self.words();
        space[..8].write_copy_of_slice(&(first.load(Relaxed) >> (8 * skip)).to_le_bytes());
        let (space, _) = space[8 - skip..].as_chunks_mut::<8>();
        load(rest, space);
        // SAFETY: `reserve` made room for len + 8 bytes, and the words written above cover the
        // first `len` of them without a gap.
        unsafe { out.set_len(start + self.len) };
    }

    /// The words that the value is in, of which there is one at least, and how many bytes of the
    /// first are the key's. To get the value, shift that word and put each other word eight bytes
    /// after the one before.
    #[inline(always)]
    fn words(&self) -> (usize, &'a AtomicU64, &'a [AtomicU64]) {
        let skip = self.first_byte % 8;
        let count = words_of(skip + self.len);
        let words = self.place.range(self.first_byte / 8, count);
        (skip, &words[0], &words[1..])
    }

    /// A value of `N` bytes, a number of whole words that the compiler knows.
    #[inline(always)]
    pub fn array<const N: usize>(&self) -> Option<[u8; N]> {
        const { assert!(N >= 8 && N.is_multiple_of(8), "whole words") };
        if self.len != N {
            return None;
        }
        let (first, skip) = (self.first_byte / 8, self.first_byte % 8);
        let mut bytes = [0; N];
        let (space, _) = bytes.as_chunks_mut::<8>();
        if skip == 0 {
            for (space, word) in space.iter_mut().zip(self.place.range(first, N / 8)) {
                *space = word.load(Relaxed).to_le_bytes();
            }
        } else {
            let words = self.place.range(first, N / 8 + 1);
            for (space, pair) in space.iter_mut().zip(words.windows(2)) {
                let low = pair[0].load(Relaxed) >> (8 * skip);
                let high = pair[1].load(Relaxed) << (64 - 8 * skip);
                *space = (low | high).to_le_bytes();
            }
        }
        Some(bytes)
    }

    /// The value's bytes, if they are at most 24.
    #[inline(always)]
    pub fn short_bytes<'b>(&self, buffer: &'b mut [u8; 32]) -> Option<&'b [u8]> {
        if self.len > 24 {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        let (skip, first, rest) = self.words();
        buffer[..8].copy_from_slice(&(first.load(Relaxed) >> (8 * skip)).to_le_bytes());
        let (space, _) = buffer[8 - skip..].as_chunks_mut::<8>();
        for (space, word) in space.iter_mut().zip(rest) {
            *space = word.load(Relaxed).to_le_bytes();
        }
        Some(&buffer[..self.len])
    }
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
