//! The engine proper: a batch goes through the pipeline, each job is executed on its partition, and
//! the protocol that it came by writes its outcome into its buffer.
//!
//! | file | idea |
//! | --- | --- |
//! | `replies` | the replies of a batch, and the buffers that take no more of them |
//! | `request` | one request, by the way that its verb takes |
//! | `read` | `get`: by the owner, or beside it |
//! | `store` | `set` and its conditions, `append`, `prepend` |
//! | `large` | stores of large values, which are copied before the lock is taken |
//! | `list` | all items, some at a time |
//! | `restore` | items from elsewhere |
//! | `change` | `delete`, `touch`, `gat` |
//! | `count` | `incr`, `decr` |
//! | `write` | stores, lifetimes and numbers of other protocols than memcached's |
//! | `edit` | changes of a part of a value |
//! | `equal` | changes of an item that has a certain value |
//! | `meta` | the meta commands, but for an `mg` that only reads |
//! | `absence` | reads that find nothing, counted by why |
//! | `mutate` | how an observer learns of changes |
//! | `view` | an item as replies show it |

mod absence;
mod change;
mod count;
mod edit;
mod equal;
mod large;
mod list;
mod meta;
mod mutate;
mod read;
mod replies;
mod request;
mod restore;
mod store;
mod view;
mod write;

use crate::flush::FlushClock;
use crate::job::{
    Announced, Arrival, Arrived, Begun, Done, Engine, Figures, Headway, Job, ListCursor, Listed,
    Status, SweepCursor, Upload, Visit, Visited,
};
use crate::lent::LentParts;
use crate::observer::{ChangeObserver, Unobserved};
use crate::pipeline::{Stages, staged};
use crate::tally::LiveTally;
use crate::{Partitions, TableStats};
use glimmer_base::limits::BATCH_MAX;
use glimmer_base::sync::{AtomicU64, Ordering};
use glimmer_base::{Keyhash, Moment};
use glimmer_dispatch::Layout;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::{Outcome, Refusal, Request, Verb};
use glimmer_store::access::Access;
use glimmer_store::batches::{Batch, Participant};
use glimmer_store::evict::Learned;
use glimmer_store::groups::GroupError;
use glimmer_store::heap::{History, Item};
use glimmer_store::removals::Tap;
use glimmer_store::table::{LentValue, Table, TableFigures, TableWriter};
use replies::Replies;
use std::ops::Range;
use std::sync::Arc;

/// One worker's engine.
pub struct Executor<T: Table, O: ChangeObserver = Unobserved> {
    partitions: Partitions<T>,
    participant: Participant,
    flushes: Arc<FlushClock>,
    tally: Arc<LiveTally>,
    figures: Arc<WorkerFigures>,
    uniques: Uniques,
    tap: Arc<Tap<O>>,
    /// Requests until the observer is told of one as a sample.
    sample_in: u32,
    /// Which reply buffers of a batch have come to a halt. Kept, so that a batch fills no more of
    /// it than it has buffers.
    halted: [Option<Status>; BATCH_MAX],
}

/// Whether items have CAS uniques.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniques {
    /// Every item has one.
    Kept,
    /// All are zero, which no client can name (memcached's `-C`).
    Zero,
}

/// What a job is executed with.
struct Context<'a> {
    /// What reads beside writers are a part of, where there are any.
    batch: Option<Batch<'a>>,
    now: Moment,
    /// What the observer returned before the next field was loaded.
    epoch: u64,
    /// Flushes that are due.
    flushes: u64,
    tally: &'a LiveTally,
    uniques: Uniques,
    lent: &'a mut LentParts,
    /// Bytes of the value that the job has read so far.
    read_bytes: u32,
}

impl<T: Table, O: ChangeObserver> Executor<T, O> {
    /// An engine over one worker's handles.
    pub fn new(
        partitions: Partitions<T>,
        participant: Participant,
        flushes: Arc<FlushClock>,
        uniques: Uniques,
        tap: Arc<Tap<O>>,
    ) -> Self {
        let tally = Arc::new(LiveTally::default());
        let figures = Arc::new(WorkerFigures {
            tally: tally.clone(),
            hits_shown: AtomicU64::default(),
            partitions: partitions.figures(),
            flushes: flushes.clone(),
        });
        Executor {
            partitions,
            participant,
            flushes,
            tally,
            figures,
            uniques,
            tap,
            sample_in: 1,
            halted: [None; BATCH_MAX],
        }
    }
}

impl<T: Table, O: ChangeObserver> Executor<T, O> {
    /// Tells the observer of a request of the batch, if one is to be sampled.
    #[inline(always)]
    fn sample(&mut self, now: Moment, jobs: &[Job<'_>], done: &[Done]) {
        let requests = jobs.len() as u32;
        match self.sample_in > requests {
            true => self.sample_in -= requests,
            false if O::SEES_REQUESTS && requests > 0 => self.take_sample(now, jobs, done),
            false => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn take_sample(&mut self, now: Moment, jobs: &[Job<'_>], done: &[Done]) {
        let at = self.sample_in as usize - 1;
        let next = self.tap.observer().sample(now, &jobs[at], &done[at]);
        let rest = (jobs.len() - 1 - at) as u32;
        // A batch is sampled once.
        self.sample_in = next.saturating_sub(rest).max(1);
    }

    /// Tells the observer how many reads of a batch were executed.
    #[cold]
    #[inline(never)]
    fn count_reads(&self, jobs: &[Job<'_>], done: &[Done]) {
        let executed = jobs.iter().zip(done).filter(|(job, done)| {
            done.status == Status::Done && matches!(job.request.verb, Verb::Get)
        });
        self.tap.observer().count_reads(executed.count() as u64);
    }

    /// The number of flushes that are due.
    fn due(&self, now: Moment) -> u64 {
        self.epoch_and_flushes(now).1
    }

    /// The observer's epoch, and after that the number of flushes that are due.
    #[cold]
    #[inline(never)]
    fn epoch_and_flushes(&self, now: Moment) -> (u64, u64) {
        if !O::SEES_REQUESTS || !self.tap.is_open() {
            return (0, self.flushes.due(now));
        }
        let observer = self.tap.observer();
        let epoch = observer.epoch();
        let flushes = self
            .flushes
            .due_around(now, |come_due| observer.flush(come_due));
        (epoch, flushes)
    }

    /// Divides the engine into its handles to the partitions and the rest.
    pub(crate) fn divide(self) -> (Partitions<T>, Rest<O>) {
        let rest = Rest {
            participant: self.participant,
            flushes: self.flushes,
            tally: self.tally,
            figures: self.figures,
            uniques: self.uniques,
            tap: self.tap,
        };
        (self.partitions, rest)
    }

    /// The engine with these handles. Its figures are those of the engine that the rest is of.
    pub(crate) fn unite(partitions: Partitions<T>, rest: Rest<O>) -> Self {
        Executor {
            partitions,
            participant: rest.participant,
            flushes: rest.flushes,
            tally: rest.tally,
            figures: rest.figures,
            uniques: rest.uniques,
            tap: rest.tap,
            sample_in: 1,
            halted: [None; BATCH_MAX],
        }
    }
}

/// An engine without its handles to the partitions.
pub(crate) struct Rest<O: ChangeObserver> {
    participant: Participant,
    flushes: Arc<FlushClock>,
    tally: Arc<LiveTally>,
    figures: Arc<WorkerFigures>,
    uniques: Uniques,
    tap: Arc<Tap<O>>,
}

impl<T: Table, O: ChangeObserver> Engine for Executor<T, O> {
    fn layout(&self) -> Layout {
        self.partitions.layout()
    }

    fn run_with(
        &mut self,
        now: Moment,
        jobs: &[Job<'_>],
        outs: &mut [Vec<u8>],
        lent: &mut LentParts,
        done: &mut [Done],
    ) {
        assert!(jobs.len() <= BATCH_MAX && jobs.len() == done.len());
        let is_told = O::SEES_REQUESTS && self.tap.is_open();
        let (epoch, flushes) = match is_told {
            true => self.epoch_and_flushes(now),
            false => (0, self.flushes.due(now)),
        };
        let mut context = Context {
            batch: T::Access::SHARED_READS.then(|| self.participant.begin()),
            now,
            epoch,
            flushes,
            tally: &self.tally,
            uniques: self.uniques,
            lent,
            read_bytes: 0,
        };
        let halted = &mut self.halted[..outs.len().min(BATCH_MAX)];
        halted.fill(None);
        let mut replies = Replies::new(outs, done, halted, &self.tap, &mut context);
        let tells_reads = is_told && self.tap.tells_reads();
        let counts_reads = tells_reads && self.tap.observer().counts_reads();
        if tells_reads && !counts_reads {
            for (nth, job) in jobs.iter().enumerate() {
                replies.add_seen(&mut self.partitions, nth, job);
            }
        } else {
            let keyhash = |job: &Job<'_>| job.keyhash;
            staged(
                &mut self.partitions,
                jobs,
                Stages::ALL,
                keyhash,
                &mut replies,
            );
        }
        drop(context);
        if counts_reads {
            self.count_reads(jobs, done);
        }
        self.sample(now, jobs, done);
    }

    fn flush(&mut self, now: Moment, at_ms: u64) {
        let set = || self.flushes.set(now, at_ms);
        match O::SEES_REQUESTS && self.tap.is_open() {
            true => self.tap.observer().flush(set),
            false => drop(set()),
        }
    }

    fn invalidate(&mut self, _now: Moment, group: &[u8]) -> Result<(), GroupError> {
        let mut done = Err(GroupError::NoGroups);
        let mut invalidate = || {
            done = self.flushes.invalidate(group);
            self.flushes.pending_ms()
        };
        match O::SEES_REQUESTS && self.tap.is_open() {
            // To what the observer keeps of items it is a flush.
            true => self.tap.observer().flush(invalidate),
            false => drop(invalidate()),
        }
        done
    }

    fn sweep(&mut self, now: Moment, cursor: &mut SweepCursor) -> Option<u64> {
        let flushes = self.due(now);
        list::sweep(&mut self.partitions, (now, flushes), &self.flushes, cursor)
    }

    fn groups_unswept(&self) -> u64 {
        self.flushes.groups().map_or(0, |groups| groups.known())
    }

    fn list(
        &mut self,
        now: Moment,
        cursor: &mut ListCursor,
        chains: usize,
        visit: &mut dyn FnMut(&Listed<'_>),
    ) -> bool {
        let flushes = self.due(now);
        list::list(&mut self.partitions, now, flushes, cursor, chains, visit)
    }

    fn expire(&mut self, now: Moment, cursor: &mut ListCursor, chains: usize) -> Option<u64> {
        let flushes = self.due(now);
        list::expire(&mut self.partitions, now, flushes, cursor, chains)
    }

    fn visit(
        &mut self,
        now: Moment,
        cursor: &mut ListCursor,
        visit: &mut dyn FnMut(Visited<'_>),
    ) -> Visit {
        let flushes = self.due(now);
        list::visit(&mut self.partitions, now, flushes, cursor, visit)
    }

    fn end_visits(&mut self, now: Moment, cursor: &ListCursor) {
        let flushes = self.due(now);
        list::end_visits(&mut self.partitions, flushes, cursor);
    }

    fn lend(
        &mut self,
        now: Moment,
        keyhash: Keyhash,
        key: &[u8],
        take: &mut dyn FnMut(&Item<'_>),
    ) -> Option<Box<dyn LentValue>> {
        let flushes = self.due(now);
        let place = self.partitions.prefetch_bucket(keyhash, false);
        let owner = self.partitions.owner(place)?;
        let lent = owner.lend(keyhash, key, now, flushes, |item| take(item));
        lent.map(|((), value)| value)
    }

    fn restore(
        &mut self,
        now: Moment,
        arrivals: &[Arrival<'_>],
        each: &mut dyn FnMut(usize, Arrived),
    ) {
        let flushes = self.due(now);
        let at = (now, flushes);
        restore::restore(&mut self.partitions, at, self.uniques, arrivals, each);
    }

    fn highest_cas(&mut self) -> u64 {
        restore::highest_cas(&mut self.partitions, self.flushes.done())
    }

    fn draw_cas_above(&mut self, cas: u64) {
        restore::draw_cas_above(&mut self.partitions, self.flushes.done(), cas);
    }

    fn look(
        &mut self,
        now: Moment,
        keyhash: Keyhash,
        key: &[u8],
        visit: &mut dyn FnMut(u64, Option<Item<'_>>),
    ) -> bool {
        let (epoch, flushes) = self.epoch_and_flushes(now);
        let place = self.partitions.prefetch_bucket(keyhash, false);
        let Some(owner) = self.partitions.owner(place) else {
            return false;
        };
        let writer = owner.enter_at(keyhash, place.home, flushes);
        visit(epoch, writer.find(keyhash, key, now));
        true
    }

    fn begin_upload(&mut self, announced: &Announced<'_>, headway: &mut Headway) -> Begun {
        let flushes = self.due(announced.now);
        let place = self.partitions.prefetch_bucket(announced.keyhash, false);
        match self.partitions.owner(place) {
            Some(owner) => owner.begin_upload(place.home, flushes, announced, headway),
            None => Begun::Never,
        }
    }

    fn store_upload(
        &mut self,
        now: Moment,
        job: &Job<'_>,
        upload: Upload,
        out: &mut Vec<u8>,
    ) -> Result<Done, Upload> {
        let place = self.partitions.prefetch_bucket(job.keyhash, false);
        if self.partitions.owner(place).is_none() {
            return Err(upload);
        }
        let value_bytes = upload.bytes() as u32;
        let (epoch, flushes) = self.epoch_and_flushes(now);
        let mut context = Context {
            batch: T::Access::SHARED_READS.then(|| self.participant.begin()),
            now,
            epoch,
            flushes,
            tally: &self.tally,
            uniques: self.uniques,
            lent: &mut LentParts::default(),
            read_bytes: 0,
        };
        let at = (&mut self.partitions, place);
        let kind = request::store_upload(at, &self.tap, &mut context, (job, upload), out);
        drop(context);
        let done = Done {
            status: Status::Done,
            kind: Some(kind),
            end: out.len(),
            read_bytes: value_bytes,
        };
        self.sample(now, &[*job], &[done]);
        Ok(done)
    }

    fn credit(&mut self, now: Moment, keyhash: Keyhash, key: &[u8]) {
        let flushes = self.due(now);
        let place = self.partitions.prefetch_bucket(keyhash, false);
        if let Some(owner) = self.partitions.owner(place) {
            let mut writer = owner.enter_at(keyhash, place.home, flushes);
            writer.read(keyhash, key, now, |_| ());
        }
    }

    fn discount(&mut self, hits: u64) {
        let counted = self.tally.get_hits.get();
        self.tally.get_hits.set(counted.saturating_sub(hits));
    }

    fn figures(&self) -> Arc<dyn Figures> {
        self.figures.clone()
    }

    fn flush_pending_ms(&self) -> Option<u64> {
        self.flushes.pending_ms()
    }

    fn save(&mut self, now: Moment) {
        let flushes = self.due(now);
        for partition in 0..self.partitions.count() {
            if self.partitions.is_owned(partition)
                && let Some(table) = self.partitions.writable(partition)
            {
                table.save(flushes);
            }
        }
    }
}

/// Appends the reply to a request that shows no item. Of verbs that are not the most frequent: it
/// is compiled once.
#[inline(never)]
fn say(request: &Request<'_>, outcome: Outcome, out: &mut Vec<u8>) -> OutcomeKind {
    request.emit(outcome, out);
    outcome.kind()
}

impl Context<'_> {
    /// Counts a value or a time that the store has not taken.
    #[cold]
    fn refuse(&self, reason: Refusal) -> Outcome {
        match reason {
            Refusal::TooLarge => {
                self.tally.store_too_large.add(1);
                Outcome::TooLarge
            }
            Refusal::NoMemory => {
                self.tally.store_no_memory.add(1);
                Outcome::OutOfMemory
            }
        }
    }

    /// The CAS unique that an item gets which is to get this one; none leaves it to the table.
    /// Asked before the item is stored.
    #[inline(always)]
    fn unique(&self, wanted: Option<u64>) -> Option<u64> {
        match self.uniques {
            Uniques::Kept => wanted,
            Uniques::Zero => Some(0),
        }
    }

    /// The history of an item that is about to be stored.
    #[inline(always)]
    fn history(&self, wanted: History) -> History {
        History {
            cas: self.unique(wanted.cas),
            ..wanted
        }
    }
}

struct WorkerFigures {
    tally: Arc<LiveTally>,
    /// The most hits that were ever shown.
    hits_shown: AtomicU64,
    partitions: Vec<Box<dyn TableFigures>>,
    flushes: Arc<FlushClock>,
}

impl Figures for WorkerFigures {
    fn table(&self) -> TableStats {
        let mut stats = TableStats {
            requests: self.tally.counts(),
            ..TableStats::default()
        };
        // A hit that was shown may have been discounted since. The figure waits for others to make
        // up for it, because a counter that falls has begun again to those who read it.
        let hits = &mut stats.requests.get_hits;
        *hits = (*hits).max(self.hits_shown.fetch_max(*hits, Ordering::Relaxed));
        for partition in &self.partitions {
            stats.store += partition.counts(self.flushes.done());
            stats.ages += partition.ages();
            stats.log_bytes += partition.heap_bytes();
            stats.index_bytes += partition.index_bytes();
            stats.uploads += partition.uploads();
        }
        stats
    }

    fn learned(&self) -> Option<Learned> {
        self.partitions.first()?.learned()
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        let partitions = self.partitions.iter();
        partitions
            .flat_map(|partition| partition.addresses())
            .collect()
    }
}
