//! The table of MemC3 (NSDI'13): an optimistic cuckoo index over slab classes, with CLOCK for who
//! stays and one writer at a time beside any number of readers.
//!
//! One file per verb: `find`, `read`, `put`, `remove`, `touch`, `list`. Behind them: `room` for an item
//! (CLOCK, and slabs that move between classes) and `grow` for the index.
//!
//! | the paper | here |
//! | --- | --- |
//! | one table, writers take one lock | partitions, each a table of its own with one writer at a time, as the access mode has it |
//! | an index of fixed size; a full one stops the server | segments that split while the index grows, out of the memory that items have; an index that must not grow evicts |
//! | alternate bucket by exclusive or, a power of two of buckets | by subtraction, any even number |
//! | 8192 version counters by keyhash, apart from the buckets | one for each line of three buckets, in the line |
//! | a lookup validates its own key's version | it validates the lines of both buckets: another key's eviction can hand the memory that is being read to a third key |
//! | slots of a 1-byte tag and an 8-byte pointer | of a 1-byte tag, a 30-bit offset, the CLOCK bit, and one that says whether the item was fetched |
//! | slabs of 1 MiB that stay with their class | pages of 64 KiB that go to the class that needs them |
//!
//! As in the MICA partition, an [`Owner`] does everything, and a [`Reader`] reads beside it.

mod config;
mod find;
mod grow;
mod list;
mod put;
mod read;
mod remove;
mod room;
mod table;
mod touch;

pub use config::Memc3Config;
pub use find::Found;

use crate::access::{Access, Gate};
use crate::batches::{GracePeriod, Seat};
use crate::flushes::FlushCount;
use crate::heap::slab::Slabs;
use crate::heap::{CasSequence, Item};
use crate::index::cuckoo::{Breadth, Directory, SlotAt, Step};
use crate::memory::Pool;
use crate::removals::{Exit, RemovalObserver, Tap};
use crate::table::{CatchUp, ConfigError, Counters, enter, expired};
use crossbeam_utils::CachePadded;
use glimmer_base::counter::Counter;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::Arc;
use glimmer_base::{Keyhash, Seed};

/// What every core may see of a table.
struct Shared {
    /// Items' slabs from its beginning on, the index's segments from its end.
    pool: Pool,
    directory: Directory,
    item_words_max: usize,
    /// How many flushes the table has carried out.
    flushes: CachePadded<FlushCount>,
    /// Words of an item, as a moving average over what is stored.
    usual_words: Counter,
    /// Pages of the index.
    index_pages: Counter,
    counters: CachePadded<Counters>,
    seed: Seed,
    /// Where what leaves is reported.
    exit: Exit,
}

/// What only the writer has.
struct State {
    slabs: Slabs,
    search: Breadth,
    path: Vec<Step>,
    cas: CasSequence,
    /// [`Shared::usual_words`] in 64ths.
    usual_words_64: u64,
    /// Pages of the index that hold a segment; the others of its pages are from before a flush.
    segments: usize,
    segments_max: usize,
    /// What is waited for before the others are given to items.
    unused: Option<GracePeriod>,
    /// Holds what is in a slab while it is emptied.
    slab_items: Vec<(Keyhash, usize)>,
    slab_slots: Vec<SlotAt>,
    /// For each line of a segment that is being split, the slots that leave it.
    leaving: Vec<u16>,
}

/// The writing side of a table. See the module's text.
pub struct Owner<A: Access> {
    shared: Arc<Shared>,
    gate: A::Gate<State>,
    seat: Seat,
}

/// The reading side of a table, for cores that do not own it.
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

impl<A: Access> Owner<A> {
    /// An empty table and its owner.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn new(config: &Memc3Config) -> Result<Self, ConfigError> {
        let (shared, state) = config.build()?;
        Ok(Owner {
            shared: Arc::new(shared),
            gate: Gate::new(state),
            seat: Seat::alone(),
        })
    }

    /// Reports what leaves to this observer. Only before the table is shared.
    ///
    /// # Panics
    ///
    /// If it is shared already.
    pub fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>) {
        let shared = Arc::get_mut(&mut self.shared).expect("the table is not shared yet");
        shared.exit.attach(tap);
    }

    /// Begins work on the table at a time when `flushes` flushes were due: the table catches up
    /// with them first.
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

    /// The table's figures, for any thread.
    pub fn figures(&self) -> Figures {
        Figures {
            shared: self.shared.clone(),
        }
    }

    /// A handle for reading from another core, if the access mode allows that.
    pub fn reader(&self) -> Option<Reader> {
        A::SHARED_READS.then(|| Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        })
    }
}

impl<A: Access> CatchUp for Writer<'_, A> {
    #[inline(always)]
    fn flushes(&self) -> u64 {
        self.shared.flushes.get()
    }

    /// The index begins anew with one empty segment and all slabs are free.
    /// No item is walked.
    fn flush(&mut self, flushes: u64) {
        let shared = self.shared;
        let root = shared.root();
        for line in shared.segment(root).lines() {
            shared.empty_line(line, A::SHARED_READS);
        }
        shared.directory.assign_all(root);
        self.state.segments = 1;
        // A reader that begins with this number sees the directory as well.
        shared.flushes.announce(flushes);
        // Only now is the memory of items given to others. The grace period begins with a fence, so a
        // reader that meets a byte of what comes next sees the number too. The memory of segments is
        // given away when it is over.
        self.state.unused = Some(self.seat.grace_period());
        self.state.slabs.clear();
        shared.exit.flushed(shared.counters.items.get());
        shared.counters.emptied();
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
    /// The page of the segment that the index begins with: the pool's last, which is never given
    /// to items.
    fn root(&self) -> usize {
        self.pool.pages() - 1
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// Reads a table's figures, from any thread.
#[derive(Clone)]
pub struct Figures {
    shared: Arc<Shared>,
}

/// An item's keyhash, computed anew.
#[inline(always)]
fn hash(shared: &Shared, item: &Item<'_>) -> Keyhash {
    shared.seed.keyhash(item.key(&mut [0; KEY_BYTES_MAX + 6]))
}
