//! Values that are lent: read where they lie, beside writers, for longer than a copy takes.
//!
//! An optimistic reader may run over bytes that are being overwritten, because it discards what it
//! has copied. A value that leaves through a socket straight from the table's memory cannot be
//! discarded. So a reader borrows it: a loan keeps the item's place from being overwritten. The
//! item itself may be replaced, deleted or evicted meanwhile; it is the memory that stays.
//!
//! A [`Loan`] is what a reader has as soon as it has found the item. Who has one waits for nothing,
//! so that a writer can wait for it. It becomes a [`Lent`](super::Lent) value at once (`values`),
//! which is for as long as its reader likes, over many turns. A writer does not wait for that: it
//! copies the value aside, and the reader goes on with the copy.
//!
//! # Why nothing is stored to a place that is lent
//!
//! A reader notes the place, runs a `SeqCst` fence, and then validates its read of the item as any
//! optimistic reader does. A writer that gives up a place changes a word that readers validate by
//! (the head of a log, the version of a chain or a line, the generation, the number of flushes),
//! runs a `SeqCst` fence, and then reads the notes ([`Loans::give_up`], [`Loans::lent`]). The two
//! fences have an order.
//!
//! - *The writer's fence is first.* The reader's validation sees that the place has gone, and the
//!   loan is not made.
//! - *The reader's fence is first.* The writer sees the note, and waits until it is removed, or
//!   stores elsewhere. The note is removed by a release store and looked for by acquire loads, so
//!   that the reader's last use of the value happens before the writer's first store.
//!
//! Where there is no memory for the copy, the value is lost instead, and its reader is told: what a
//! writer may copy beside the table is bounded ([`Asides`]).
//!
//! A loan becomes a lent value while its note stands, so that no writer has stored there. From then
//! on a lock guards where the value is. The reader uses it with the lock held, for one slice at a
//! time. The writer copies it with the lock held and says that the copy is the value from now on.
//! So each use of the place happens before the copy, and the copy before the writer's first store.
//!
//! A writer waits for a bounded time, and only for a place that it is about to give up. A writer
//! that may choose among places ([`vacant`](crate::mica_cache)) takes none that is lent.
//!
//! # Who gives up a place, and when
//!
//! In cache mode the head of a log gives up most places. In [store mode](crate::mica_store) and in
//! [MemC3's table](crate::memc3) writers give them up one by one ([`Loans::give_up_item`]): the
//! place of an item that has left the index, before it is freed, and that of an item which is moved
//! or written over, in the midst of that change. So nothing is lent where memory is free, and what
//! is allocated may be stored to ([`Loans::lends_within`] checks that in tests). A flush gives up
//! all places.
//!
//! # What is appended to a value that is lent
//!
//! An item that grows where it lies ([`Loans::while_growing`]) keeps every byte of its value. A
//! loan is of [whole words](crate::heap::Item::whole_bytes) only, so the word in which the value
//! ended is not part of it, nor is anything after it: a writer stores there without asking. What is
//! left are the words of the value's length, since the value begins in one of them. They change
//! once in 256 bytes. They are stored to while no one uses the value: a writer makes the version of
//! the chain odd, runs a `SeqCst` fence, and waits for the loans of the place as above. What is
//! lent already it does not copy: it stores under the lock that guards each use of the value. A
//! loan that is made later finds the version even again, and so happens after.

mod asides;
mod notes;
mod values;

pub use asides::{Asides, Whereabouts};
pub(crate) use notes::Note;
pub use values::LongLoan;

use crate::heap::Item;
use glimmer_base::limits::LOANS_MAX;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, SeqCst};
use glimmer_base::sync::{fence, weakened, yield_now};
use notes::Notes;
use std::ops::Range;
use values::{Copied, set_aside};

/// Items of at least this many words may be lent. The model checker takes small ones.
pub(crate) const LOAN_WORDS_MIN: usize = match cfg!(any(loom, miri)) {
    true => 8,
    false => glimmer_base::limits::MEDIUM_BYTES_MIN / 8,
};
/// Notes that are made at a time: few where each look at one takes long.
const BLOCK_NOTES: usize = match (cfg!(loom), cfg!(miri)) {
    (true, _) => 1,
    (_, true) => 2,
    _ => 256,
};
/// Blocks of notes of a table.
const BLOCKS_MAX: usize = match cfg!(any(loom, miri)) {
    true => 1,
    false => LOANS_MAX / BLOCK_NOTES,
};
/// In a note: the value is lent, and a writer copies it instead of waiting.
const LENT: u64 = 1 << 63;
/// A note whose value has been copied: it names no place any more.
const COPIED: u64 = u64::MAX;

/// The loans of a table.
pub(crate) struct Loans {
    notes: Notes,
    /// What the values take that writers have copied.
    asides: Asides,
}

impl Loans {
    /// No loans yet, and what the copies of lent values may take.
    pub fn new(asides: Asides) -> Loans {
        Loans {
            notes: Notes::new(),
            asides,
        }
    }

    /// Notes that the place of this name is to be lent, so that what is validated from here on
    /// stays valid. None if there are as many loans as there may be.
    pub fn note(&self, name: u64) -> Option<Note<'_>> {
        self.notes.note(name)
    }

    /// The names of the places that are lent. Only for a writer that has given places up and has
    /// then run a `SeqCst` fence: no loan of them begins any more.
    pub fn lent(&self) -> LentNames {
        let used = self.notes.used();
        let names = used.map(|(note, _)| place_in(note.load(Acquire)));
        LentNames(names.flatten().collect())
    }

    /// Makes the place of an item of this many words free to be stored to, if its value may be
    /// lent. The index does not name the item any more, or is in the midst of a change of it.
    #[inline(always)]
    pub fn give_up_item(&self, name: u64, words: usize) {
        if words >= LOAN_WORDS_MIN {
            self.give_up_one(name);
        }
    }

    #[cold]
    #[inline(never)]
    fn give_up_one(&self, name: u64) {
        self.give_up(|lent| lent == name);
    }

    /// Makes the places that have been given up free to be stored to: waits until their loans are
    /// over, and copies values that are lent for longer. A value that is lent several times is
    /// copied once. Only for the writer that gave the places up.
    #[cold]
    #[inline(never)]
    pub fn give_up(&self, is_given_up: impl Fn(u64) -> bool) {
        // The fence of a grace period would do for a flush, and does not without this one.
        if !weakened("loan_wait_fence") && !weakened("grace_fence") {
            fence(SeqCst);
        }
        let mut copied = Copied::new();
        for (note, value) in self.notes.used() {
            loop {
                let noted = note.load(Acquire);
                if !place_in(noted).is_some_and(&is_given_up) || weakened("loan_wait") {
                    break;
                }
                match noted & LENT == 0 {
                    true => yield_now(),
                    false => set_aside(noted, note, value, (&self.asides, &mut copied)),
                }
            }
        }
    }

    /// The same for all places, after a flush.
    pub fn give_up_all(&self) {
        if !weakened("flush_loans") {
            self.give_up(|_| true);
        }
    }

    /// Whether a place with a name of this range is lent for long. Never so for a place that a
    /// writer has given up.
    pub fn lends_within(&self, names: Range<u64>) -> bool {
        // What the model checker explores is not to have these loads.
        let mut noted = self.notes.used().map(|(note, _)| note.load(Relaxed));
        let is_lent = |noted| place_in(noted).is_some_and(|name| names.contains(&name));
        !cfg!(loom) && noted.any(|noted| noted & LENT != 0 && is_lent(noted))
    }
}

/// The names of places that are lent.
pub(crate) struct LentNames(Vec<u64>);

impl LentNames {
    /// Whether one of them is such a name.
    pub fn any(&self, is_it: impl Fn(u64) -> bool) -> bool {
        self.0.iter().any(|&name| is_it(name))
    }
}

/// The name of the place in a note, if there is one.
fn place_in(note: u64) -> Option<u64> {
    (note != 0 && note != COPIED).then(|| (note & !LENT) - 1)
}

/// An item whose value does not change where it lies until this is dropped. Its other fields may
/// change.
pub(crate) struct Loan<'a> {
    item: Item<'a>,
    note: Note<'a>,
}

impl<'a> Loan<'a> {
    /// The read of the item has been validated after the note was made.
    pub fn new(item: Item<'a>, note: Note<'a>) -> Loan<'a> {
        Loan { item, note }
    }

    /// Bytes of the value that are lent.
    pub fn bytes(&self) -> usize {
        self.item.whole_bytes()
    }
}
