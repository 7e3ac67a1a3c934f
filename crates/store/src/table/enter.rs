//! How every table's writer begins work.

use crate::access::{Access, Gate};
use glimmer_base::sync::Ordering::Release;
use glimmer_base::sync::{fence, weakened};

/// A table's writer, as far as every table begins work in the same way.
pub(crate) trait CatchUp {
    /// How many flushes the table has carried out.
    fn flushes(&self) -> u64;

    /// Carries out a flush, after which that is the number.
    fn flush(&mut self, flushes: u64);
}

/// Begins work on a table at a time when `flushes` flushes were due: passes the gate, and has the
/// table catch up with the flushes.
///
/// # Memory that one writer gives up and another overwrites
///
/// A reader validates what it has copied by words that the writer changes before it gives memory
/// up: a version, a head, a number of flushes. Between that change and the first store to the memory
/// lies a release fence. The reader runs an acquire fence between its copy and its last look. If it
/// has copied one new byte, the fences synchronise, and its last look sees the change.
///
/// Where all may write, the thread that overwrites need not be the one that made the change. The
/// fence of the first thread orders nothing for the second: the lock makes the change happen before
/// the second thread's stores, but a relaxed store carries none of that to a reader that sees it.
/// So a writer that enters runs a release fence of its own, once for all that others have given up.
#[inline(always)]
pub(crate) fn enter<'a, A: Access, S: Send, W: CatchUp>(
    gate: &'a mut A::Gate<S>,
    writer: impl FnOnce(<A::Gate<S> as Gate<S>>::Guard<'a>) -> W,
    flushes: u64,
) -> W {
    let mut writer = writer(gate.enter());
    if A::SHARED_WRITES && !weakened("enter_release_fence") {
        fence(Release);
    }
    // Another writer may know of more flushes. What it has stored since then stays.
    if writer.flushes() < flushes {
        writer.flush(flushes);
    }
    writer
}
