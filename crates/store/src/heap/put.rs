//! Items that are about to be written.

use super::Item;
use super::history::History;
use super::layout::{
    ALL_FIELDS_BYTES, KEY_AT, Layout, WIDE_BYTES_MIN, born_bytes, flags_bytes, words_of,
};
use glimmer_base::{Expiry, Keyhash, Moment};

/// An item about to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewItem<'a> {
    /// 1 to 250 bytes.
    pub key: &'a [u8],
    /// The value, in two parts that are joined (one of them old where something is appended).
    pub value: [&'a [u8]; 2],
    /// The client's flags.
    pub flags: u32,
    /// When the item expires.
    pub expiry: Expiry,
    /// What it carries besides; [`History::NEW`] for what has just been stored.
    pub history: History,
}

/// An item on its way into a table, and what it takes of the heap, which several steps of a store
/// ask for. It is passed by reference: to copy it sixteen bytes at a time right after it was made,
/// eight bytes at a time, stalls the processor.
#[derive(Debug)]
pub struct Put<'a> {
    /// The item.
    pub item: &'a NewItem<'a>,
    /// The hash of its key.
    pub keyhash: Keyhash,
    /// When it is stored.
    pub now: Moment,
    /// Its CAS unique: that of its history or, if that has none, one that the table has drawn.
    pub cas: u64,
    /// Words that it takes.
    pub words: usize,
    /// Words with every optional field, as [`Layout::words_with_all`].
    pub words_with_all: usize,
    /// Whether the item is a header, a key and a value in one part of less than 256 bytes, as most
    /// are.
    pub(super) is_plain: bool,
    /// Bytes of the value that the key has now, if that stays, with the parts of the item's on
    /// either side of it.
    pub(super) kept: Option<usize>,
    /// The event of the item's [group](crate::groups), if it has one that was invalidated; or zero.
    pub(super) birth: u64,
}

impl<'a> Put<'a> {
    /// The item with what it takes, and no CAS unique yet.
    #[inline(always)]
    pub(crate) fn of(item: &'a NewItem<'a>, keyhash: Keyhash, now: Moment) -> Put<'a> {
        let bytes = item.value[0].len();
        let is_plain = item.is_plain();
        let (words, words_with_all) = match is_plain {
            true => {
                let bytes = KEY_AT + item.key.len() + bytes;
                (words_of(bytes), words_of(bytes + ALL_FIELDS_BYTES))
            }
            false => (item.layout().words(), item.layout().words_with_all()),
        };
        Put {
            item,
            keyhash,
            now,
            cas: 0,
            words,
            words_with_all,
            is_plain,
            kept: None,
            birth: 0,
        }
    }

    /// The same with a birth that is not zero, for which no limit counts.
    #[cold]
    pub(crate) fn born(self, birth: u64) -> Put<'a> {
        let put = Put {
            birth,
            is_plain: false,
            ..self
        };
        let layout = put.layout();
        Put {
            words: layout.words(),
            words_with_all: layout.words_with_all(),
            ..put
        }
    }

    /// The item's sizes, with what stays of the old value.
    pub(super) fn layout(&self) -> Layout {
        self.layout_around(self.kept.unwrap_or(0))
    }

    /// The item's sizes around `kept` bytes of the old value.
    pub(super) fn layout_around(&self, kept: usize) -> Layout {
        let layout = self.item.layout_around(kept);
        match self.birth {
            0 => layout,
            _ => Layout {
                flags_bytes: born_bytes(self.item.flags),
                ..layout
            },
        }
    }

    /// The same if the item's value is put around the `kept` bytes of the one that its key has now.
    pub(crate) fn around(
        item: &'a NewItem<'a>,
        kept: usize,
        keyhash: Keyhash,
        now: Moment,
    ) -> Put<'a> {
        let layout = item.layout_around(kept);
        Put {
            words: layout.words(),
            words_with_all: layout.words_with_all(),
            is_plain: false,
            kept: Some(kept),
            ..Put::of(item, keyhash, now)
        }
    }

    /// The same under another keyhash of the key.
    pub(crate) fn under(&self, keyhash: Keyhash) -> Put<'a> {
        Put { keyhash, ..*self }
    }

    /// Whether the value that the key has now stays.
    #[inline(always)]
    pub fn keeps_value(&self) -> bool {
        self.kept.is_some()
    }
}

impl<'a> NewItem<'a> {
    /// An item that has just been made, without flags and an expiry.
    pub const fn new(key: &'a [u8], value: &'a [u8]) -> NewItem<'a> {
        NewItem {
            key,
            value: [value, &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        }
    }

    /// Whether the item is a header, a key and a value in one part of less than 256 bytes.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.value[0].len() < WIDE_BYTES_MIN
            && self.value[1].is_empty()
            && self.flags == 0
            && self.expiry == Expiry::NEVER
            && !self.history.is_extra()
    }

    /// Whether the item takes as many words as an old one of its key, both of them with nothing
    /// beside a key and a short value. [`write_value_over`](super::write_value_over) can then write
    /// the new value over the old one.
    #[inline(always)]
    pub(crate) fn replaces_plain(&self, old: &Item<'_>) -> bool {
        let words = words_of(KEY_AT + self.key.len() + self.value[0].len());
        self.is_plain() && old.words() == words
    }

    fn layout_around(&self, kept: usize) -> Layout {
        let layout = self.layout();
        Layout {
            value_len: layout.value_len + kept,
            ..layout
        }
    }

    /// The item's sizes.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        Layout {
            key_len: self.key.len(),
            value_len: self.value[0].len() + self.value[1].len(),
            flags_bytes: flags_bytes(self.flags),
            expiry: self.expiry != Expiry::NEVER,
            extra: self.history.is_extra(),
        }
    }
}
