//! What all workers share of the hot-key accelerator. It is the one door for changes, fills,
//! evictions, flushes and pauses; [`glimmer_hotset`] says in which order things happen and why.

use std::cell::Cell;
use std::fmt;

use glimmer_base::limits::{HOT_CHANGE_TIMED_EVERY, HOT_SLOTS_MIN};
use glimmer_base::sync::{Arc, AtomicU64, Mutex, Ordering::Relaxed, lock, weakened};
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Item;
use glimmer_hotset::layout::HotItem;
use glimmer_hotset::layout::dimensions::{KEY_MAX, VALUE_MAX};
use glimmer_hotset::{
    Body, BodyFigures, Credit, Epoch, Form, Kept, Meter, Offer, Pause, Prices, Reader, SampledRead,
    Timeline,
};

use crate::clock::Clock;

/// What all workers share of the accelerator.
pub struct Accelerator {
    body: Box<dyn Body>,
    is_read_by_workers: bool,
    /// Where the server's time lies on the readers' clock.
    timeline: Timeline,
    /// Times changes.
    clock: Arc<dyn Clock>,
    meter: Mutex<Meter>,
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

/// What the accelerator is and did, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorFigures {
    /// What the body is and has counted.
    pub body: BodyFigures,
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
    /// How often a key was put into quarantine.
    pub quarantines: u64,
    /// Hits that the store has taken credit for.
    pub credited: u64,
    /// What a change costs, and what a hit saves.
    pub prices: Prices,
}

/// A key that was retracted for a change, until the change is done.
pub(crate) struct Retracted {
    right: glimmer_hotset::Retracted,
    epoch: Epoch,
}

thread_local! {
    /// The value of an item that is brought in, kept for the next one.
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Accelerator {
    /// An accelerator with this body, for this many workers with this clock.
    pub fn new(body: Box<dyn Body>, workers: usize, clock: Arc<dyn Clock>) -> Accelerator {
        Accelerator {
            is_read_by_workers: body.reader(0).is_some(),
            body,
            timeline: clock.timeline(),
            clock,
            meter: Mutex::default(),
            wanted: (0..workers).map(|_| Mutex::default()).collect(),
            counts: Counts::default(),
        }
    }

    /// The reader of a worker, if workers look in the slots.
    pub(crate) fn reader(&self, worker: usize) -> Option<Reader> {
        self.body.reader(worker)
    }

    /// Whether workers look in the slots.
    pub(crate) fn is_read_by_workers(&self) -> bool {
        self.is_read_by_workers
    }

    /// Whether the body answers requests of this form.
    pub(crate) fn may_answer(&self, form: Form) -> bool {
        self.body.may_answer(form)
    }

    /// One read of this many is sampled.
    pub(crate) fn sample_every(&self) -> u32 {
        self.body.sample_every()
    }

    /// The time as readers are told it.
    pub(crate) fn now_ns(&self, now: Moment) -> u64 {
        self.timeline.ns(now.ms)
    }

    /// The epoch, before the number of due flushes is loaded.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.body.epoch().raw()
    }

    /// Whether the body may have a key. The gate of its partition is held, and until it is left, no
    /// key comes in of which this says no.
    #[inline]
    pub(crate) fn may_have(&self, keyhash: Keyhash) -> bool {
        self.body.may_have(keyhash)
    }

    /// An item is about to change. The gate of its partition is held.
    #[inline]
    pub(crate) fn retract(&self, keyhash: Keyhash, epoch: u64) -> Option<Retracted> {
        if weakened("accelerator_retract") {
            return None;
        }
        let right = self.body.retract(keyhash)?;
        self.counts.retracts.fetch_add(1, Relaxed);
        Some(Retracted {
            right,
            epoch: Epoch::from_raw(epoch),
        })
    }

    /// The item has changed. The gate has been held since [`retract`](Self::retract).
    #[cold]
    pub(crate) fn refill(
        &self,
        Retracted { right, epoch }: Retracted,
        key: &[u8],
        item: Option<&Item<'_>>,
        now: Moment,
    ) {
        let [refreshes, quarantines] = [&self.counts.refreshes, &self.counts.quarantines];
        // Every change is counted when its slot is retracted.
        let retracts = self.counts.retracts.load(Relaxed);
        let is_timed = retracts.is_multiple_of(HOT_CHANGE_TIMED_EVERY);
        let begin_ns = is_timed.then(|| self.clock.ns());
        let refill = |item: Option<&HotItem<'_>>| self.body.refill(right, epoch, item, now.ms);
        let count = match self.with_hot(key, item, refill) {
            Kept::Live => Some(refreshes),
            Kept::Evicted => Some(quarantines),
            Kept::Unfit | Kept::NoRoom | Kept::Late => None,
        };
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
        if let Some(begin_ns) = begin_ns {
            let took_ns = self.clock.ns().saturating_sub(begin_ns);
            self.measured(|meter| meter.change(took_ns));
        }
    }

    /// A worker used this much CPU time for requests that it executed.
    pub(crate) fn executed(&self, cpu_ns: u64, requests: u64) {
        self.measured(|meter| meter.requests(cpu_ns, requests));
    }

    /// Something was measured, by which the policy goes from now on.
    fn measured(&self, note: impl FnOnce(&mut Meter)) {
        let prices = {
            let mut meter = lock(&self.meter);
            note(&mut meter);
            meter.prices()
        };
        self.body.priced(prices);
    }

    /// An item is about to leave the store without a request. The gate is held.
    pub(crate) fn evict(&self, keyhash: Keyhash) {
        if self.body.evict(keyhash) {
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
        let mut flush = Some(flush);
        let mut once = || flush.take().and_then(|flush| flush());
        self.body.flush(&mut once);
    }

    /// Nothing is answered for this reason, until it is taken back.
    pub(crate) fn pause(&self, reason: Pause, is_paused: bool) {
        self.body.pause(reason, is_paused);
    }

    /// Takes sampled reads, and says which keys are to be brought in.
    pub(crate) fn sampled<'a>(
        &self,
        mut reads: impl Iterator<Item = SampledRead<'a>>,
        now: Moment,
        offers: &mut Vec<Offer>,
    ) {
        self.body
            .sampled(&mut reads, now.ms, &mut |offer| offers.push(offer));
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
        let epoch = Epoch::from_raw(epoch);
        let kept = self.with_hot(&offer.key, item, |item| {
            self.body.fill(offer, epoch, item, now.ms)
        });
        let count = match kept {
            Kept::Live => &self.counts.offers_taken,
            _ => &self.counts.offers_refused,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Whether hits wait for credit.
    pub(crate) fn has_uncredited(&self) -> bool {
        self.body.hits() != self.counts.credited.load(Relaxed)
    }

    /// Collects the hits of the keys that `is_mine` accepts since the last time.
    pub(crate) fn harvest(
        &self,
        now: Moment,
        is_mine: impl Fn(Keyhash) -> bool,
        credits: &mut Vec<Credit>,
    ) {
        self.body
            .harvest(now.ms, &is_mine, &mut |credit| credits.push(credit));
    }

    /// The store has taken credit for this many hits.
    pub(crate) fn note_credited(&self, hits: u64) {
        self.counts.credited.fetch_add(hits, Relaxed);
    }

    /// What it is and did. `now_ms` is in milliseconds since the epoch.
    pub fn figures(&self, now_ms: u64) -> AcceleratorFigures {
        let counts = &self.counts;
        // Before the hits, of which they are a part.
        let credited = counts.credited.load(Relaxed);
        AcceleratorFigures {
            body: self.body.figures(now_ms),
            offers_taken: counts.offers_taken.load(Relaxed),
            offers_refused: counts.offers_refused.load(Relaxed),
            retracts: counts.retracts.load(Relaxed),
            refreshes: counts.refreshes.load(Relaxed),
            evicted: counts.evicted.load(Relaxed),
            quarantines: counts.quarantines.load(Relaxed),
            credited,
            prices: lock(&self.meter).prices(),
        }
    }

    /// The number of reads that it has answered. It never falls.
    pub fn hits(&self) -> u64 {
        self.body.hits()
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
        f.debug_tuple("Accelerator").field(&self.body).finish()
    }
}
