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
/// afterwards. Until then it may be torn, but lengths are within their bounds. They are loaded
/// once, so each is the same whenever it is asked, although the slot changes meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    slot: &'a Slot,
    state: State,
    /// See [`Slot::shape`].
    shape: [u8; 8],
    /// See [`Slot::lines`].
    lines: [u8; 8],
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
            lines: slot.lines.load(Relaxed).to_ne_bytes(),
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
        let [g0, g1, s0, s1, ..] = self.lines;
        let line = |bytes| usize::from(u16::from_ne_bytes(bytes)).min(LINE_BYTES - LINE_AT);
        match piece {
            Piece::GetLine => line([g0, g1]),
            Piece::GetsLine => line([s0, s1]),
            Piece::Body => self.value_bytes() + AROUND_VALUE,
            Piece::Key => usize::from(self.shape[6]).min(KEY_MAX),
            Piece::Value => self.value_bytes(),
        }
    }

    /// The sum of a piece, as if it began at an even offset. See [`sums`](crate::sums).
    #[inline]
    pub fn sum(&self, piece: Piece) -> u32 {
        match piece {
            Piece::GetLine => unpair(self.slot.line_sums.load(Relaxed).to_ne_bytes())[0],
            Piece::GetsLine => unpair(self.slot.line_sums.load(Relaxed).to_ne_bytes())[1],
            Piece::Body => unpair(self.slot.body_sums.load(Relaxed).to_ne_bytes())[1],
            Piece::Key => unpair(self.lines)[1],
            Piece::Value => unpair(self.slot.body_sums.load(Relaxed).to_ne_bytes())[0],
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

fn unpair([a, b, c, d, e, f, g, h]: [u8; 8]) -> [u32; 2] {
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::rendered::HotItem;
    use super::*;

    fn fill(slot: &Slot, key: &[u8], value: &[u8], flags: u32) {
        let writing = slot.begin(slot.state()).unwrap();
        writing.write(
            0,
            &HotItem {
                key,
                value,
                flags,
                cas: u64::from(flags),
                deadline_ns: 0,
            },
        );
        writing.publish();
    }

    #[test]
    fn lengths_stay_the_same_while_the_slot_changes() {
        const PIECES: [Piece; 5] = [
            Piece::GetLine,
            Piece::GetsLine,
            Piece::Body,
            Piece::Key,
            Piece::Value,
        ];
        let slot = Slot::default();
        fill(&slot, b"a longer key", b"a longer value", u32::MAX);
        let peek = Peek::at(&slot).unwrap();
        let lengths = PIECES.map(|piece| peek.bytes(piece));
        fill(&slot, b"k", b"v", 0);
        assert_eq!(PIECES.map(|piece| peek.bytes(piece)), lengths);
        for (piece, bytes) in PIECES.into_iter().zip(lengths) {
            peek.copy(piece, &mut vec![0; bytes]);
        }
        assert!(!peek.is_unchanged());
        let peek = Peek::at(&slot).unwrap();
        assert!(
            PIECES
                .iter()
                .zip(lengths)
                .all(|(&piece, before)| peek.bytes(piece) < before)
        );
    }
}
