//! Values that are lent: read where they lie, beside writers, for longer than a copy takes.
//!
//! An optimistic reader may run over bytes that are being overwritten, because it discards what it
//! has copied. A value that leaves through a socket straight from the table's memory cannot be
//! discarded. So a reader borrows it: a [`Loan`] keeps the item's place from being overwritten. The
//! item itself may be replaced, deleted or evicted meanwhile; it is the memory that stays.
//!
//! # Why nothing is stored to a place that is lent
//!
//! A reader notes the place, runs a `SeqCst` fence, and then validates its read of the item as any
//! optimistic reader does. A writer that gives up a place changes a word that readers validate by
//! (the head of a log, or the version of a chain), runs a `SeqCst` fence, and then reads the notes
//! ([`Loans::wait_until`], [`Loans::is_lent`]). The two fences have an order.
//!
//! - *The writer's fence is first.* The reader's validation sees that the place has gone, and the
//!   loan is not made.
//! - *The reader's fence is first.* The writer sees the note, and waits until it is removed, or
//!   stores elsewhere. The note is removed by a release store and looked for by acquire loads, so
//!   that the reader's last use of the value happens before the writer's first store.
//!
//! A thread that has a loan waits for nothing. So a writer waits for a bounded time, and only if
//! its log's head has passed the place that is lent. A writer that may choose among places
//! ([`vacant`](crate::mica_cache)) takes none that is lent.

use crate::heap::Item;
use glimmer_base::limits::LOANS_MAX;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use glimmer_base::sync::{AtomicU64, fence, weakened, yield_now};

/// The loans of a table.
#[derive(Default)]
pub(crate) struct Loans {
    /// One more than the name of a place that is lent, or zero.
    notes: [AtomicU64; if cfg!(loom) { 1 } else { LOANS_MAX }],
}

impl Loans {
    /// Notes that the place of this name is to be lent, so that what is validated from here on
    /// stays valid. None if there are as many loans as there may be.
    pub fn note(&self, name: u64) -> Option<Note<'_>> {
        let take = |note: &&AtomicU64| {
            note.load(Relaxed) == 0 && note.compare_exchange(0, name + 1, Relaxed, Relaxed).is_ok()
        };
        let note = Note(self.notes.iter().find(take)?);
        if !weakened("loan_note_fence") {
            fence(SeqCst);
        }
        Some(note)
    }

    /// Whether the place of this name is lent. Only for a writer that has given the place up and
    /// has then run a `SeqCst` fence: no loan of it begins any more.
    pub fn is_lent(&self, name: u64) -> bool {
        (self.notes.iter()).any(|note| note.load(Acquire) == name + 1)
    }

    /// Waits until no place is lent that has been given up. Only for the writer that gave it up.
    #[cold]
    #[inline(never)]
    pub fn wait_until(&self, is_given_up: impl Fn(u64) -> bool) {
        if !weakened("loan_wait_fence") {
            fence(SeqCst);
        }
        for note in &self.notes {
            loop {
                let noted = note.load(Acquire);
                if noted == 0 || !is_given_up(noted - 1) || weakened("loan_wait") {
                    break;
                }
                yield_now();
            }
        }
    }
}

/// A place that no writer overwrites, if it held the item after the note was made.
pub(crate) struct Note<'a>(&'a AtomicU64);

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

/// A value that does not change where it lies until this is dropped.
pub struct Loan<'a> {
    item: Item<'a>,
    _note: Note<'a>,
}

impl<'a> Loan<'a> {
    /// The read of the item has been validated after the note was made.
    pub(crate) fn new(item: Item<'a>, note: Note<'a>) -> Loan<'a> {
        Loan { item, _note: note }
    }

    /// The first [`whole_bytes`](Item::whole_bytes) of the value. `None` where words do not lie in
    /// memory as bytes do.
    pub fn value_bytes(&self) -> Option<&[u8]> {
        // SAFETY: a writer that gives up the place waits for the end of the loan before it stores
        // there. A writer that changes an item of this size where it lies stores to its header and
        // to the words after these bytes.
        unsafe { self.item.bytes_in_place(self.item.whole_bytes()) }
    }

    /// The item whose value is lent. Its other fields may change.
    pub fn item(&self) -> &Item<'a> {
        &self.item
    }
}
