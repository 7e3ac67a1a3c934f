//! Items where they lie in a heap, as [`layout`](super::layout) lays them out: what a reader makes
//! of the words.

use super::history::{ACCESSED_BYTES, CAS_BITS, CAS_HIGH_BYTES, History, Marks};
use super::layout::{
    BIRTH_BYTES, BORN_BYTES, BORN_BYTES_MAX, EXPIRY, EXPIRY_BYTES, EXTRA, FLAGS, FLAGS_BYTES_MAX,
    KEY_AT, LARGE_FLAGS, LENGTH_BITS, LENGTH_BYTES, Layout, RESERVED, WIDE, bytes_at,
    large_flags_bytes, partial_word, words_of,
};
use super::value::Value;
use crate::memory::Words;
use glimmer_base::Expiry;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

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
            layout.flags_bytes = match is_large {
                true => large_flags_bytes(place, at)?,
                false => 1,
            };
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

/// Client flags in a field of more than one byte, which begins at `at`.
#[cold]
#[inline(never)]
fn large_flags(place: Words<'_>, at: usize, field_bytes: u8) -> u32 {
    let skipped = match usize::from(field_bytes) {
        BORN_BYTES_MAX => FLAGS_BYTES_MAX,
        _ => 1,
    };
    bytes_at(place, at + skipped, 4) as u32
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

    /// What would have to be given to a copy of the item for it to have the same past. The table
    /// that stores the copy gives it a birth.
    pub fn history(&self) -> History {
        History {
            cas: Some(self.cas()),
            marks: self.marks(),
            accessed_s: self.accessed_s(),
        }
    }

    /// The client's flags.
    #[inline(always)]
    pub fn flags(&self) -> u32 {
        let at = self.layout.flags_at();
        match self.layout.flags_bytes {
            0 => 0,
            1 => self.bytes(at, 1) as u32,
            bytes => large_flags(self.place, at, bytes),
        }
    }

    /// The event of the item's group when it was stored, or zero. See [`groups`](crate::groups).
    pub(crate) fn birth(&self) -> u64 {
        let at = self.layout.flags_at() + usize::from(self.layout.flags_bytes);
        match usize::from(self.layout.flags_bytes) {
            BORN_BYTES | BORN_BYTES_MAX => self.bytes(at - BIRTH_BYTES, BIRTH_BYTES),
            _ => 0,
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
