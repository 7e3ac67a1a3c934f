//! The memory of the packets in a batch.
//!
//! A batch reads its packets' bytes where the device left them, so that receiving copies nothing.
//! The memory is of one of two kinds. *Slots* belong to the batch: a socket has the kernel write
//! into them. *Frames* belong to a device that receives into memory of its own (a ring of buffers
//! shared with a driver, or with another end in this process): the device lends them to the batch.
//!
//! **Invariant.** For each of the first `count` entries, the `bytes` bytes at `at` are initialised,
//! overlap with those of no other entry, and are read and written through these `Frames` alone. If
//! `lender` is none, they lie in the slot of the same number, which lives as long as the `Frames`.
//! If there is a lender, they lie in one of its frames, and this holds until the frame is returned:
//! by [`Frames::clear`], which dropping the `Frames` includes, or by [`Frames::take_lent`]. Both
//! remove the entry's bytes with the same call.
#![allow(unsafe_code, reason = "a device's memory is known by pointers")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::PACKET_BATCH_MAX;

/// Distance between two slots beyond their length: slots whose distance is a power of two would
/// have their first lines in one set of each cache.
const BETWEEN_BYTES: usize = 3 * 64;

/// A device's buffer with a received packet in it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where the packet begins.
    pub at: NonNull<u8>,
    /// By which the device knows the buffer.
    pub id: u64,
}

/// Takes frames back. Called once per batch, from any thread.
pub trait Lender: Send + Sync {
    /// The batch reads and writes these frames no more.
    fn take_back(&self, frames: &[Frame]);
}

#[derive(Clone, Copy)]
struct Entry {
    at: NonNull<u8>,
    bytes: usize,
    /// Of a frame that is lent.
    id: u64,
}

/// The bytes of up to [`PACKET_BATCH_MAX`] packets, in the batch's own memory or in a device's.
pub struct Frames {
    slots: NonNull<u8>,
    slot_bytes: usize,
    entries: [Entry; PACKET_BATCH_MAX],
    count: usize,
    lender: Option<Arc<dyn Lender>>,
}

// SAFETY: by the invariant nothing else refers to the bytes of the entries, and the slots are
// owned; lenders may be called from any thread.
unsafe impl Send for Frames {}

impl Frames {
    /// No packets yet, and slots of at most this many bytes each. They are zeroed memory that the
    /// kernel provides page by page when it is first written.
    pub fn new(slot_bytes: usize) -> Frames {
        let layout = layout(slot_bytes);
        // SAFETY: the layout is longer than nothing.
        let slots = unsafe { alloc_zeroed(layout) };
        let slots = NonNull::new(slots).unwrap_or_else(|| handle_alloc_error(layout));
        let empty = Entry {
            at: NonNull::dangling(),
            bytes: 0,
            id: 0,
        };
        Frames {
            slots,
            slot_bytes,
            entries: [empty; PACKET_BATCH_MAX],
            count: 0,
            lender: None,
        }
    }

    /// Bytes of memory that [`Frames::new`] takes.
    pub const fn memory_bytes(slot_bytes: usize) -> usize {
        (slot_bytes + BETWEEN_BYTES) * PACKET_BATCH_MAX
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn bytes(&self, index: usize) -> &[u8] {
        let entry = &self.entries[..self.count][index];
        // SAFETY: the invariant; the borrow of `self` excludes writers.
        unsafe { std::slice::from_raw_parts(entry.at.as_ptr(), entry.bytes) }
    }

    #[inline]
    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        let entry = &self.entries[..self.count][index];
        // SAFETY: the invariant; the exclusive borrow of `self` excludes everything else.
        unsafe { std::slice::from_raw_parts_mut(entry.at.as_ptr(), entry.bytes) }
    }

    /// Keeps the first bytes of an entry.
    #[inline]
    pub fn truncate(&mut self, index: usize, bytes: usize) {
        let entry = &mut self.entries[..self.count][index];
        entry.bytes = entry.bytes.min(bytes);
    }

    /// Removes every entry and returns what was lent: one call for all frames.
    #[inline]
    pub fn clear(&mut self) {
        if self.lender.is_some() {
            self.return_frames();
        }
        self.count = 0;
    }

    fn return_frames(&mut self) {
        let Some(lender) = self.lender.take() else {
            return;
        };
        let frames = self.entries[..self.count].iter();
        let frames = frames.map(|&Entry { at, id, .. }| Frame { at, id });
        let frames: ArrayVec<Frame, PACKET_BATCH_MAX> = frames.collect();
        self.count = 0;
        lender.take_back(&frames);
    }

    /// The slots, to be written to, of which [`Frames::fill`] then makes entries. Removes every
    /// entry first.
    #[inline]
    pub fn slots_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.clear();
        let (first, slot_bytes) = (self.slots, self.slot_bytes);
        (0..PACKET_BATCH_MAX).map(move |index| {
            // SAFETY: the slots are `slot_bytes` initialised bytes each, do not overlap, and are
            // exclusively borrowed with `self`; there are no entries.
            unsafe {
                let slot = first.add(index * distance(slot_bytes));
                std::slice::from_raw_parts_mut(slot.as_ptr(), slot_bytes)
            }
        })
    }

    /// Makes an entry of the first bytes of the next slot.
    ///
    /// # Panics
    ///
    /// If the slot is shorter, all slots are in use, or frames are lent.
    #[inline]
    pub fn fill(&mut self, bytes: usize) {
        assert!(bytes <= self.slot_bytes && self.lender.is_none());
        self.entries[self.count] = Entry {
            at: self.slot(self.count),
            bytes,
            id: 0,
        };
        self.count += 1;
    }

    /// Copies bytes into the next slot, as [`Frames::fill`] does without copying.
    pub fn push(&mut self, bytes: &[u8]) {
        self.fill(bytes.len());
        self.bytes_mut(self.count - 1).copy_from_slice(bytes);
    }

    /// Appends bytes to the last entry. False: its slot is full, it lies in a frame, or there is
    /// none.
    #[inline]
    pub fn extend_last(&mut self, bytes: &[u8]) -> bool {
        let Some(last) = self.count.checked_sub(1) else {
            return false;
        };
        let (end, before) = (
            self.entries[last].bytes + bytes.len(),
            self.entries[last].bytes,
        );
        let has_room = self.lender.is_none() && end <= self.slot_bytes;
        if has_room {
            self.entries[last].bytes = end;
            self.bytes_mut(last)[before..].copy_from_slice(bytes);
        }
        has_room
    }

    /// Adds an entry that lies in a frame of a device's. The lender has the frame back when it is
    /// told so.
    ///
    /// # Panics
    ///
    /// If there are entries that are not this lender's, or there is no room for another one.
    ///
    /// # Safety
    ///
    /// The `bytes` bytes at `frame.at` are initialised, and until the lender takes the frame back
    /// they stay mapped, and nothing but these `Frames` reads or writes them.
    pub unsafe fn lend(&mut self, lender: &Arc<dyn Lender>, frame: Frame, bytes: usize) {
        let is_the_same =
            (self.lender.as_ref()).map_or(self.count == 0, |own| is_same(own, lender));
        assert!(is_the_same, "one batch has the packets of one device");
        self.entries[self.count] = Entry {
            at: frame.at,
            bytes,
            id: frame.id,
        };
        self.count += 1;
        if self.lender.is_none() {
            self.lender = Some(lender.clone());
        }
    }

    /// Takes out the frames that this lender has lent, each with the length of its packet, in
    /// order; none if the packets lie elsewhere. The entries remain, without bytes.
    pub fn take_lent(
        &mut self,
        lender: &Arc<dyn Lender>,
    ) -> ArrayVec<(Frame, usize), PACKET_BATCH_MAX> {
        if !self.lender.as_ref().is_some_and(|own| is_same(own, lender)) {
            return ArrayVec::new();
        }
        self.lender = None;
        let mut frames = ArrayVec::new();
        for index in 0..self.count {
            let own = Entry {
                at: self.slot(index),
                bytes: 0,
                id: 0,
            };
            let Entry { at, bytes, id } = std::mem::replace(&mut self.entries[index], own);
            frames.push((Frame { at, id }, bytes));
        }
        frames
    }

    #[inline]
    fn slot(&self, index: usize) -> NonNull<u8> {
        assert!(index < PACKET_BATCH_MAX);
        // SAFETY: the allocation has this many slots.
        unsafe { self.slots.add(index * distance(self.slot_bytes)) }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.clear();
        // SAFETY: `new` allocated it with this layout, and no entry is left that lies in it.
        unsafe { dealloc(self.slots.as_ptr(), layout(self.slot_bytes)) };
    }
}

const fn distance(slot_bytes: usize) -> usize {
    slot_bytes + BETWEEN_BYTES
}

fn layout(slot_bytes: usize) -> Layout {
    Layout::array::<u8>(Frames::memory_bytes(slot_bytes)).expect("slots fit the address space")
}

fn is_same(one: &Arc<dyn Lender>, other: &Arc<dyn Lender>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::buffers::Buffers;

    const SLOT_BYTES: usize = 100;

    #[test]
    fn entries_lie_in_slots_of_their_own() {
        let mut frames = Frames::new(SLOT_BYTES);
        for number in 0..PACKET_BATCH_MAX {
            frames.push(&[number as u8; SLOT_BYTES]);
        }
        frames.bytes_mut(3).fill(77);
        frames.truncate(3, 5);
        for number in 0..PACKET_BATCH_MAX {
            let expected = match number {
                3 => vec![77; 5],
                _ => vec![number as u8; SLOT_BYTES],
            };
            assert_eq!(frames.bytes(number), expected);
        }
        frames.clear();
        assert_eq!(frames.count(), 0);
    }

    #[test]
    fn an_entry_grows_as_far_as_its_slot() {
        let mut frames = Frames::new(SLOT_BYTES);
        assert!(!frames.extend_last(b"there is no entry"));
        frames.push(&[1; 60]);
        assert!(frames.extend_last(&[2; 40]));
        assert!(!frames.extend_last(&[3]));
        assert_eq!(frames.bytes(0), [[1; 60].as_slice(), &[2; 40]].concat());
    }

    #[test]
    fn what_is_written_to_slots_becomes_entries() {
        let mut frames = Frames::new(SLOT_BYTES);
        frames.push(b"is forgotten");
        for (number, slot) in frames.slots_mut().take(2).enumerate() {
            slot[..4].copy_from_slice(&[number as u8; 4]);
        }
        frames.fill(4);
        frames.fill(3);
        assert_eq!(
            (frames.bytes(0), frames.bytes(1)),
            (&[0; 4][..], &[1; 3][..])
        );
    }

    #[test]
    fn lent_frames_come_back_once() {
        let pool = Buffers::new();
        let mut frames = Frames::new(SLOT_BYTES);
        let lend = |frames: &mut Frames| {
            for number in 0..3 {
                pool.lend(frames, vec![number; 10]);
            }
        };
        lend(&mut frames);
        frames.bytes_mut(1)[0] = 9;
        assert_eq!(
            (frames.bytes(0), frames.bytes(1)[..2].to_vec()),
            (&[0; 10][..], vec![9, 1])
        );
        assert!(!frames.extend_last(b"no slot"));
        frames.clear();
        assert_eq!(pool.spare(), 3);
        lend(&mut frames);
        frames.truncate(2, 4);
        let taken = pool.take(&mut frames);
        assert_eq!(taken, [vec![0; 10], vec![1; 10], vec![2; 4]]);
        assert_eq!((frames.count(), frames.bytes(2)), (3, &[][..]));
        frames.clear();
        assert_eq!(pool.spare(), 3, "what was taken out is not returned");
        lend(&mut frames);
        drop(frames);
        assert_eq!(
            pool.spare(),
            6,
            "a batch that is dropped returns its frames"
        );
    }

    #[test]
    fn another_devices_frames_are_not_taken() {
        let (one, other) = (Buffers::new(), Buffers::new());
        let mut frames = Frames::new(SLOT_BYTES);
        one.lend(&mut frames, vec![1]);
        assert_eq!(other.take(&mut frames).len(), 0);
        assert_eq!(frames.bytes(0), [1]);
        let mixed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            other.lend(&mut frames, vec![2]);
        }));
        assert!(mixed.is_err());
    }
}
