//! Settings that clients can change while the server runs.

use std::sync::Arc;

use glimmer_base::limits::DISPATCH_CHANGES_MAX;
use glimmer_base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::guard::DumpGuard;
use crate::config::NodeConfig;

/// Settings that clients can change while the server runs, for all workers.
#[derive(Debug)]
pub struct Switches {
    crawler: AtomicBool,
    /// Whether a listing of all items is in progress.
    pub(crate) is_dumping: Arc<AtomicBool>,
    /// Listings and crawls started.
    pub(crate) dumps: AtomicU64,
    /// Crawls requested.
    crawls: AtomicU64,
    /// How often workers were called to walk.
    walk_calls: AtomicU64,
    /// Workers that have yet to finish the last crawl.
    crawling: AtomicUsize,
    /// Whether a client gathers all keys that fit a pattern, or counts by key prefix. It does until
    /// it has taken its reply.
    is_gathering: Arc<AtomicBool>,
    /// When another client last had to wait for that, in milliseconds since the epoch.
    gathering_awaited_ms: AtomicU64,
    /// Whether a report is gathered for a client that takes it as one figure. Its reply is not
    /// begun before.
    pub(crate) is_reporting: Arc<AtomicBool>,
    /// Whether an item that gets another key is on its way from one worker to another.
    pub(crate) is_moving: Arc<AtomicBool>,
    /// When the changes of the plan that clients have asked for so far are far enough apart, in
    /// milliseconds since the epoch.
    plan_change_ms: AtomicU64,
    /// Milliseconds between two changes.
    plan_pause_ms: u64,
    /// Milliseconds by which clients have advanced the clock.
    ahead_ms: AtomicU64,
    /// When the most recent `flush_all` takes effect, in milliseconds since the epoch; 0 if there
    /// was none.
    flush_ms: AtomicU64,
    /// Groups that were invalidated and have yet to be swept, as a worker has seen it last.
    pub(crate) groups_unswept: AtomicU64,
    workers: usize,
}

impl Switches {
    /// The settings at the start.
    pub(crate) fn new(config: &NodeConfig, workers: usize) -> Switches {
        Switches {
            crawler: AtomicBool::new(config.crawler),
            plan_pause_ms: config.dispatch_pause_ms,
            is_dumping: Arc::new(AtomicBool::new(false)),
            dumps: AtomicU64::new(0),
            crawls: AtomicU64::new(0),
            walk_calls: AtomicU64::new(0),
            crawling: AtomicUsize::new(0),
            is_gathering: Arc::new(AtomicBool::new(false)),
            gathering_awaited_ms: AtomicU64::new(0),
            is_reporting: Arc::new(AtomicBool::new(false)),
            is_moving: Arc::new(AtomicBool::new(false)),
            plan_change_ms: AtomicU64::new(0),
            ahead_ms: AtomicU64::new(0),
            flush_ms: AtomicU64::new(0),
            groups_unswept: AtomicU64::new(0),
            workers,
        }
    }

    /// Whether all items may be listed (`lru_crawler enable`).
    pub fn has_crawler(&self) -> bool {
        self.crawler.load(Ordering::Relaxed)
    }

    /// See [`Switches::has_crawler`].
    pub(crate) fn set_crawler(&self, is_on: bool) {
        self.crawler.store(is_on, Ordering::Relaxed);
    }

    /// Whether a listing or a crawl is in progress.
    pub fn is_walking(&self) -> bool {
        self.is_dumping.load(Ordering::Relaxed) || self.crawling.load(Ordering::Relaxed) > 0
    }

    /// Takes the right to gather. If another client has it, notes that this one waits.
    pub(crate) fn take_gathering(&self, now_ms: u64) -> Option<DumpGuard> {
        let guard = DumpGuard::take(&self.is_gathering);
        if guard.is_none() {
            self.gathering_awaited_ms.store(now_ms, Ordering::Relaxed);
        }
        guard
    }

    /// Whether a client gathers.
    pub(crate) fn is_gathering(&self) -> bool {
        self.is_gathering.load(Ordering::Relaxed)
    }

    /// Whether a client has waited for the right to gather within this many milliseconds. Those who
    /// wait ask again and again.
    pub(crate) fn is_gathering_awaited(&self, within_ms: u64, now_ms: u64) -> bool {
        let awaited_ms = self.gathering_awaited_ms.load(Ordering::Relaxed);
        self.is_gathering() && now_ms.saturating_sub(awaited_ms) <= within_ms
    }

    /// Starts a crawl. Returns false if one is in progress.
    pub(crate) fn begin_to_crawl(&self) -> bool {
        let begins = (self.crawling)
            .compare_exchange(0, self.workers, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if begins {
            self.dumps.fetch_add(1, Ordering::Relaxed);
            self.crawls.fetch_add(1, Ordering::Relaxed);
            self.call_walks();
        }
        begins
    }

    /// Number of crawls started.
    pub(crate) fn crawls(&self) -> u64 {
        self.crawls.load(Ordering::Relaxed)
    }

    /// Workers are to look whether there is a walk to begin or to go on with.
    pub(crate) fn call_walks(&self) {
        self.walk_calls.fetch_add(1, Ordering::Release);
    }

    /// How often they were called.
    #[inline]
    pub(crate) fn walk_calls(&self) -> u64 {
        self.walk_calls.load(Ordering::Acquire)
    }

    /// A worker has examined all items that it owns.
    pub(crate) fn end_crawl(&self) {
        self.crawling.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a client may have the plan changed now. [`DISPATCH_CHANGES_MAX`] changes may follow
    /// one another at once, and then one per pause.
    pub(crate) fn may_change_plan(&self, now_ms: u64) -> bool {
        let ahead_ms = self.plan_pause_ms * (DISPATCH_CHANGES_MAX - 1);
        self.plan_change_ms.load(Ordering::Relaxed) <= now_ms + ahead_ms
    }

    /// A client has the plan changed.
    pub(crate) fn note_plan_change(&self, now_ms: u64) {
        let before_ms = self.plan_change_ms.load(Ordering::Relaxed);
        let next_ms = before_ms.max(now_ms) + self.plan_pause_ms;
        self.plan_change_ms.store(next_ms, Ordering::Relaxed);
    }

    /// A client flushes all items as of a time, which may be in the future.
    pub(crate) fn note_flush(&self, at_ms: u64) {
        self.flush_ms.store(at_ms, Ordering::Relaxed);
    }

    /// When the most recent flush takes effect, in milliseconds since the epoch; 0 if there was
    /// none.
    pub(crate) fn flush_ms(&self) -> u64 {
        self.flush_ms.load(Ordering::Relaxed)
    }

    /// Advances the clock.
    pub(crate) fn advance_clock(&self, seconds: u32) {
        let ms = 1000 * u64::from(seconds);
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Milliseconds by which the clock was advanced.
    #[inline]
    pub(crate) fn ahead_ms(&self) -> u64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }
}
