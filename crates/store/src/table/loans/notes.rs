//! The notes of loans, in blocks that are made as they are needed.

use super::values::Location;
use super::{BLOCK_NOTES, BLOCKS_MAX};
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use glimmer_base::sync::{AtomicU64, Mutex, fence, weakened};
use std::array::from_fn;
use std::sync::OnceLock;

/// Notes, and where the values are that they lend.
struct Block {
    /// How many of the notes are in use. A reader raises it before the fence that follows its note,
    /// and lowers it after the note's end. So a writer that reads zero after its own fence need not
    /// look at the notes: whoever used one has ended, or finds that its place was given up.
    used: AtomicU64,
    /// One more than the name of a place that is lent, or zero. See also
    /// [`LENT`](super::LENT) and [`COPIED`](super::COPIED).
    notes: [AtomicU64; BLOCK_NOTES],
    /// Where the lent values are, by note. Changed together with the note, under the lock.
    values: [Mutex<Location>; BLOCK_NOTES],
}

/// All notes of a table. The blocks that there are precede those that are still to be made, and a
/// reader makes one before its fence. So a writer that does not see a block after its own fence has
/// no more need to look at its notes than at those of an unused one.
pub(super) struct Notes([OnceLock<Box<Block>>; BLOCKS_MAX]);

impl Block {
    fn new() -> Box<Block> {
        Box::new(Block {
            used: AtomicU64::new(0),
            notes: from_fn(|_| AtomicU64::new(0)),
            values: from_fn(|_| Mutex::default()),
        })
    }

    /// Puts this into a free note. Returns its number, if there is one.
    fn take(&self, noted: u64) -> Option<usize> {
        if self.used.load(Relaxed) >= BLOCK_NOTES as u64 {
            return None;
        }
        let is_taken = |note: &AtomicU64| {
            note.load(Relaxed) == 0 && note.compare_exchange(0, noted, Relaxed, Relaxed).is_ok()
        };
        let nth = self.notes.iter().position(is_taken)?;
        if !weakened("loan_counted_late") {
            self.used.fetch_add(1, Relaxed);
        }
        Some(nth)
    }
}

impl Notes {
    /// No notes in use, in the first block.
    pub fn new() -> Notes {
        let blocks = Notes(from_fn(|_| OnceLock::new()));
        blocks.0[0].get_or_init(Block::new);
        blocks
    }

    /// Notes the place of this name. None if there are as many loans as there may be.
    pub fn note(&self, name: u64) -> Option<Note<'_>> {
        let note = self.0.iter().enumerate().find_map(|(at, block)| {
            let nth = block.get_or_init(Block::new).take(name + 1)?;
            let number = at * BLOCK_NOTES + nth;
            Some(Note {
                notes: self,
                number,
            })
        })?;
        if !weakened("loan_note_fence") {
            fence(SeqCst);
        }
        if weakened("loan_counted_late") {
            self.block(note.number).used.fetch_add(1, Relaxed);
        }
        Some(note)
    }

    /// The notes that are in use, and the values. For a writer, after its fence.
    pub fn used(&self) -> impl Iterator<Item = (&AtomicU64, &Mutex<Location>)> {
        let blocks = self.0.iter().map_while(|block| block.get());
        let used = blocks.filter(|block| block.used.load(Acquire) > 0);
        used.flat_map(|block| block.notes.iter().zip(&block.values))
    }

    fn block(&self, number: usize) -> &Block {
        let block = self.0[number / BLOCK_NOTES].get();
        block.expect("there is a note of it")
    }

    /// A note by its number, and the value.
    pub fn get(&self, number: usize) -> (&AtomicU64, &Mutex<Location>) {
        let (block, nth) = (self.block(number), number % BLOCK_NOTES);
        (&block.notes[nth], &block.values[nth])
    }

    /// The loan of a note is over.
    pub fn end(&self, number: usize) {
        let block = self.block(number);
        block.notes[number % BLOCK_NOTES].store(0, Release);
        block.used.fetch_sub(1, Release);
    }
}

/// A hazard pointer: a place that no writer overwrites, if it held the item after the note was
/// made.
pub(crate) struct Note<'a> {
    notes: &'a Notes,
    pub(super) number: usize,
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.notes.end(self.number);
    }
}
