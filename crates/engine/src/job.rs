//! The contract between a worker and the engine it drives.

use glimmer_base::{Keyhash, Moment};
use glimmer_proto::Request;

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
    /// Not executed: its reply buffer holds [`glimmer_base::limits::REPLY_BYTES_HIGH`] bytes or more. Every later job of the same buffer is
    /// `NoRoom` too. To be offered again when the buffer has drained.
    NoRoom,
    /// Not executed: an optimistic read met too many writers, or a flush its owner has yet to carry out, and has to go to the owner of its
    /// partition. Every later job of the same buffer is `Skipped`.
    AskOwner,
    /// Not executed, because an earlier job of the same buffer was not and replies keep their order.
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

/// One worker's way to the store: it runs batches. Dynamic, because the call is paid once per burst; inside, access mode and
/// eviction rule are types.
pub trait Engine: Send {
    /// Where a request for this key belongs. `is_read` is [`glimmer_proto::Verb::is_read`].
    fn place(&self, keyhash: Keyhash, is_read: bool) -> Place;

    /// The worker that owns the key's partition (this worker itself, where any may write).
    fn owner(&self, keyhash: Keyhash) -> usize;

    /// Executes up to [`glimmer_base::limits::BATCH_MAX`] jobs in order, all of which are placed `Here`, and appends each reply to `outs[job.out]`.
    /// Writes one [`Done`] per job into `done`, which is as long as `jobs`.
    ///
    /// A reply already in a buffer is never touched. Requests of other workers that have crossed over are run by the same call.
    fn run(&mut self, now: Moment, jobs: &[Job<'_>], outs: &mut [Vec<u8>], done: &mut [Done]);

    /// Invalidates everything stored before `at_ms` (milliseconds since the epoch; now or earlier: at once). Takes effect on every partition
    /// of the store, whoever owns it, before any request is executed that arrives after this call returns.
    fn flush(&mut self, now: Moment, at_ms: u64);

    /// This worker's share of the figures: what its own requests did, and the state of the partitions it is responsible for. Sum over the workers
    /// for the server's figures. Cheap enough to be called once a second; may be called from another thread through what it returns.
    fn stats(&self) -> std::sync::Arc<dyn Fn() -> TableStats + Send + Sync>;
}

/// Figures of the store, cumulative since start or the last reset unless they are states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Keys read by `get` and `gets` and `gat`, found or not.
    pub get_hits: u64,
    /// Reads that found nothing.
    pub get_misses: u64,
    /// Reads whose item had expired (also counted as misses).
    pub get_expired: u64,
    /// Stores asked for, of every mode.
    pub cmd_set: u64,
    /// Touches asked for (`touch` and `gat`).
    pub cmd_touch: u64,
    /// Touches that found their item.
    pub touch_hits: u64,
    /// Touches that did not.
    pub touch_misses: u64,
    /// Deletes that found their item.
    pub delete_hits: u64,
    /// Deletes that did not.
    pub delete_misses: u64,
    /// Increments that found their item.
    pub incr_hits: u64,
    /// Increments that did not.
    pub incr_misses: u64,
    /// Decrements that found their item.
    pub decr_hits: u64,
    /// Decrements that did not.
    pub decr_misses: u64,
    /// `cas` on a key without an item.
    pub cas_misses: u64,
    /// `cas` that stored.
    pub cas_hits: u64,
    /// `cas` whose unique was out of date.
    pub cas_badval: u64,
    /// Optimistic reads that had to start over.
    pub optimistic_retries: u64,
    /// State: items that are reachable.
    pub curr_items: u64,
    /// Items stored since start.
    pub total_items: u64,
    /// State: bytes of the log that reachable items take, headers included.
    pub bytes: u64,
    /// Live items pushed out by the head of the log.
    pub evictions: u64,
    /// Items that had expired when the head of the log reached them.
    pub expired_reclaimed: u64,
    /// Live items lost because their index bucket was full.
    pub index_evictions: u64,
    /// Items that the head of the log put back at the tail, because the eviction rule said so.
    pub reinsertions: u64,
    /// State: index entries in spare buckets.
    pub index_spare_buckets_used: u64,
    /// Values written over their old ones in place.
    pub in_place_updates: u64,
    /// State: capacity of the log in bytes.
    pub log_bytes: u64,
    /// State: size of the index in bytes.
    pub index_bytes: u64,
    /// State: bytes of log and index on hugetlb pages.
    pub hugetlb_bytes: u64,
    /// State: bytes of log and index on transparent huge pages, as the kernel reports them.
    pub transparent_huge_bytes: u64,
}
