//! What all workers share of the hot-key accelerator. It is the one door for changes, fills,
//! evictions, flushes and pauses; [`glimmer_hotset`] says in which order things happen and why.

use std::cell::Cell;
use std::fmt;

use glimmer_base::limits::HOT_SLOTS_MIN;
use glimmer_base::sync::{Arc, AtomicU64, Mutex, Ordering::Relaxed, lock, weakened};
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Item;
use glimmer_hotset::layout::dimensions::{KEY_MAX, VALUE_MAX};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Tally};
use glimmer_hotset::{
    Changed, Controller, Credit, Epoch, Filled, Guard, Offer, Pause, Policy, Reader, SampledRead,
    Timeline, Token,
};

use super::body::{Body, Readers};

/// What all workers share of the accelerator.
pub struct Accelerator {
    controller: Controller,
    guard: Arc<Guard>,
    /// Held during a flush, so that the time of the next one is set in the order of flushes.
    flushing: Mutex<()>,
    readers: Readers,
    /// Where the server's time lies on the readers' clock.
    timeline: Timeline,
    /// Keys that the owner of their partition is to bring in, by worker.
    wanted: Box<[Mutex<Vec<Offer>>]>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    offers_taken: AtomicU64,
    offers_refused: AtomicU64,
    retracts: AtomicU64,
    refreshes: AtomicU64,
    evicted: AtomicU64,
    quarantines: AtomicU64,
    credited: AtomicU64,
}

/// An event that a reader counts, by its name in statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The name.
    pub name: &'static str,
    /// How often it happened.
    pub count: u64,
}

/// What the accelerator is and did, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorFigures {
    /// Number of slots.
    pub slots: usize,
    /// Slots that may be answered from.
    pub live: usize,
    /// Reads that were answered.
    pub hits: u64,
    /// What readers count: hits by protocol, and why requests went on to the server.
    pub events: Vec<Passed>,
    /// Keys that were brought in.
    pub offers_taken: u64,
    /// Keys that were offered, and not brought in.
    pub offers_refused: u64,
    /// Slots that were retracted for a change.
    pub retracts: u64,
    /// Slots that were given the new value after a change.
    pub refreshes: u64,
    /// Slots whose items left the store without a request.
    pub evicted: u64,
    /// Keys that are kept out because they are changed too often.
    pub quarantined: usize,
    /// How often a key was put into quarantine.
    pub quarantines: u64,
    /// Hits that the store has taken credit for.
    pub credited: u64,
    /// Why nothing is answered at the moment.
    pub paused: Vec<&'static str>,
}

/// A slot that was retracted for a change, until the change is done.
pub(crate) struct Retracted {
    token: Token,
    epoch: Epoch,
}

thread_local! {
    /// The value of an item that is brought in, kept for the next one.
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Accelerator {
    /// An accelerator with this body and policy, for this many workers whose clock lies there on
    /// the readers' clock.
    pub fn new(
        body: Body,
        policy: Box<dyn Policy>,
        workers: usize,
        timeline: Timeline,
    ) -> Accelerator {
        let guard = Arc::new(Guard::new(body.memory));
        Accelerator {
            controller: Controller::new(guard.clone(), policy),
            guard,
            flushing: Mutex::default(),
            readers: body.readers,
            timeline,
            wanted: (0..workers).map(|_| Mutex::default()).collect(),
            counts: Counts::default(),
        }
    }

    /// Bytes of memory that an accelerator takes whose body is in this process.
    pub fn bytes(slots: usize, workers: usize) -> usize {
        glimmer_hotset::bytes(slots, workers)
    }

    /// Bytes of memory that an accelerator takes besides those of its body.
    pub fn upkeep_bytes(slots: usize) -> usize {
        glimmer_hotset::upkeep_bytes(slots)
    }

    /// The reader of a worker, if workers look in the slots.
    pub(crate) fn reader(&self, worker: usize) -> Option<Reader> {
        let memory = self.guard.memory();
        self.is_read_by_workers()
            .then(|| Reader::new(memory.clone(), worker))
    }

    /// Whether workers look in the slots.
    pub(crate) fn is_read_by_workers(&self) -> bool {
        self.readers == Readers::Workers
    }

    /// One read of this many is sampled.
    pub(crate) fn sample_every(&self) -> u32 {
        self.controller.sample_every()
    }

    /// The time as readers are told it.
    pub(crate) fn now_ns(&self, now: Moment) -> u64 {
        self.timeline.ns(now.ms)
    }

    /// The epoch, before the number of due flushes is loaded.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.guard.epoch().raw()
    }

    /// An item is about to change. The gate of its partition is held.
    #[inline]
    pub(crate) fn retract(&self, keyhash: Keyhash, epoch: u64) -> Option<Retracted> {
        if weakened("accelerator_retract") {
            return None;
        }
        let token = self.guard.retract(keyhash)?;
        self.counts.retracts.fetch_add(1, Relaxed);
        Some(Retracted {
            token,
            epoch: Epoch::from_raw(epoch),
        })
    }

    /// The item has changed. The gate has been held since [`retract`](Self::retract).
    #[cold]
    pub(crate) fn refill(
        &self,
        Retracted { token, epoch }: Retracted,
        key: &[u8],
        item: Option<&Item<'_>>,
        now: Moment,
    ) {
        let changed = self.with_hot(key, item, |item| {
            self.controller.changed(token, epoch, item, now.ms)
        });
        let count = match changed {
            Changed::Refilled(Filled::Live(_)) => &self.counts.refreshes,
            Changed::Evicted => &self.counts.quarantines,
            Changed::Refilled(_) | Changed::LeftDead => return,
        };
        count.fetch_add(1, Relaxed);
    }

    /// An item is about to leave the store without a request. The gate is held.
    pub(crate) fn evict(&self, keyhash: Keyhash) {
        if !weakened("accelerator_evict") && self.guard.evict(keyhash) {
            self.counts.evicted.fetch_add(1, Relaxed);
        }
    }

    /// Carries out or schedules a flush by the call of `flush`, which returns when the next one is
    /// due.
    pub(crate) fn flush(&self, flush: impl FnOnce() -> Option<u64>) {
        if weakened("accelerator_epoch") {
            flush();
            return;
        }
        let flushing = lock(&self.flushing);
        let control = self.guard.memory().control();
        let mut pending_ms = None;
        // Until the flush is done, the time of the one that was pending stands.
        self.guard
            .flush(Some(control.flush_at_ns()), || pending_ms = flush());
        control.set_flush_at_ns(pending_ms.map_or(NEVER_NS, |at_ms| self.timeline.ns(at_ms)));
        drop(flushing);
    }

    /// Nothing is answered for this reason, until it is taken back.
    pub(crate) fn pause(&self, reason: Pause, is_paused: bool) {
        match is_paused {
            true => self.guard.pause(reason),
            false => self.guard.resume(reason),
        }
    }

    /// Takes sampled reads, and says which keys are to be brought in.
    pub(crate) fn sampled<'a>(
        &self,
        reads: impl IntoIterator<Item = SampledRead<'a>>,
        now: Moment,
        offers: &mut Vec<Offer>,
    ) {
        self.controller
            .sampled(reads, now.ms, |offer| offers.push(offer));
    }

    /// Leaves a key for the owner of its partition.
    pub(crate) fn leave(&self, owner: usize, offer: Offer) {
        let mut wanted = lock(&self.wanted[owner]);
        if wanted.len() < HOT_SLOTS_MIN {
            wanted.push(offer);
        }
    }

    /// The keys that were left for a worker.
    pub(crate) fn take_wanted(&self, worker: usize, offers: &mut Vec<Offer>) {
        offers.append(&mut lock(&self.wanted[worker]));
    }

    /// Brings an item in. The gate of its partition is held, and the epoch is from before the
    /// number of due flushes was loaded.
    pub(crate) fn fill(&self, offer: &Offer, epoch: u64, item: Option<&Item<'_>>, now: Moment) {
        let is_live = self.with_hot(&offer.key, item, |item| {
            let Some(item) = item else {
                self.controller.refused(offer, now.ms);
                return false;
            };
            let filled = self.controller.fill(offer, Epoch::from_raw(epoch), item);
            matches!(filled, Filled::Live(_))
        });
        let count = match is_live {
            true => &self.counts.offers_taken,
            false => &self.counts.offers_refused,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Whether hits wait for credit.
    pub(crate) fn has_uncredited(&self) -> bool {
        self.hits() != self.counts.credited.load(Relaxed)
    }

    /// Collects the hits of the keys that `is_mine` accepts since the last time.
    pub(crate) fn harvest(
        &self,
        now: Moment,
        is_mine: impl Fn(Keyhash) -> bool,
        credits: &mut Vec<Credit>,
    ) {
        self.controller
            .harvest(now.ms, is_mine, |credit| credits.push(credit));
    }

    /// The store has taken credit for this many hits.
    pub(crate) fn note_credited(&self, hits: u64) {
        self.counts.credited.fetch_add(hits, Relaxed);
    }

    /// All hits.
    fn hits(&self) -> u64 {
        let hits = [Tally::HitGet, Tally::HitGets, Tally::HitBinary];
        hits.into_iter().map(|tally| self.count(tally)).sum()
    }

    fn count(&self, tally: Tally) -> u64 {
        let memory = self.guard.memory();
        let rows = (0..memory.readers()).map(|reader| memory.tallies(reader));
        rows.map(|row| row[tally as usize].load(Relaxed)).sum()
    }

    /// What it is and did. `now_ms` is in milliseconds since the epoch.
    pub fn figures(&self, now_ms: u64) -> AcceleratorFigures {
        let slots = self.guard.memory().slots();
        let counts = &self.counts;
        // Before the hits, of which they are a part.
        let credited = counts.credited.load(Relaxed);
        let event = |&tally: &Tally| Passed {
            name: tally.name(),
            count: self.count(tally),
        };
        AcceleratorFigures {
            slots: slots.len(),
            live: slots
                .iter()
                .filter(|slot| slot.state().may_be_read())
                .count(),
            hits: self.hits(),
            events: Tally::all().iter().map(event).collect(),
            offers_taken: counts.offers_taken.load(Relaxed),
            offers_refused: counts.offers_refused.load(Relaxed),
            retracts: counts.retracts.load(Relaxed),
            refreshes: counts.refreshes.load(Relaxed),
            evicted: counts.evicted.load(Relaxed),
            quarantined: self.controller.quarantined(now_ms),
            quarantines: counts.quarantines.load(Relaxed),
            credited,
            paused: self.guard.pauses().map(Pause::name).collect(),
        }
    }

    /// Hits that the store has not taken credit for yet.
    pub fn uncredited(&self) -> u64 {
        let credited = self.counts.credited.load(Relaxed);
        self.hits().saturating_sub(credited)
    }

    /// Shows `take` an item as the accelerator knows it; none if it does not fit into a slot.
    fn with_hot<R>(
        &self,
        key: &[u8],
        item: Option<&Item<'_>>,
        take: impl FnOnce(Option<&HotItem<'_>>) -> R,
    ) -> R {
        let fits = |item: &&Item<'_>| {
            (1..=VALUE_MAX).contains(&item.layout().value_len) && key.len() <= KEY_MAX
        };
        let Some(item) = item.filter(fits) else {
            return take(None);
        };
        let mut value = VALUE.take();
        value.clear();
        item.value().append_to(&mut value);
        let taken = take(Some(&HotItem {
            key,
            value: &value,
            flags: item.flags(),
            cas: item.cas(),
            deadline_ns: self.timeline.deadline_ns(item.expiry()),
        }));
        VALUE.set(value);
        taken
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Accelerator")
            .field(&self.guard.memory())
            .finish()
    }
}
