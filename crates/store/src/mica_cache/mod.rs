//! Cache mode (MICA §4.3.1–4.3.2): a lossy index over one or two circular logs, with one writer at a time.
//!
//! One file per verb: `find` an item, `read` it (by the owner, or optimistically), `put` one,
//! `remove` one, `touch` one. Behind them: `make_room` at the head of a log, `lookahead` of that
//! head, `scan` for stale entries, `slots` for entries of chains that are full, and `growth` of the index
//! at the log's expense.
//!
//! Two handles reach a partition. The [`Owner`] does everything; under EREW and CREW there is one,
//! under CRCW each core has one and writers exclude one another. A [`Reader`], to be had under CREW
//! and CRCW, reads optimistically from any core.

mod ages;
mod audit;
mod calendar;
mod config;
mod expire;
mod find;
mod growth;
mod list;
mod lookahead;
mod make_room;
mod put;
mod read;
mod remove;
mod scan;
mod slots;
mod table;
mod touch;

pub use config::PartitionConfig;
pub use find::Found;
use read::Mark;

use crate::access::{Access, Gate};
use crate::batches::Seat;
use crate::evict::Rule;
use crate::flushes::FlushCount;
use crate::heap::{CasSequence, CircularLog, Geometry, Offset};
use crate::index::chained::{Border, ChainedIndex, FreeList};
use crate::index::{Entry, LogId};
use crate::removals::{Exit, RemovalObserver, Tap};
use crate::table::{CatchUp, ConfigError, Counters, enter, expired};
use ages::SharedAges;
use calendar::Calendar;
use crossbeam_utils::CachePadded;
use glimmer_base::Seed;
use glimmer_base::counter::Counter;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{Arc, AtomicU64};
use lookahead::Lookahead;

/// What every core may see of a partition.
struct Shared {
    /// In the same memory as the main log, behind its end.
    index: ChainedIndex,
    /// By [`LogId`]. Under rules with one log the second holds no items.
    logs: [CircularLog; 2],
    /// How many flushes the partition has carried out.
    flushes: FlushCount,
    /// Offsets between which the last flush found items, by [`LogId`].
    flushed_from: [AtomicU64; 2],
    /// See [`flushed_from`](Self::flushed_from).
    flushed_to: [AtomicU64; 2],
    /// Words of an item, as a moving average over what is stored.
    usual_words: Counter,
    /// Changed with every store, and so on lines of their own.
    counters: CachePadded<Counters>,
    ages: SharedAges,
    rule: Rule,
    seed: Seed,
    /// Where what leaves is reported.
    exit: Exit,
}

impl Shared {
    #[inline(always)]
    fn log(&self, id: LogId) -> &CircularLog {
        &self.logs[id as usize]
    }

    /// Whether an entry names an item: the head has not come to it.
    #[inline(always)]
    fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && self.log(entry.log()).is_live(entry.offset())
    }
}

/// What only the writer has.
struct State {
    tails: [Offset; 2],
    geometry: [Geometry; 2],
    /// Positions that the tails do not cross.
    limits: [u64; 2],
    lookahead: [Lookahead; 2],
    cas: CasSequence,
    /// [`Shared::usual_words`] in 64ths.
    usual_words_64: u64,
    scan: scan::Cursor,
    spares: FreeList,
    border: Border,
    /// Stores in a row that have found no spare bucket by scanning for one.
    scanned_in_vain: u32,
    growth: growth::Growth,
    /// Where the item lies whose value a request is about to copy: it stays until that is done.
    in_use: Option<(LogId, Offset)>,
    /// When items were appended, by [`LogId`].
    calendars: [Calendar; 2],
    /// The log that an item was evicted from most recently, if one was since ages were last shown.
    evicted_from: Option<LogId>,
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

impl<A: Access> Owner<A> {
    /// An empty partition and its owner.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn new(config: &PartitionConfig, rule: Rule) -> Result<Self, ConfigError> {
        let shared = config.build(rule)?;
        let state = State {
            tails: [Offset::from_raw(0); 2],
            geometry: [shared.logs[0].geometry(), shared.logs[1].geometry()],
            limits: [shared.index.border() as u64, shared.logs[1].limit_max()],
            lookahead: [Lookahead::default(), Lookahead::default()],
            cas: CasSequence::default(),
            usual_words_64: 0,
            scan: scan::Cursor::default(),
            spares: FreeList::default(),
            border: Border::of(&shared.index),
            scanned_in_vain: 0,
            growth: growth::Growth::new(config.index_follows),
            in_use: None,
            calendars: Default::default(),
            evicted_from: None,
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

    /// The partition's figures, for any thread.
    pub fn figures(&self) -> Figures {
        Figures {
            shared: self.shared.clone(),
        }
    }
}

impl<A: Access> Owner<A> {
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

    /// Everything that is stored lies behind the head, and is gone. Nothing is
    /// walked.
    fn flush(&mut self, flushes: u64) {
        for id in [LogId::Main, LogId::Small] {
            let tail = self.state.tails[id as usize];
            let (from, to) = (&self.shared.flushed_from, &self.shared.flushed_to);
            from[id as usize].store(self.shared.log(id).head().raw(), Relaxed);
            to[id as usize].store(tail.raw(), Relaxed);
            self.set_head(id, tail);
            self.state.lookahead[id as usize] = Lookahead::at(tail);
        }
        self.restart_lap();
        self.shared.exit.flushed(self.shared.counters.items.get());
        self.shared.counters.emptied();
        // A reader that sees the number sees the heads as well.
        self.shared.flushes.announce(flushes);
    }
}

impl<A: Access> Writer<'_, A> {
    /// Gives up what lies before `head`. If that is all of the lap before the tail's, there is one lap now.
    #[inline(always)]
    fn set_head(&mut self, id: LogId, head: Offset) {
        self.shared.log(id).publish_head(head, A::SHARED_READS);
        let geometry = self.geometry(id);
        if geometry.is_same_lap(head, self.tail(id)) {
            self.state.geometry[id as usize] = geometry.open();
        }
    }

    /// The next CAS unique.
    #[inline(always)]
    fn next_cas(&mut self) -> u64 {
        self.state.cas.draw()
    }

    #[inline(always)]
    fn log(&self, id: LogId) -> &CircularLog {
        self.shared.log(id)
    }

    #[inline(always)]
    fn tail(&self, id: LogId) -> Offset {
        self.state.tails[id as usize]
    }

    /// The arithmetic of a log's offsets as things stand.
    #[inline(always)]
    fn geometry(&self, id: LogId) -> Geometry {
        self.state.geometry[id as usize]
    }

    /// Words that a lap of a log has, as things stand.
    #[inline(always)]
    fn limit(&self, id: LogId) -> u64 {
        self.state.limits[id as usize]
    }

    #[inline(always)]
    fn position(&self, id: LogId, offset: Offset) -> u64 {
        self.geometry(id).position(offset) as u64
    }
}

/// Reads a partition's figures, from any thread.
#[derive(Clone)]
pub struct Figures {
    shared: Arc<Shared>,
}
