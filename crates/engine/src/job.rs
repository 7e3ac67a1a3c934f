//! The contract between a worker and the engine it drives.

use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_dispatch::Layout;
use glimmer_proto::Request;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::evict::Learned;
pub use glimmer_store::groups::GroupError;
use glimmer_store::heap::{Item, NewItem};
pub use glimmer_store::memory::PageReport;
use glimmer_store::table::LentValue;
pub use glimmer_store::table::{Ages, Announced, Begun, Counts, Headway, Upload, UploadFigures};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::lent::LentParts;
pub use crate::tally::Tally;

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The key's hash under the server's seed.
    pub keyhash: Keyhash,
    /// What to do.
    pub request: Request<'a>,
    /// Which of the batch's reply buffers the answer is appended to.
    pub out: u32,
    /// A value of more bytes is not read: [`Status::Elsewhere`].
    pub size_max: u32,
    /// A value of more bytes is not copied. If the table does not lend it, it is not read either.
    pub copy_max: u32,
    /// The client's number, which observers are told: its descriptor, or 0 if it has none.
    pub client: i32,
}

impl Job<'_> {
    /// A limit of a read that takes whatever it finds.
    pub const ANY_SIZE: u32 = u32::MAX;
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Executed; the reply (possibly empty) is in the buffer.
    Done,
    /// Not executed: its reply buffer holds [`glimmer_base::limits::REPLY_BYTES_HIGH`] bytes or
    /// more, with what is lent to it. Every later job of the same buffer is `NoRoom` or `Skipped`.
    /// To be offered again when the buffer has drained.
    NoRoom,
    /// Not executed: an optimistic read met too many writers, or a flush its owner has yet to carry
    /// out, and has to go to the owner of its partition. Every later job of the same buffer is
    /// `Skipped`.
    AskOwner,
    /// Not executed: the value that the job reads has this many bytes, which is more than
    /// [`Job::size_max`], or more than [`Job::copy_max`] and not lent. Nothing was copied, and the
    /// item has not changed. Every later job of the same buffer is `Skipped`.
    Elsewhere {
        /// Bytes of the value.
        bytes: u32,
    },
    /// Not executed, because an earlier job of the same buffer was not and replies keep their
    /// order.
    Skipped,
}

/// A job's status, and where its reply buffer ended after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What became of the job.
    pub status: Status,
    /// Which outcome it had, if it was executed.
    pub kind: Option<OutcomeKind>,
    /// Length of the job's reply buffer after the job.
    pub end: usize,
    /// Bytes of the value that it has read, or that it found in place; 0 if neither.
    pub read_bytes: u32,
}

impl Done {
    /// Not executed.
    pub const SKIPPED: Done = Done {
        status: Status::Skipped,
        kind: None,
        end: 0,
        read_bytes: 0,
    };
}

/// Where a walk over the items stands.
#[derive(Clone, Copy, Debug)]
pub struct ListCursor {
    scope: ListScope,
    partition: usize,
    chain: usize,
}

/// Where a [sweep](Engine::sweep) stands. The default is its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepCursor {
    pub(crate) partition: usize,
    /// The chain that comes next, unless the partition has yet to be begun.
    pub(crate) chain: Option<usize>,
    /// The latest event when the partition was begun.
    pub(crate) event: u64,
    /// What the table calls the sweep.
    pub(crate) name: u64,
}

/// Which partitions a walk is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListScope {
    /// Those that the worker owns. Every partition has one owner, also where all may write.
    Owned,
    /// Those that the worker may write.
    Writable,
}

impl ListCursor {
    /// The beginning.
    pub fn new(scope: ListScope) -> ListCursor {
        ListCursor {
            scope,
            partition: 0,
            chain: 0,
        }
    }

    /// A place that [`ListCursor::place`] has named, or one that there is not, at which a walk goes
    /// on with the next partition.
    pub fn at_place(scope: ListScope, (partition, chain): (usize, usize)) -> ListCursor {
        ListCursor {
            scope,
            partition,
            chain,
        }
    }

    /// The partition and the chain that come next.
    pub fn place(&self) -> (usize, usize) {
        (self.partition, self.chain)
    }

    /// The partitions in scope.
    pub(crate) fn scope(&self) -> ListScope {
        self.scope
    }

    /// Goes on with this chain, or with the next partition.
    pub(crate) fn advance(&mut self, chain: Option<usize>) {
        match chain {
            Some(chain) => self.chain = chain,
            None => {
                self.partition += 1;
                self.chain = 0;
            }
        }
    }
}

/// What a walk shows of an item.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// When it expires.
    pub expiry: Expiry,
    /// When it was last accessed, in seconds since the server's epoch; 0 if that was not noted.
    pub accessed_s: u32,
    /// Its CAS unique.
    pub cas: u64,
    /// Whether a client is known to have fetched it.
    pub is_fetched: bool,
    /// Whether its key came in base64.
    pub is_binary_key: bool,
    /// The client's flags.
    pub flags: u32,
    /// Bytes of its value.
    pub value_bytes: usize,
    /// Bytes that it takes in the heap.
    pub heap_bytes: usize,
}

/// What a walk that copies items meets.
pub enum Visited<'a> {
    /// An item, and whether it is known to have been read by reads that left no mark on it.
    Item(&'a Item<'a>, bool),
    /// The key of an item that has been moved past the walk.
    Moved(&'a [u8]),
}

/// What follows a step of such a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The next step.
    Continues,
    /// The next step, which begins again with the partition: too many items were moved past the
    /// walk.
    Restarts,
    /// Nothing: it has come to its end.
    Over,
}

/// An item that was in another server, or in this one before it was started.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The key's hash under the server's seed.
    pub keyhash: Keyhash,
    /// The item, with the CAS unique that it had; `None` if it had none.
    pub item: NewItem<'a>,
}

/// What has become of an [`Arrival`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The item is there.
    Stored,
    /// Its key has an item already.
    Present,
    /// It is larger than this server's limit.
    TooLarge,
    /// There is no room, and nothing is evicted.
    NoRoom,
    /// This worker may not write its partition.
    Elsewhere,
}

/// One worker's way to the store: it runs batches. Dynamic, because the call is paid once per
/// burst; inside, access mode and eviction rule are types.
pub trait Engine: Any + Send {
    /// How the store is spread, the same for every worker.
    fn layout(&self) -> Layout;

    /// Executes up to [`glimmer_base::limits::BATCH_MAX`] jobs in order, all of which this worker
    /// may run ([`Layout::may_run`]), and appends each reply to `outs[job.out]`. Writes one
    /// [`Done`] per job into `done`, which is as long as `jobs`.
    ///
    /// A reply already in a buffer is never touched. Requests of other workers that have crossed
    /// over are run by the same call.
    fn run(&mut self, now: Moment, jobs: &[Job<'_>], outs: &mut [Vec<u8>], done: &mut [Done]) {
        self.run_with(now, jobs, outs, &mut LentParts::default(), done);
    }

    /// [`run`](Self::run), where values of at least
    /// [`glimmer_base::limits::LENT_BYTES_MIN`] that `get` shows may be lent. The buffer then
    /// holds all of the reply but the part that is lent.
    fn run_with(
        &mut self,
        now: Moment,
        jobs: &[Job<'_>],
        outs: &mut [Vec<u8>],
        lent: &mut LentParts,
        done: &mut [Done],
    );

    /// Writes down what only the writers of this worker's partitions know, if the store lies in a
    /// file. Only once no worker changes the store any more. The flushes that are due at `now` are
    /// carried out first, so that the engine may be read at that time afterwards.
    fn save(&mut self, _now: Moment) {}

    /// When the flush that is pending is due, in milliseconds since the epoch.
    fn flush_pending_ms(&self) -> Option<u64> {
        None
    }

    /// Begins to receive a value where it will lie, before any of it has arrived. This worker may
    /// write the key's partition, or is told [`Begun::Never`]. The headway bounds how many items
    /// leave for it in this turn.
    fn begin_upload(&mut self, _announced: &Announced<'_>, _headway: &mut Headway) -> Begun {
        Begun::Never
    }

    /// Executes a job whose value has been received where it lies, and which is empty in the job.
    /// Appends the reply to `out`.
    ///
    /// # Errors
    ///
    /// The upload, if this worker may not write the key's partition.
    fn store_upload(
        &mut self,
        _now: Moment,
        _job: &Job<'_>,
        upload: Upload,
        _out: &mut Vec<u8>,
    ) -> Result<Done, Upload> {
        Err(upload)
    }

    /// Invalidates everything stored before `at_ms` (milliseconds since the epoch; now or earlier:
    /// at once). Takes effect on every partition of the store, of any owner, before any
    /// request is executed that arrives after this call returns.
    fn flush(&mut self, now: Moment, at_ms: u64);

    /// Invalidates every item of a group of keys, the one with this name. Takes effect as
    /// [`flush`](Self::flush) does.
    ///
    /// # Errors
    ///
    /// [`GroupError`]: nothing has changed.
    fn invalidate(&mut self, _now: Moment, _group: &[u8]) -> Result<(), GroupError> {
        Err(GroupError::NoGroups)
    }

    /// Takes a step of a sweep, which removes the items of groups that were invalidated from the
    /// partitions that the worker owns: visits a chain. Returns the number of items removed, or
    /// none if there is nothing to be swept, or the sweep has come to its end.
    fn sweep(&mut self, _now: Moment, _cursor: &mut SweepCursor) -> Option<u64> {
        None
    }

    /// Groups that were invalidated and have yet to be swept.
    fn groups_unswept(&self) -> u64 {
        0
    }

    /// Shows `visit` the items of up to `chains` chains of the index, from where `cursor` stands
    /// on, of the partitions in its scope. Returns whether there are more; a chain holds 120 items
    /// at most.
    fn list(
        &mut self,
        now: Moment,
        cursor: &mut ListCursor,
        chains: usize,
        visit: &mut dyn FnMut(&Listed<'_>),
    ) -> bool;

    /// Takes a step of a walk over all items of the partitions that the worker owns, of which there
    /// is one at a time: shows `visit` the items of the chain at which `cursor` stands, each as a
    /// whole, and what the table has moved past the walk. The gate of the partition is held.
    fn visit(
        &mut self,
        _now: Moment,
        _cursor: &mut ListCursor,
        _visit: &mut dyn FnMut(Visited<'_>),
    ) -> Visit {
        Visit::Over
    }

    /// The walk of [`visit`](Self::visit) that stands there does not go on.
    fn end_visits(&mut self, _now: Moment, _cursor: &ListCursor) {}

    /// Lends the value of the key's item, as [`Table::lend`](glimmer_store::table::Table::lend)
    /// does, if this worker may write the partition.
    fn lend(
        &mut self,
        _now: Moment,
        _keyhash: Keyhash,
        _key: &[u8],
        _take: &mut dyn FnMut(&Item<'_>),
    ) -> Option<Box<dyn LentValue>> {
        None
    }

    /// Stores items from elsewhere whose keys have none, and says what has become of each. Only
    /// before requests are served: no observer is told.
    fn restore(
        &mut self,
        _now: Moment,
        _arrivals: &[Arrival<'_>],
        _each: &mut dyn FnMut(usize, Arrived),
    ) {
    }

    /// No CAS unique above this one has been drawn for the partitions that the worker owns, unless
    /// the numbers have begun again.
    fn highest_cas(&mut self) -> u64 {
        0
    }

    /// CAS uniques that are drawn from now on, for the partitions that the worker owns, are above
    /// this one.
    fn draw_cas_above(&mut self, _cas: u64) {}

    /// Removes what has expired from up to `chains` chains of the index, from where `cursor` stands
    /// on, of the partitions in its scope. Returns how many items there were; none when the walk
    /// has come to its end.
    fn expire(&mut self, now: Moment, cursor: &mut ListCursor, chains: usize) -> Option<u64>;

    /// Shows `visit` the key's item, while the gate of its partition is held, with the observer's
    /// [`epoch`](crate::ChangeObserver::epoch) from before. It counts as no read. Returns false
    /// without a call of `visit` if this worker may not write the partition.
    fn look(
        &mut self,
        _now: Moment,
        _keyhash: Keyhash,
        _key: &[u8],
        _visit: &mut dyn FnMut(u64, Option<Item<'_>>),
    ) -> bool {
        false
    }

    /// Others have answered reads of a key, and counted them. The item is read once more, so that
    /// the eviction rule learns of it; that read is not counted. This worker may write the
    /// partition.
    fn credit(&mut self, _now: Moment, _keyhash: Keyhash, _key: &[u8]) {}

    /// This many of the reads that were just executed and found an item are parts of reads that
    /// have been counted, or will be. They are counted no longer.
    fn discount(&mut self, _hits: u64) {}

    /// A way to this worker's share of the figures, from any thread: what its own requests did, and
    /// the state of the partitions that it owns. Summed over the workers they are the server's.
    fn figures(&self) -> Arc<dyn Figures>;
}

/// One worker's share of the figures, readable from any thread.
pub trait Figures: Send + Sync {
    /// The figures now. Costs some hundred loads per partition.
    fn table(&self) -> TableStats;

    /// What has been learned about the eviction rule, if it follows the requests.
    fn learned(&self) -> Option<Learned>;

    /// Where logs and indexes lie in memory, for [`PageReport::of`].
    fn addresses(&self) -> Vec<Range<usize>>;
}

/// Figures of the store, cumulative since start unless they are states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// What requests asked for and came to.
    pub requests: Tally,
    /// What the partitions hold and have given up.
    pub store: Counts,
    /// State: how old the items are.
    pub ages: Ages,
    /// State: capacity of the logs in bytes.
    pub log_bytes: u64,
    /// State: size of the indexes in bytes.
    pub index_bytes: u64,
    /// State: large values that are being received into the tables.
    pub uploads: UploadFigures,
}

impl core::ops::AddAssign for TableStats {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.store += other.store;
        self.ages += other.ages;
        self.log_bytes += other.log_bytes;
        self.index_bytes += other.index_bytes;
        self.uploads += other.uploads;
    }
}
