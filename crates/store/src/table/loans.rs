//! Values that are lent: read where they lie, beside writers, for longer than a copy takes.
//!
//! An optimistic reader may run over bytes that are being overwritten, because it discards what it
//! has copied. A value that leaves through a socket straight from the table's memory cannot be
//! discarded. So a reader borrows it: a loan keeps the item's place from being overwritten. The
//! item itself may be replaced, deleted or evicted meanwhile; it is the memory that stays.
//!
//! - A [`Loan`] is for one batch. Who has one waits for nothing, so that a writer can wait for it.
//! - A [`Lent`](super::Lent) value is for as long as its reader likes, over many turns. A writer
//!   does not wait for that: it copies the value aside, and the reader goes on with the copy.
//!
//! # Why nothing is stored to a place that is lent
//!
//! A reader notes the place, runs a `SeqCst` fence, and then validates its read of the item as any
//! optimistic reader does. A writer that gives up a place changes a word that readers validate by
//! (the head of a log, or the version of a chain), runs a `SeqCst` fence, and then reads the notes
//! ([`Loans::give_up`], [`Loans::is_lent`]). The two fences have an order.
//!
//! - *The writer's fence is first.* The reader's validation sees that the place has gone, and the
//!   loan is not made.
//! - *The reader's fence is first.* The writer sees the note, and waits until it is removed, or
//!   stores elsewhere. The note is removed by a release store and looked for by acquire loads, so
//!   that the reader's last use of the value happens before the writer's first store.
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
//! In cache mode places are given up by a log's head, and by the index where a vacant place is
//! chosen. In [store mode](crate::mica_store) and in [MemC3's table](crate::memc3) they are given up
//! one by one ([`Loans::give_up_item`]): before a writer frees the place of an item that has left
//! the index, and before it moves an item or writes over it, in the midst of that change. So what
//! is free there is never lent, and what is allocated may be stored to
//! ([`Loans::lends_within`] checks that). A flush gives up all places.
//!
//! # What is appended to a value that is lent
//!
//! An item that grows where it lies ([`Loans::while_growing`]) keeps every byte of its value.
//! A loan is of [whole words](crate::heap::Item::whole_bytes) only, so the word in which the value
//! ended is not part of it, nor is anything after it: a writer stores there without asking. What is
//! left are the words of the value's length, since the value begins in one of them. They change
//! once in 256 bytes. They are stored to while no one uses the value ([`Loans::pause`]): a writer
//! makes the version of the chain odd, runs a `SeqCst` fence, and waits for the loans of the place
//! as above. What is lent for longer it does not copy: it stores under the lock that guards each
//! use of the value. A loan that is made later finds the version even again, and so happens after.

use super::DRAFT_WORDS_MIN;
use crate::heap::{Item, Put, changes_length};
use glimmer_base::limits::LOANS_MAX;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use glimmer_base::sync::{Arc, AtomicU64, Mutex, MutexGuard, fence, lock, weakened, yield_now};
use std::ops::Range;

/// Loans of a table at a time.
const MAX: usize = if cfg!(loom) { 1 } else { LOANS_MAX };
/// In a note: the value is lent, and a writer copies it instead of waiting.
const LENT: u64 = 1 << 63;
/// A note whose value has been copied: it names no place any more.
const COPIED: u64 = u64::MAX;

/// The loans of a table.
#[derive(Default)]
pub(crate) struct Loans {
    /// One more than the name of a place that is lent, or zero. See also [`LENT`] and [`COPIED`].
    notes: [AtomicU64; MAX],
    /// Where the lent values are, by note. Changed together with the note, under the lock.
    values: [Mutex<Location>; MAX],
}

/// Where a lent value is.
#[derive(Default)]
enum Location {
    /// Nothing is lent.
    #[default]
    Nowhere,
    /// In the item. Its lifetime is that of the [`Lent`](super::Lent) value.
    InTable(Item<'static>),
    /// A writer needed the place, and has put the value here. Who has borrowed it before others
    /// did may see less of it.
    Aside(Arc<Vec<u8>>),
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

    /// The names of the places that are lent. Only for a writer that has given places up and has
    /// then run a `SeqCst` fence: no loan of them begins any more.
    pub fn lent(&self) -> LentNames {
        let mut lent = LentNames {
            names: [0; MAX],
            count: 0,
        };
        for name in self
            .notes
            .iter()
            .filter_map(|note| place_in(note.load(Acquire)))
        {
            lent.names[lent.count] = name;
            lent.count += 1;
        }
        lent
    }

    /// Makes the place of an item of this many words free to be stored to, if its value may be
    /// lent. The index does not name the item any more, or is in the midst of a change of it.
    #[inline(always)]
    pub fn give_up_item(&self, name: u64, words: usize) {
        if words >= DRAFT_WORDS_MIN {
            self.give_up(|lent| lent == name);
        }
    }

    /// Makes the places that have been given up free to be stored to: waits until their loans are
    /// over, and copies values that are lent for longer. A value that is lent several times is
    /// copied once. Only for the writer that gave the places up.
    #[cold]
    #[inline(never)]
    pub fn give_up(&self, is_given_up: impl Fn(u64) -> bool) {
        if !weakened("loan_wait_fence") {
            fence(SeqCst);
        }
        let mut copied = None;
        for (note, value) in self.notes.iter().zip(&self.values) {
            loop {
                let noted = note.load(Acquire);
                if !place_in(noted).is_some_and(&is_given_up) || weakened("loan_wait") {
                    break;
                }
                match noted & LENT == 0 {
                    true => yield_now(),
                    false => set_aside(noted, note, value, &mut copied),
                }
            }
        }
    }

    /// Whether a place with a name of this range is lent for long. Never so for a place that a
    /// writer has given up.
    pub fn lends_within(&self, names: Range<u64>) -> bool {
        // What the model checker explores is not to have these loads.
        let is_lent = |note: &AtomicU64| {
            let noted = note.load(Relaxed);
            noted & LENT != 0 && place_in(noted).is_some_and(|name| names.contains(&name))
        };
        !cfg!(loom) && self.notes.iter().any(is_lent)
    }
}

/// The names of places that are lent.
pub(crate) struct LentNames {
    names: [u64; MAX],
    count: usize,
}

impl LentNames {
    /// Whether one of them is such a name.
    pub fn any(&self, is_it: impl Fn(u64) -> bool) -> bool {
        self.names[..self.count].iter().any(|&name| is_it(name))
    }
}

impl Loans {
    /// Runs `grow`, by which an item [only grows](crate::heap::only_grows): while no one uses the
    /// value, if that stores to words of the value. Only for the writer, in the midst of a change
    /// of the item.
    #[inline(always)]
    pub fn while_growing<T>(
        &self,
        name: u64,
        (put, old): (&Put<'_>, &Item<'_>),
        grow: impl FnOnce() -> T,
    ) -> T {
        match old.words() >= DRAFT_WORDS_MIN && changes_length(put, old) {
            true => self.pause(name, grow),
            false => grow(),
        }
    }

    /// Runs `change`, which stores to words of a place without changing a byte of its value, while
    /// no one uses the value. Only for the writer, in the midst of a change of the item.
    #[cold]
    #[inline(never)]
    fn pause<T>(&self, name: u64, change: impl FnOnce() -> T) -> T {
        fence(SeqCst);
        let mut locked: [Option<MutexGuard<'_, Location>>; MAX] = Default::default();
        for ((note, value), locked) in self.notes.iter().zip(&self.values).zip(&mut locked) {
            loop {
                let noted = note.load(Acquire);
                if place_in(noted) != Some(name) {
                    break;
                }
                if noted & LENT == 0 {
                    yield_now();
                    continue;
                }
                let value = lock(value);
                // It is given back under the lock.
                if note.load(Relaxed) == noted {
                    *locked = Some(value);
                    break;
                }
            }
        }
        change()
    }
}

/// The name of the place in a note, if there is one.
fn place_in(note: u64) -> Option<u64> {
    (note != 0 && note != COPIED).then(|| (note & !LENT) - 1)
}

/// A loan that has become a lent value, by the number of its note.
#[derive(Clone, Copy)]
pub(crate) struct LongLoan(usize);

impl Loans {
    /// Lends a value that a loan of this table is for until [`end`](Self::end).
    ///
    /// # Safety
    ///
    /// The item's memory has to be there until then.
    pub unsafe fn prolong(&self, loan: Loan<'_>) -> LongLoan {
        let Loan { item, note } = loan;
        let nth = (self.notes.iter()).position(|one| std::ptr::eq(one, note.0));
        let nth = nth.expect("the loan is one of this table's");
        // SAFETY: only the methods of this type use the item, and none does after `end`. Until then
        // the caller keeps the memory.
        let item = unsafe { std::mem::transmute::<Item<'_>, Item<'static>>(item) };
        let mut value = lock(&self.values[nth]);
        *value = Location::InTable(item);
        note.0.store(note.0.load(Relaxed) | LENT, Release);
        std::mem::forget(note);
        LongLoan(nth)
    }

    /// Passes some of the bytes of a lent value to `take`.
    pub fn with(&self, loan: LongLoan, range: Range<usize>, take: &mut dyn FnMut(&[u8])) {
        let value = lock(&self.values[loan.0]);
        let item = match &*value {
            Location::Aside(copy) => return take(&copy[range]),
            Location::InTable(item) => item,
            Location::Nowhere => unreachable!("the value is lent"),
        };
        // SAFETY: a writer that gives up the place takes the lock before it stores there. A writer
        // that changes an item of this size where it lies stores to its header and to the words
        // after these bytes, or takes the lock as well (`pause`).
        match unsafe { item.bytes_in_place(item.whole_bytes()) } {
            Some(bytes) => take(&bytes[range]),
            None => {
                let mut copy = Vec::with_capacity(range.len());
                let part = item.value().part(range.start, range.len());
                part.append_to(&mut copy);
                take(&copy);
            }
        }
    }

    /// The value is lent no longer.
    pub fn end(&self, loan: LongLoan) {
        let mut value = lock(&self.values[loan.0]);
        *value = Location::Nowhere;
        self.notes[loan.0].store(0, Release);
    }
}

/// The value of a place, copied.
type Copied = Option<(u64, Arc<Vec<u8>>)>;

/// Copies a lent value, unless it was given back meanwhile, or was copied for another one that has
/// borrowed it. What a place has had since it was last given up is one value, or longer ones that
/// begin with it.
fn set_aside(noted: u64, note: &AtomicU64, value: &Mutex<Location>, copied: &mut Copied) {
    let mut value = lock(value);
    if let Location::InTable(item) = &*value
        && note.load(Relaxed) == noted
    {
        let bytes = item.whole_bytes();
        let known = copied.take_if(|(place, copy)| *place == noted && copy.len() >= bytes);
        let (_, copy) = known.unwrap_or_else(|| {
            let mut copy = Vec::with_capacity(bytes);
            item.value().part(0, bytes).append_to(&mut copy);
            (noted, Arc::new(copy))
        });
        *copied = Some((noted, copy.clone()));
        if !weakened("lent_copy") {
            *value = Location::Aside(copy);
        }
        note.store(COPIED, Relaxed);
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
    note: Note<'a>,
}

impl<'a> Loan<'a> {
    /// The read of the item has been validated after the note was made.
    pub(crate) fn new(item: Item<'a>, note: Note<'a>) -> Loan<'a> {
        Loan { item, note }
    }

    /// The first [`whole_bytes`](Item::whole_bytes) of the value. `None` where words do not lie in
    /// memory as bytes do.
    pub fn value_bytes(&self) -> Option<&[u8]> {
        // SAFETY: a writer that gives up the place waits for the end of the loan before it stores
        // there, or to the words of the value's length. A writer that changes an item of this size
        // where it lies stores to its header and to the words after these bytes.
        unsafe { self.item.bytes_in_place(self.item.whole_bytes()) }
    }

    /// The item whose value is lent. Its other fields may change.
    pub fn item(&self) -> &Item<'a> {
        &self.item
    }
}
