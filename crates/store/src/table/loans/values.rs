//! What is lent: where the values are, how they are used, and how a writer moves them aside.

use super::LOAN_WORDS_MIN;
use super::asides::{Aside, Asides, Whereabouts};
use super::{COPIED, LENT, Loan, Loans, place_in};
use crate::heap::{Item, Put, changes_length};
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use glimmer_base::sync::{
    Arc, AtomicU64, Mutex, MutexGuard, fence, lock, try_lock, weakened, yield_now,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where a lent value is.
#[derive(Default)]
pub(super) enum Location {
    /// Nothing is lent.
    #[default]
    Nowhere,
    /// In the item. Its lifetime is that of the [`Lent`](crate::table::Lent) value.
    InTable(Item<'static>),
    /// A writer needed the place, and has put the value here. Who has borrowed it before others
    /// did may see less of it.
    Aside(Arc<Aside>),
    /// A writer needed the place, and there was no memory for a copy.
    Lost,
}

/// A loan that has become a lent value, by the number of its note.
#[derive(Clone, Copy)]
pub struct LongLoan(usize);

impl Loans {
    /// Lends a value that a loan of this table is for until [`end`](Self::end).
    ///
    /// # Safety
    ///
    /// The item's memory has to be there until then.
    pub unsafe fn prolong(&self, loan: Loan<'_>) -> LongLoan {
        let Loan { item, note } = loan;
        let number = note.number;
        let (noted, value) = self.notes.get(number);
        // SAFETY: only the methods of this type use the item, and none does after `end`. Until then
        // the caller keeps the memory.
        let item = unsafe { std::mem::transmute::<Item<'_>, Item<'static>>(item) };
        let mut value = lock(value);
        *value = Location::InTable(item);
        noted.store(noted.load(Relaxed) | LENT, Release);
        std::mem::forget(note);
        LongLoan(number)
    }

    /// Passes some of the bytes of a lent value to `take`. Says whether they are still there.
    pub fn with(&self, loan: LongLoan, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
        pass(&lock(self.value(loan)), range, take)
    }

    /// The same, unless another thread uses the value or gives up its place now.
    pub fn try_with(
        &self,
        loan: LongLoan,
        range: Range<usize>,
        take: &mut dyn FnMut(&[u8]),
    ) -> bool {
        try_lock(self.value(loan)).is_some_and(|value| pass(&value, range, take))
    }

    /// Where the value is.
    pub fn whereabouts(&self, loan: LongLoan) -> Whereabouts<'_> {
        match &*lock(self.value(loan)) {
            Location::InTable(_) => Whereabouts::InTable,
            Location::Aside(copy) => Whereabouts::Aside {
                bytes: copy.bytes.len().div_ceil(Arc::strong_count(copy)),
                memory: &self.asides,
            },
            Location::Lost => Whereabouts::Lost,
            Location::Nowhere => unreachable!("the value is lent"),
        }
    }

    /// The value is lent no longer.
    pub fn end(&self, loan: LongLoan) {
        let mut value = lock(self.value(loan));
        *value = Location::Nowhere;
        self.notes.end(loan.0);
    }

    fn value(&self, loan: LongLoan) -> &Mutex<Location> {
        self.notes.get(loan.0).1
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
        match old.words() >= LOAN_WORDS_MIN && changes_length(put, old) {
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
        let mut locked: Vec<MutexGuard<'_, Location>> = Vec::new();
        for (note, value) in self.notes.used() {
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
                    locked.push(value);
                    break;
                }
            }
        }
        change()
    }
}

/// Passes some of the bytes of a lent value, which is locked, to `take`. Says whether they are
/// still there.
fn pass(value: &Location, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
    let item = match value {
        Location::Aside(copy) => {
            take(&copy.bytes[range]);
            return true;
        }
        Location::Lost => return false,
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
    true
}

/// The values that have been copied, by the notes of their places.
pub(super) type Copied = BTreeMap<u64, Arc<Aside>>;

/// Copies a lent value, if there is memory for that, unless it was given back meanwhile, or was
/// copied for another one that has borrowed it. What a place has had since it was last given up is
/// one value, or longer ones that begin with it.
pub(super) fn set_aside(
    noted: u64,
    note: &AtomicU64,
    value: &Mutex<Location>,
    (asides, copied): (&Asides, &mut Copied),
) {
    let mut value = lock(value);
    if let Location::InTable(item) = &*value
        && note.load(Relaxed) == noted
    {
        let bytes = item.whole_bytes();
        let known = copied.get(&noted).filter(|copy| copy.bytes.len() >= bytes);
        let copy = known.cloned().or_else(|| {
            let mut copy = asides.take(bytes)?;
            item.value().part(0, bytes).append_to(&mut copy.bytes);
            let copy = Arc::new(copy);
            copied.insert(noted, copy.clone());
            Some(copy)
        });
        if !weakened("lent_copy") {
            *value = copy.map_or(Location::Lost, Location::Aside);
        }
        note.store(COPIED, Relaxed);
    }
}
