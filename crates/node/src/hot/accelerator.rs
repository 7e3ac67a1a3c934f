//! What all workers share of the hot-key accelerator. It is the one door for changes, fills,
//! evictions, flushes and pauses; [`glimmer_hotset`] says in which order things happen and why.

use std::cell::Cell;
use std::fmt;

use glimmer_base::limits::{HOT_CHANGE_TIMED_EVERY, HOT_SLOTS_MIN};
use glimmer_base::sync::{Arc, AtomicU64, Mutex, Ordering::Relaxed, lock, weakened};
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Item;
use glimmer_hotset::device::DeviceCounters;
use glimmer_hotset::layout::dimensions::{KEY_MAX, VALUE_MAX};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Tally};
use glimmer_hotset::{
    Changed, Controller, Credit, Deleted, Epoch, Filled, Form, Guard, Keeper, Kept, Meter, Offer,
    Pause, Policy, Prices, Reader, SampledRead, Timeline, Token,
};

use super::body::{Body, Readers};
use crate::clock::Clock;

/// What all workers share of the accelerator.
pub struct Accelerator {
    door: Door,
    /// Where the server's time lies on the readers' clock.
    timeline: Timeline,
    /// Times changes.
    clock: Arc<dyn Clock>,
    meter: Mutex<Meter>,
    /// Keys that the owner of their partition is to bring in, by worker.
    wanted: Box<[Mutex<Vec<Offer>>]>,
    counts: Counts,
}

/// How changes come to the body.
enum Door {
    /// By the memory that it shares with the server.
    Memory(Box<Shared>),
    /// By operations.
    Device(Box<Keeper>),
}

struct Shared {
    controller: Controller,
    guard: Arc<Guard>,
    /// Held during a flush, so that the time of the next one is set in the order of flushes.
    flushing: Mutex<()>,
    readers: Readers,
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
    /// Slots that are answered from now.
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
    /// What a change costs, and what a hit saves.
    pub prices: Prices,
    /// Why nothing is answered at the moment.
    pub paused: Vec<&'static str>,
    /// What a device has counted that is no memory of the server.
    pub device: Option<DeviceCounters>,
}

/// A slot that was retracted for a change, until the change is done.
pub(crate) struct Retracted {
    right: Right,
    epoch: Epoch,
}

enum Right {
    Slot(Token),
    Device(Deleted),
}

thread_local! {
    /// The value of an item that is brought in, kept for the next one.
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Accelerator {
    /// An accelerator with this body and policy, for this many workers with this clock.
    pub fn new(
        body: Body,
        policy: Box<dyn Policy>,
        workers: usize,
        clock: Arc<dyn Clock>,
    ) -> Accelerator {
        let door = match body {
            Body::Memory { memory, readers } => {
                let guard = Arc::new(Guard::new(memory));
                Door::Memory(Box::new(Shared {
                    controller: Controller::new(guard.clone(), policy),
                    guard,
                    flushing: Mutex::default(),
                    readers,
                }))
            }
            Body::Device(device) => Door::Device(Box::new(Keeper::new(device, policy))),
        };
        Accelerator {
            door,
            timeline: clock.timeline(),
            clock,
            meter: Mutex::default(),
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

    /// Bytes of memory that an accelerator takes whose body is a device.
    pub fn device_bytes(slots: usize) -> usize {
        glimmer_hotset::upkeep_bytes(slots) + Keeper::bytes(slots)
    }

    /// The reader of a worker, if workers look in the slots.
    pub(crate) fn reader(&self, worker: usize) -> Option<Reader> {
        match &self.door {
            Door::Memory(it) if it.readers == Readers::Workers => {
                Some(Reader::new(it.guard.memory().clone(), worker))
            }
            _ => None,
        }
    }

    /// Whether workers look in the slots.
    pub(crate) fn is_read_by_workers(&self) -> bool {
        matches!(&self.door, Door::Memory(it) if it.readers == Readers::Workers)
    }

    /// Whether the body answers requests of this form. A circuit answers binary ones alone.
    pub(crate) fn may_answer(&self, form: Form) -> bool {
        matches!(self.door, Door::Memory(_)) || matches!(form, Form::Binary { .. })
    }

    /// One read of this many is sampled.
    pub(crate) fn sample_every(&self) -> u32 {
        match &self.door {
            Door::Memory(it) => it.controller.sample_every(),
            Door::Device(keeper) => keeper.sample_every(),
        }
    }

    /// The time as readers are told it.
    pub(crate) fn now_ns(&self, now: Moment) -> u64 {
        self.timeline.ns(now.ms)
    }

    /// The epoch, before the number of due flushes is loaded.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        match &self.door {
            Door::Memory(it) => it.guard.epoch().raw(),
            Door::Device(keeper) => keeper.epoch().raw(),
        }
    }

    /// Whether the body may have a key. The gate of its partition is held, and until it is left, no
    /// key comes in of which this says no.
    #[inline]
    pub(crate) fn may_have(&self, keyhash: Keyhash) -> bool {
        match &self.door {
            Door::Memory(it) => it.guard.may_have(keyhash),
            Door::Device(keeper) => keeper.may_have(keyhash),
        }
    }

    /// An item is about to change. The gate of its partition is held.
    #[inline]
    pub(crate) fn retract(&self, keyhash: Keyhash, epoch: u64) -> Option<Retracted> {
        if weakened("accelerator_retract") {
            return None;
        }
        let right = match &self.door {
            Door::Memory(it) => Right::Slot(it.guard.retract(keyhash)?),
            Door::Device(keeper) => Right::Device(keeper.retract(keyhash)?),
        };
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
        let count = self.with_hot(key, item, |item| match (&self.door, right) {
            (Door::Memory(it), Right::Slot(token)) => {
                match it.controller.changed(token, epoch, item, now.ms) {
                    Changed::Refilled(Filled::Live(_)) => Some(refreshes),
                    Changed::Evicted => Some(quarantines),
                    Changed::Refilled(_) | Changed::LeftDead => None,
                }
            }
            (Door::Device(keeper), Right::Device(deleted)) => {
                match keeper.refill(deleted, epoch, item, now.ms) {
                    Kept::Live => Some(refreshes),
                    Kept::Evicted => Some(quarantines),
                    Kept::Unfit | Kept::NoRoom | Kept::Late => None,
                }
            }
            _ => unreachable!("the right is from this door"),
        });
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
        match &self.door {
            Door::Memory(it) => it.controller.priced(prices),
            Door::Device(keeper) => keeper.priced(prices),
        }
    }

    /// An item is about to leave the store without a request. The gate is held.
    pub(crate) fn evict(&self, keyhash: Keyhash) {
        let was_there = match &self.door {
            Door::Memory(it) => it.guard.evict(keyhash),
            Door::Device(keeper) => keeper.evict(keyhash),
        };
        if was_there {
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
        let it = match &self.door {
            Door::Memory(it) => it,
            Door::Device(keeper) => return keeper.flush(|| flush().is_some()),
        };
        let flushing = lock(&it.flushing);
        let control = it.guard.memory().control();
        let mut pending_ms = None;
        // Until the flush is done, the time of the one that was pending stands.
        it.guard
            .flush(Some(control.flush_at_ns()), || pending_ms = flush());
        control.set_flush_at_ns(pending_ms.map_or(NEVER_NS, |at_ms| self.timeline.ns(at_ms)));
        drop(flushing);
    }

    /// Nothing is answered for this reason, until it is taken back.
    pub(crate) fn pause(&self, reason: Pause, is_paused: bool) {
        match (&self.door, is_paused) {
            (Door::Memory(it), true) => it.guard.pause(reason),
            (Door::Memory(it), false) => it.guard.resume(reason),
            (Door::Device(keeper), _) => keeper.pause(reason, is_paused),
        }
    }

    /// Takes sampled reads, and says which keys are to be brought in.
    pub(crate) fn sampled<'a>(
        &self,
        reads: impl IntoIterator<Item = SampledRead<'a>>,
        now: Moment,
        offers: &mut Vec<Offer>,
    ) {
        let offer = |offer| offers.push(offer);
        match &self.door {
            Door::Memory(it) => it.controller.sampled(reads, now.ms, offer),
            Door::Device(keeper) => keeper.sampled(reads, now.ms, offer),
        }
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
            let epoch = Epoch::from_raw(epoch);
            let controller = match &self.door {
                Door::Memory(it) => &it.controller,
                Door::Device(keeper) => {
                    return keeper.fill(offer, epoch, item, now.ms) == Kept::Live;
                }
            };
            let Some(item) = item else {
                controller.refused(offer, now.ms);
                return false;
            };
            matches!(controller.fill(offer, epoch, item, now.ms), Filled::Live(_))
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
        let credit = |credit| credits.push(credit);
        match &self.door {
            Door::Memory(it) => it.controller.harvest(now.ms, is_mine, credit),
            Door::Device(keeper) => keeper.harvest(now.ms, is_mine, credit),
        }
    }

    /// The store has taken credit for this many hits.
    pub(crate) fn note_credited(&self, hits: u64) {
        self.counts.credited.fetch_add(hits, Relaxed);
    }

    /// All hits.
    fn hits(&self) -> u64 {
        match &self.door {
            Door::Memory(it) => it.hits(),
            Door::Device(keeper) => keeper.counters().hits,
        }
    }

    /// What it is and did. `now_ms` is in milliseconds since the epoch.
    pub fn figures(&self, now_ms: u64) -> AcceleratorFigures {
        let counts = &self.counts;
        // Before the hits, of which they are a part.
        let credited = counts.credited.load(Relaxed);
        let body = match &self.door {
            Door::Memory(it) => it.figures(now_ms, self.timeline.ns(now_ms)),
            Door::Device(keeper) => figures_of(keeper, now_ms),
        };
        AcceleratorFigures {
            offers_taken: counts.offers_taken.load(Relaxed),
            offers_refused: counts.offers_refused.load(Relaxed),
            retracts: counts.retracts.load(Relaxed),
            refreshes: counts.refreshes.load(Relaxed),
            evicted: counts.evicted.load(Relaxed),
            quarantines: counts.quarantines.load(Relaxed),
            credited,
            prices: lock(&self.meter).prices(),
            ..body
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

impl Shared {
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

    /// The body's part of the figures.
    fn figures(&self, now_ms: u64, now_ns: u64) -> AcceleratorFigures {
        let slots = self.guard.memory().slots();
        let event = |&tally: &Tally| Passed {
            name: tally.name(),
            count: self.count(tally),
        };
        AcceleratorFigures {
            slots: slots.len(),
            live: self.guard.live(now_ns),
            hits: self.hits(),
            events: Tally::all().iter().map(event).collect(),
            quarantined: self.controller.quarantined(now_ms),
            paused: self.guard.pauses().map(Pause::name).collect(),
            ..AcceleratorFigures::default()
        }
    }
}

/// A device's part of the figures. It answers binary requests alone, and does not say why it passes
/// others on.
fn figures_of(keeper: &Keeper, now_ms: u64) -> AcceleratorFigures {
    let counters = keeper.counters();
    let event = |&tally: &Tally| Passed {
        name: tally.name(),
        count: match tally {
            Tally::HitBinary => counters.hits,
            Tally::Miss => counters.misses,
            _ => 0,
        },
    };
    AcceleratorFigures {
        slots: keeper.slots(),
        live: keeper.live(),
        hits: counters.hits,
        events: Tally::all().iter().map(event).collect(),
        quarantined: keeper.quarantined(now_ms),
        paused: keeper.pauses().into_iter().map(Pause::name).collect(),
        device: Some(counters),
        ..AcceleratorFigures::default()
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("Accelerator");
        match &self.door {
            Door::Memory(it) => out.field(&it.guard.memory()),
            Door::Device(keeper) => out.field(keeper),
        };
        out.finish()
    }
}
