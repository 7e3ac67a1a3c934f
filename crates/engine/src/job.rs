//! The contract between a worker and the engine it drives.

use glimmer_base::{Keyhash, Moment};
use glimmer_proto::Request;
pub use glimmer_store::memory::PageReport;
use std::sync::Arc;

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The key's hash under the server's seed.
    pub keyhash: Keyhash,
    /// What to do.
    pub request: Request<'a>,
    /// Which of the batch's reply buffers the answer is appended to.
    pub out: u32,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Executed; the reply (possibly empty) is in the buffer.
    Done,
    /// Not executed: its reply buffer holds [`glimmer_base::limits::REPLY_BYTES_HIGH`] bytes or
    /// more. Every later job of the same buffer is `NoRoom` too. To be offered again when the
    /// buffer has drained.
    NoRoom,
    /// Not executed: an optimistic read met too many writers, or a flush its owner has yet to carry
    /// out, and has to go to the owner of its partition. Every later job of the same buffer is
    /// `Skipped`.
    AskOwner,
    /// Not executed, because an earlier job of the same buffer was not and replies keep their
    /// order.
    Skipped,
}

/// A job's status, and where its reply buffer ended after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What became of the job.
    pub status: Status,
    /// Length of the job's reply buffer after the job.
    pub end: usize,
}

/// Where a request can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this worker.
    Here,
    /// On the worker that owns the key's partition.
    Owner(usize),
}

/// One worker's way to the store: it runs batches. Dynamic, because the call is paid once per
/// burst; inside, access mode and eviction rule are types.
pub trait Engine: Send {
    /// Where a request for this key belongs. `is_read` is [`glimmer_proto::Verb::is_read`].
    fn place(&self, keyhash: Keyhash, is_read: bool) -> Place;

    /// The worker that owns the key's partition (this worker itself, where any may write).
    fn owner(&self, keyhash: Keyhash) -> usize;

    /// Executes up to [`glimmer_base::limits::BATCH_MAX`] jobs in order, all of which are placed
    /// `Here`, and appends each reply to `outs[job.out]`. Writes one [`Done`] per job into
    /// `done`, which is as long as `jobs`.
    ///
    /// A reply already in a buffer is never touched. Requests of other workers that have crossed
    /// over are run by the same call.
    fn run(&mut self, now: Moment, jobs: &[Job<'_>], outs: &mut [Vec<u8>], done: &mut [Done]);

    /// Invalidates everything stored before `at_ms` (milliseconds since the epoch; now or earlier:
    /// at once). Takes effect on every partition of the store, whoever owns it, before any
    /// request is executed that arrives after this call returns.
    fn flush(&mut self, now: Moment, at_ms: u64);

    /// A way to this worker's share of the figures, from any thread: what its own requests did, and
    /// the state of the partitions that it owns. Summed over the workers they are the server's.
    fn figures(&self) -> Arc<dyn Figures>;
}

/// One worker's share of the figures, readable from any thread.
pub trait Figures: Send + Sync {
    /// The figures now. Costs some hundred loads per partition.
    fn table(&self) -> TableStats;

    /// The pages that logs and indexes really lie on, by the kernel's account. Reads
    /// `/proc/self/smaps`, which can take milliseconds: not for every second.
    fn pages(&self) -> PageReport;
}

macro_rules! table_stats {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Figures of the store, cumulative since start unless they are states.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct TableStats {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl core::ops::AddAssign for TableStats {
            fn add_assign(&mut self, other: Self) {
                $(self.$name = self.$name.wrapping_add(other.$name);)+
            }
        }
    };
}

table_stats! {
    /// Keys read by `get` and `gets` and `gat`, found or not.
    get_hits,
    /// Reads that found nothing.
    get_misses,
    /// Stores asked for, of every mode.
    cmd_set,
    /// Touches asked for (`touch` and `gat`).
    cmd_touch,
    /// Touches that found their item.
    touch_hits,
    /// Touches that did not.
    touch_misses,
    /// Deletes that found their item.
    delete_hits,
    /// Deletes that did not.
    delete_misses,
    /// Increments that found their item.
    incr_hits,
    /// Increments that did not.
    incr_misses,
    /// Decrements that found their item.
    decr_hits,
    /// Decrements that did not.
    decr_misses,
    /// `cas` on a key without an item.
    cas_misses,
    /// `cas` that stored.
    cas_hits,
    /// `cas` whose unique was out of date.
    cas_badval,
    /// Optimistic reads that met too many writers and went to the writing side.
    optimistic_retries,
    /// State: items that are reachable.
    curr_items,
    /// Items stored since start.
    total_items,
    /// State: bytes of the log that reachable items take, headers included.
    bytes,
    /// Live items pushed out by the head of the log.
    evictions,
    /// Items that had expired when the head of the log reached them.
    expired_reclaimed,
    /// Live items lost because their index bucket was full.
    index_evictions,
    /// Items that the head of the log put back at the tail, because the eviction rule said so.
    reinsertions,
    /// State: spare buckets of the index in use.
    index_spare_buckets_used,
    /// Stale index entries that the incremental scan removed.
    stale_entries_removed,
    /// Values written over their old ones in place.
    in_place_updates,
    /// State: capacity of the log in bytes.
    log_bytes,
    /// State: size of the index in bytes.
    index_bytes,
}
