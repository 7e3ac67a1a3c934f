//! An item in a block.
//!
//! Its key's length, a byte of fields, the value's length, then the fields that there are, the key
//! and the value.

use super::format::{u32_at, u64_at};
use glimmer_base::Expiry;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_store::heap::{Item, Marks};

/// Bytes that each item has.
const HEAD_BYTES: usize = 6;

const HAS_FLAGS: u8 = 1 << 4;
const HAS_EXPIRY: u8 = 1 << 5;
const HAS_CAS: u8 = 1 << 6;
const UNKNOWN: u8 = 1 << 7;

/// The marks of an item, and their bits in the byte of fields.
const MARKS: [(u8, Marks); 4] = [
    (1 << 0, Marks::STALE),
    (1 << 1, Marks::WON),
    (1 << 2, Marks::FETCHED),
    (1 << 3, Marks::BINARY_KEY),
];

/// An item of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its key, of 1 to 250 bytes.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it expires, in milliseconds since 1970; none if it does not.
    pub expiry_unix_ms: Option<u64>,
    /// Its CAS unique; zero if it has none.
    pub cas: u64,
    /// What the meta commands have left on it, and whether it was read.
    pub marks: Marks,
}

/// What an item has beside its key and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub flags: u32,
    pub expiry_unix_ms: Option<u64>,
    pub cas: u64,
    pub marks: Marks,
}

/// The times by which an item's expiry is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The server's epoch by the clock of now, in milliseconds since 1970.
    pub epoch_unix_ms: u64,
    /// When a flush that is pending is due, in milliseconds since that epoch.
    pub flush_ms: Option<u64>,
}

impl Fields {
    /// Those of an item of a server.
    #[inline]
    pub fn of(item: &Item<'_>, was_read: bool, times: Times) -> Fields {
        let (marks, expiry) = (item.marks(), item.expiry());
        let expiry_ms = (expiry != Expiry::NEVER).then(|| expiry.ms());
        let ends_ms = expiry_ms.into_iter().chain(times.flush_ms).min();
        Fields {
            flags: item.flags(),
            expiry_unix_ms: ends_ms.map(|ms| times.epoch_unix_ms + ms),
            cas: item.cas(),
            marks: match was_read {
                true => marks.with(Marks::FETCHED),
                false => marks,
            },
        }
    }

    /// Appends all of an item but its value.
    #[inline]
    pub fn encode(&self, key: &[u8], value_bytes: usize, out: &mut Vec<u8>) {
        let mut fields = 0;
        for (bit, mark) in MARKS {
            fields |= if self.marks.has(mark) { bit } else { 0 };
        }
        for (bit, is_there) in [
            (HAS_FLAGS, self.flags != 0),
            (HAS_EXPIRY, self.expiry_unix_ms.is_some()),
            (HAS_CAS, self.cas != 0),
        ] {
            fields |= if is_there { bit } else { 0 };
        }
        out.reserve(HEAD_BYTES + 4 + 8 + 8 + key.len() + value_bytes);
        // A key has at most 250 bytes, and a value less than 4 GiB.
        out.extend_from_slice(&[key.len() as u8, fields]);
        out.extend_from_slice(&(value_bytes as u32).to_le_bytes());
        if self.flags != 0 {
            out.extend_from_slice(&self.flags.to_le_bytes());
        }
        if let Some(ms) = self.expiry_unix_ms {
            out.extend_from_slice(&ms.to_le_bytes());
        }
        if self.cas != 0 {
            out.extend_from_slice(&self.cas.to_le_bytes());
        }
        out.extend_from_slice(key);
    }
}

impl Record<'_> {
    /// Appends the item to a block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = Fields {
            flags: self.flags,
            expiry_unix_ms: self.expiry_unix_ms,
            cas: self.cas,
            marks: self.marks,
        };
        fields.encode(self.key, self.value.len(), out);
        out.extend_from_slice(self.value);
    }
}

/// The items of a block, in their order. It ends where the bytes are not an item.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Those in the payload of a block.
    pub fn of(payload: &'a [u8]) -> Records<'a> {
        Records { rest: payload }
    }

    /// Whether nothing is left: the payload was items and nothing else.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that have not been read.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self) -> Option<Record<'a>> {
        let (head, mut rest) = self.rest.split_at_checked(HEAD_BYTES)?;
        let (key_bytes, fields) = (usize::from(head[0]), head[1]);
        let value_bytes = u32_at(head, 2) as usize;
        if !(1..=KEY_BYTES_MAX).contains(&key_bytes) || fields & UNKNOWN != 0 {
            return None;
        }
        let mut field = |bit: u8, bytes: usize| {
            let bytes = if fields & bit != 0 { bytes } else { 0 };
            let (field, after) = rest.split_at_checked(bytes)?;
            rest = after;
            Some(field)
        };
        let flags = field(HAS_FLAGS, 4)?;
        let expiry = field(HAS_EXPIRY, 8)?;
        let cas = field(HAS_CAS, 8)?;
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.rest = rest;
        let mut marks = Marks::NONE;
        for (_, mark) in MARKS.iter().filter(|(bit, _)| fields & bit != 0) {
            marks = marks.with(*mark);
        }
        Some(Record {
            key,
            value,
            flags: if flags.is_empty() {
                0
            } else {
                u32_at(flags, 0)
            },
            expiry_unix_ms: (!expiry.is_empty()).then(|| u64_at(expiry, 0)),
            cas: if cas.is_empty() { 0 } else { u64_at(cas, 0) },
            marks,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.take()
    }
}
