//! An optimistic read of a slot. [`slot`](super::slot) has the order in which it looks.

use super::State;
use super::dimensions::{
    AROUND_VALUE, BODY_AT, KEY_AT, KEY_MAX, LINE_AT, LINE_BYTES, VALUE_AT, VALUE_MAX,
};
use super::slot::Slot;
use glimmer_base::sync::Ordering::{Acquire, Relaxed};
use glimmer_base::sync::{AtomicU64, fence, weakened};

/// A piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// `VALUE <key> <flags> <bytes>`.
    GetLine,
    /// The same with the CAS unique.
    GetsLine,
    /// The line end, the value, and all that follows it.
    Body,
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A look at a slot. What it shows is valid only if [`is_unchanged`](Peek::is_unchanged) says so
/// afterwards. Until then it may be torn, but lengths are within their bounds.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    slot: &'a Slot,
    state: State,
    shape: [u8; 8],
}

impl<'a> Peek<'a> {
    /// Begins to read. `None` if the slot may not be answered from.
    #[inline(always)]
    pub fn at(slot: &'a Slot) -> Option<Peek<'a>> {
        let weak = weakened("slot_acquire_load");
        let state = State::from_raw(slot.state.load(if weak { Relaxed } else { Acquire }));
        state.may_be_read().then(|| Peek {
            slot,
            state,
            shape: slot.shape.load(Relaxed).to_ne_bytes(),
        })
    }

    /// Whether the slot has this key.
    #[inline]
    pub fn has_key(&self, key: &[u8]) -> bool {
        if usize::from(self.shape[6]) != key.len() {
            return false;
        }
        let words = &self.slot.line[KEY_AT / 8..];
        key.chunks(8)
            .zip(words)
            .all(|(bytes, word)| word.load(Relaxed).to_ne_bytes()[..bytes.len()] == *bytes)
    }

    /// The epoch under which it was filled.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.slot.epoch.load(Relaxed)
    }

    /// From when on it is not answered.
    #[inline]
    pub fn deadline_ns(&self) -> u64 {
        self.slot.deadline_ns.load(Relaxed)
    }

    /// The item's CAS unique.
    #[inline]
    pub fn cas(&self) -> u64 {
        self.slot.cas.load(Relaxed)
    }

    /// The client's flags.
    #[inline]
    pub fn flags(&self) -> u32 {
        let [a, b, c, d, ..] = self.shape;
        u32::from_ne_bytes([a, b, c, d])
    }

    /// Length of the value.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        let bytes = u16::from_ne_bytes([self.shape[4], self.shape[5]]);
        usize::from(bytes).min(VALUE_MAX)
    }

    /// Length of a piece.
    #[inline]
    pub fn bytes(&self, piece: Piece) -> usize {
        let [get, gets, ..] = self.lines();
        match piece {
            Piece::GetLine => get.min(LINE_BYTES - LINE_AT),
            Piece::GetsLine => gets.min(LINE_BYTES - LINE_AT),
            Piece::Body => self.value_bytes() + AROUND_VALUE,
            Piece::Key => usize::from(self.shape[6]).min(KEY_MAX),
            Piece::Value => self.value_bytes(),
        }
    }

    /// The sum of a piece, as if it began at an even offset. See [`sums`](crate::sums).
    #[inline]
    pub fn sum(&self, piece: Piece) -> u32 {
        match piece {
            Piece::GetLine => unpair(self.slot.line_sums.load(Relaxed))[0],
            Piece::GetsLine => unpair(self.slot.line_sums.load(Relaxed))[1],
            Piece::Body => unpair(self.slot.body_sums.load(Relaxed))[1],
            Piece::Key => unpair(self.slot.lines.load(Relaxed))[1],
            Piece::Value => unpair(self.slot.body_sums.load(Relaxed))[0],
        }
    }

    /// Copies the beginning of a piece, as much as there is place for.
    ///
    /// # Panics
    ///
    /// If the place is longer than the piece.
    #[inline]
    pub fn copy(&self, piece: Piece, place: &mut [u8]) {
        assert!(place.len() <= self.bytes(piece));
        match piece {
            Piece::GetLine | Piece::GetsLine => copy_out(&self.slot.line, LINE_AT, place),
            Piece::Key => copy_out(&self.slot.line, KEY_AT, place),
            Piece::Body => copy_out(&self.slot.body, BODY_AT, place),
            Piece::Value => copy_out(&self.slot.body, VALUE_AT, place),
        }
    }

    /// Whether the slot is still as it was when the look began: the recheck, at which a hit takes
    /// place.
    #[inline(always)]
    pub fn is_unchanged(&self) -> bool {
        if !weakened("slot_acquire_fence") {
            fence(Acquire);
        }
        weakened("slot_recheck") || self.slot.state.load(Relaxed) == self.state.raw()
    }

    fn lines(&self) -> [usize; 2] {
        let [a, b, c, d, ..] = self.slot.lines.load(Relaxed).to_ne_bytes();
        [[a, b], [c, d]].map(|bytes| u16::from_ne_bytes(bytes).into())
    }
}

/// Loads bytes from a place on.
#[inline]
fn copy_out(words: &[AtomicU64], from: usize, place: &mut [u8]) {
    let (at, skipped) = (from / 8, from % 8);
    let first = words[at].load(Relaxed).to_ne_bytes();
    let (head, rest) = place.split_at_mut((8 - skipped).min(place.len()));
    head.copy_from_slice(&first[skipped..skipped + head.len()]);
    for (word, bytes) in words[at + 1..].iter().zip(rest.chunks_mut(8)) {
        bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes()[..bytes.len()]);
    }
}

fn unpair(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}
