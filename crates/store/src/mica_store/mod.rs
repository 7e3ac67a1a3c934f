//! Store mode (MICA §4.3.3): a partition that loses nothing. Items lie in a heap of
//! [segregated fits](crate::heap::segregated_fits) under a [lossless index](crate::index::chained);
//! an item goes when a client says so or when it expires, and a store that finds no room is refused.
//!
//! One file per verb, as in the cache mode's [`mica_cache`](crate::mica_cache): `find`, `read`, `put`,
//! `remove`, `touch`. Behind them: `room`, what is done before a store is refused; `relocate`, by which
//! free space comes together; `scan` for expired items and for entries that a flush has left; `name`, how an index entry names an item here.
//!
//! # Memory
//!
//! Heap and index share one piece of memory. The heap grows from its beginning, the index from its
//! end, and whoever needs more takes of what lies between: neither has a size that somebody would
//! have to guess.
//!
//! # Optimistic readers
//!
//! The chain's version tells a reader of every change to the entries it has seen, and to items that
//! are written in place. Three things lie outside of a version:
//!
//! - *An item's place is given to another.* Its entry was removed first, under the version, and the
//!   release fence of that change lies between it and whatever is written there later; a reader that
//!   has seen any of it sees the version too. Under CRCW the later writer may be another thread,
//!   which runs a fence of its own when it [enters](crate::table::Table::enter).
//! - *A flush* touches no chain: it makes every entry stale by raising the generation that entries
//!   are compared with, behind which goes a release fence. A reader looks at it again at the end.
//! - *The index changes its shape.* See [`index::chained`](crate::index::chained).

mod audit;
mod config;
mod find;
mod list;
mod name;
mod put;
mod read;
mod relocate;
mod remove;
mod room;
mod scan;
mod soonest;
mod table;
mod touch;

pub use config::StoreConfig;

use crate::access::{Access, Gate};
use crate::batches::Seat;
use crate::flushes::FlushCount;
use crate::heap::CasSequence;
use crate::heap::segregated_fits::{SegregatedFits, Space};
use crate::index::chained::{Border, ChainedIndex, FreeList};
use crate::removals::{Exit, RemovalObserver, Tap};
use crate::table::{CatchUp, ConfigError, Counters, enter};
use crossbeam_utils::CachePadded;
use glimmer_base::Seed;
use glimmer_base::counter::Counter;
use glimmer_base::sync::Ordering::{Relaxed, Release};
use glimmer_base::sync::{Arc, AtomicU64, fence, weakened};
use name::Generation;

/// What every core may see of a partition.
struct Shared {
    space: Space,
    index: ChainedIndex,
    /// Entries of another generation name nothing.
    generation: AtomicU64,
    /// How many flushes the partition has carried out.
    flushes: FlushCount,
    /// Words of an item, as a moving average over what is stored.
    usual_words: Counter,
    /// Changed with every store, and so on lines of their own.
    counters: CachePadded<Counters>,
    seed: Seed,
    /// Where what leaves is reported.
    exit: Exit,
}

/// What only the writer has.
struct State {
    fits: SegregatedFits,
    spares: FreeList,
    border: Border,
    cas: CasSequence,
    /// [`Shared::usual_words`] in 64ths.
    usual_words_64: u64,
    scan: scan::Cursor,
    pending: Option<relocate::Pending>,
}

/// The writing side of a partition. See the module's text.
pub struct Owner<A: Access> {
    shared: Arc<Shared>,
    gate: A::Gate<State>,
    seat: Seat,
}

/// The reading side of a partition, for cores that do not own it.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
    seat: Seat,
}

/// A writer at work: the owner with its gate passed. Requests are executed on this.
pub struct Writer<'a, A: Access> {
    shared: &'a Shared,
    state: <A::Gate<State> as Gate<State>>::Guard<'a>,
    seat: &'a Seat,
}

/// Reads a partition's figures, from any thread.
#[derive(Clone)]
pub struct Figures {
    shared: Arc<Shared>,
}

impl<A: Access> Owner<A> {
    /// An empty partition and its owner.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn new(config: &StoreConfig) -> Result<Self, ConfigError> {
        let shared = config.build()?;
        let state = State {
            fits: SegregatedFits::new(&shared.space),
            spares: FreeList::default(),
            border: Border::of(&shared.index),
            cas: CasSequence::default(),
            usual_words_64: 0,
            scan: scan::Cursor::default(),
            pending: None,
        };
        Ok(Owner {
            shared: Arc::new(shared),
            gate: Gate::new(state),
            seat: Seat::alone(),
        })
    }

    /// Reports what leaves to this observer. Only before the partition is shared.
    ///
    /// # Panics
    ///
    /// If it is shared already.
    pub fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>) {
        let shared = Arc::get_mut(&mut self.shared).expect("the partition is not shared yet");
        shared.exit.attach(tap);
    }

    /// Begins work on the partition at a time when `flushes` flushes were due: the partition
    /// catches up with them first.
    #[inline(always)]
    pub fn enter(&mut self, flushes: u64) -> Writer<'_, A> {
        let (shared, seat) = (&self.shared, &self.seat);
        let writer = |state| Writer {
            shared,
            state,
            seat,
        };
        enter::<A, _, _>(&mut self.gate, writer, flushes)
    }

    /// A handle for reading from another core, if the access mode allows that.
    pub fn reader(&self) -> Option<Reader> {
        A::SHARED_READS.then(|| Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        })
    }

    /// The partition's figures, for any thread.
    pub fn figures(&self) -> Figures {
        Figures {
            shared: self.shared.clone(),
        }
    }
}

impl<A: Access> CatchUp for Writer<'_, A> {
    #[inline(always)]
    fn flushes(&self) -> u64 {
        self.shared.flushes.get()
    }

    /// Every entry is stale, and the heap is empty. Nothing is walked; the
    /// scan removes the entries in its own time.
    fn flush(&mut self, flushes: u64) {
        let shared = self.shared;
        shared
            .generation
            .store(shared.generation().next().raw(), Relaxed);
        if A::SHARED_READS && !weakened("generation_release_fence") {
            fence(Release);
        }
        self.state.fits.reset();
        self.state.pending = None;
        shared.exit.flushed(shared.counters.items.get());
        shared.counters.emptied();
        self.scan_after_flush();
        // A reader that sees the number sees the generation as well.
        shared.flushes.announce(flushes);
    }
}

impl<A: Access> Writer<'_, A> {
    /// The next CAS unique.
    #[inline(always)]
    fn next_cas(&mut self) -> u64 {
        self.state.cas.draw()
    }
}

impl Shared {
    #[inline(always)]
    fn generation(&self) -> Generation {
        Generation::from_raw(self.generation.load(Relaxed))
    }
}
