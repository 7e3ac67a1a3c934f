//! Values that are lent, as their readers have them.

use super::loans::{Loan, LongLoan, Whereabouts};
use super::shared::{Heap, Shared};
use glimmer_base::sync::Arc;
use std::ops::Range;

/// A value that stays as it is until this is dropped: the first
/// [`whole_bytes`](crate::heap::Item::whole_bytes) of an item's value.
///
/// It is used where its item lies, whatever becomes of the item: before a writer stores to a place
/// that is lent it copies the value aside, as far as there is memory for that. `table/loans` says
/// why it notices.
pub trait LentValue: Send {
    /// Bytes of the value.
    fn bytes(&self) -> usize;

    /// Passes some of the bytes to `take`. A writer may wait meanwhile. Returns false if the value
    /// is lost: a writer has needed its place, and there was no memory for a copy.
    #[must_use]
    fn with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool;

    /// The same, unless it would have to wait for a writer: then it returns false, too.
    fn try_with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool;

    /// Where it is.
    fn whereabouts(&self) -> Whereabouts<'_>;
}

/// What was taken of an item, and its value.
pub type WithLent<T> = (T, Box<dyn LentValue>);

/// A value that a table lends. It keeps the table's memory.
pub(crate) struct Lent<H: Heap> {
    shared: Arc<Shared<H>>,
    loan: LongLoan,
    bytes: usize,
}

impl<H: Heap> Lent<H> {
    /// Lends the value of a loan for longer. The loan is one of this table's.
    pub fn of(loan: Loan<'_>, shared: &Arc<Shared<H>>) -> Box<dyn LentValue> {
        Box::new(Lent {
            bytes: loan.bytes(),
            // SAFETY: the memory is the table's, which this value keeps until it is dropped.
            loan: unsafe { shared.common.loans.prolong(loan) },
            shared: shared.clone(),
        })
    }
}

impl<H: Heap> LentValue for Lent<H> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
        self.shared.common.loans.with(self.loan, range, take)
    }

    fn try_with(&self, range: Range<usize>, take: &mut dyn FnMut(&[u8])) -> bool {
        self.shared.common.loans.try_with(self.loan, range, take)
    }

    fn whereabouts(&self) -> Whereabouts<'_> {
        self.shared.common.loans.whereabouts(self.loan)
    }
}

impl<H: Heap> Drop for Lent<H> {
    fn drop(&mut self) {
        self.shared.common.loans.end(self.loan);
    }
}
