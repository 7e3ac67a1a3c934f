//! A thread that takes pages from the kernel before a worker touches them.
//!
//! The kernel clears a page when it is touched first, and the thread that touches it waits: for a
//! huge page a tenth of a millisecond, and some milliseconds in a virtual machine that its host has
//! to give the memory first. While a store is filled, that is once for each 2 MiB of items.

use super::reservation::Reservation;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// A thread that populates pages. It ends when the last clone is dropped. A worker never waits for
/// it: a page that is not populated in time is populated by the worker's own first access.
#[derive(Clone, Debug)]
pub struct PagesAhead(Sender<Pages>);

/// Words of a memory that is reached as [`AtomicU64`](glimmer_base::sync::AtomicU64)s alone.
struct Pages {
    memory: Arc<Reservation>,
    words: Range<usize>,
}

impl PagesAhead {
    /// Starts the thread, which does `first` before all else.
    pub fn start(first: impl FnOnce() + Send + 'static) -> io::Result<PagesAhead> {
        let (sender, wanted) = channel::<Pages>();
        let take = move || {
            first();
            for Pages { memory, words } in wanted {
                memory.touch(words);
            }
        };
        thread::Builder::new().name("pages".into()).spawn(take)?;
        Ok(PagesAhead(sender))
    }

    pub(super) fn take(&self, memory: Arc<Reservation>, words: Range<usize>) {
        // The thread ends after the last sender alone.
        let _ = self.0.send(Pages { memory, words });
    }
}
