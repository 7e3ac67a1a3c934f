//! Reports events to clients (`watch`), and counts requests by key prefix (`stats detail`).
//!
//! | file | idea |
//! | --- | --- |
//! | `sight` | what a request did to an item, seen from before and after it |
//! | `line` | memcached's format of events |
//! | `feed` | the unsent lines of one watcher, up to a limit |
//! | `prefixes` | counts by key prefix |
//!
//! Without watchers, all of this costs one relaxed load per batch. With watchers, requests are
//! executed one at a time. A slow watcher loses lines and is told how many.

mod feed;
mod line;
mod prefixes;
mod sight;

use std::sync::Arc;

use glimmer_base::limits::{PREFIXES_MAX, WATCHERS_MAX};
use glimmer_base::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, lock};
use glimmer_engine::{Removals, Tap};

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::stream::registry::SocketEntry;

pub(crate) use feed::Feed;
pub use feed::WatchFigures;
pub(crate) use line::CloseReason;
use line::Stamp;
use prefixes::Prefixes;
pub(crate) use sight::{Sight, run};

/// The events that can be watched, one bit each.
pub(crate) mod interest {
    pub use glimmer_proto::text::watch::{CONNEVENTS, DELETIONS, EVICTIONS, FETCHERS, MUTATIONS};

    /// Counting by prefix, which is not a watcher's interest.
    pub const DETAIL: u32 = 1 << 31;
    /// Interests in requests for items.
    pub const REQUESTS: u32 = FETCHERS | MUTATIONS | DELETIONS | DETAIL;
}

/// All watchers, for all workers.
pub(crate) struct Observers {
    /// The interests of all watchers together, and [`interest::DETAIL`].
    interests: AtomicU32,
    feeds: Mutex<Vec<Arc<Feed>>>,
    /// For each worker, whether one of its watchers has unsent lines.
    pending: Vec<AtomicBool>,
    /// The number of the next event.
    gid: AtomicU64,
    written: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    prefixes: Mutex<Prefixes>,
    removals: Arc<Tap<Removals>>,
    clock: Arc<dyn Clock>,
}

impl Observers {
    pub fn new(workers: usize, config: &NodeConfig) -> Observers {
        let detail = if config.detail { interest::DETAIL } else { 0 };
        Observers {
            interests: AtomicU32::new(detail),
            removals: config.removals.clone(),
            clock: config.clock.clone(),
            feeds: Mutex::new(Vec::new()),
            pending: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            gid: AtomicU64::new(0),
            written: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            prefixes: Mutex::new(Prefixes::new(config.prefix_delimiter, PREFIXES_MAX)),
        }
    }

    /// The interests of all watchers together.
    #[inline]
    pub fn interests(&self) -> u32 {
        self.interests.load(Ordering::Relaxed)
    }

    /// Adds a watcher with a connection of this worker; `None` if there are too many.
    pub fn add(&self, worker: usize, interests: u32) -> Option<Arc<Feed>> {
        let mut feeds = lock(&self.feeds);
        if feeds.len() >= WATCHERS_MAX {
            return None;
        }
        let feed = Arc::new(Feed::new(worker, interests));
        feeds.push(feed.clone());
        self.renew(&feeds);
        Some(feed)
    }

    /// Removes a watcher.
    pub fn remove(&self, feed: &Arc<Feed>) {
        let mut feeds = lock(&self.feeds);
        feeds.retain(|other| !Arc::ptr_eq(other, feed));
        self.renew(&feeds);
    }

    fn renew(&self, feeds: &[Arc<Feed>]) {
        let watched = feeds.iter().fold(0, |sum, feed| sum | feed.interests());
        let detail = self.interests() & interest::DETAIL;
        self.interests.store(watched | detail, Ordering::Relaxed);
        self.removals.watch(watched & interest::EVICTIONS != 0);
    }

    /// Enables or disables counting by prefix.
    pub fn set_detail(&self, is_on: bool) {
        if is_on {
            self.interests.fetch_or(interest::DETAIL, Ordering::Relaxed);
        } else {
            (self.interests).fetch_and(!interest::DETAIL, Ordering::Relaxed);
        }
    }

    /// Whether keys are counted by prefix.
    pub fn has_detail(&self) -> bool {
        self.interests() & interest::DETAIL != 0
    }

    /// Appends the counts by prefix.
    pub fn dump_prefixes(&self, out: &mut Vec<u8>) {
        lock(&self.prefixes).dump(out);
    }

    /// Resets the counts by prefix.
    pub fn clear_prefixes(&self) {
        lock(&self.prefixes).clear();
    }

    /// Whether a watcher of this worker has unsent lines. Resets the flag.
    pub fn take_pending(&self, worker: usize) -> bool {
        self.has_pending(worker) && self.pending[worker].swap(false, Ordering::Relaxed)
    }

    /// Whether a watcher of this worker has unsent lines.
    #[inline]
    pub fn has_pending(&self, worker: usize) -> bool {
        self.pending[worker].load(Ordering::Relaxed)
    }

    /// Reports what the requests of a batch did.
    pub fn show(&self, sights: &[Sight], doorbells: &[Arc<Doorbell<EventBell>>]) {
        if self.has_detail() {
            let mut prefixes = lock(&self.prefixes);
            for sight in sights {
                prefixes.count(sight);
            }
        }
        let (interests, mut lines) = (self.interests(), Vec::new());
        for sight in sights {
            line::of_sight(sight, interests, &mut lines, &mut || self.stamp());
        }
        self.publish(&lines, doorbells);
    }

    /// Reports evicted items.
    pub fn show_removals(&self, doorbells: &[Arc<Doorbell<EventBell>>]) {
        if self.interests() & interest::EVICTIONS != 0 {
            let removed = self.removals.observer().take();
            let line = |item| (interest::EVICTIONS, line::of_removed(item, &self.stamp()));
            let lines: Vec<_> = removed.iter().map(line).collect();
            self.publish(&lines, doorbells);
        }
    }

    /// Reports that a connection was opened or, with the reason, closed.
    pub fn show_connection(
        &self,
        entry: &SocketEntry,
        closed: Option<CloseReason>,
        doorbells: &[Arc<Doorbell<EventBell>>],
    ) {
        if self.interests() & interest::CONNEVENTS != 0 {
            let line = line::of_connection(entry, closed, &self.stamp());
            self.publish(&[(interest::CONNEVENTS, line)], doorbells);
        }
    }

    fn stamp(&self) -> Stamp {
        let gid = self.gid.fetch_add(1, Ordering::Relaxed) + 1;
        Stamp::new(self.clock.unix_us(), gid)
    }

    fn publish(&self, lines: &[(u32, String)], doorbells: &[Arc<Doorbell<EventBell>>]) {
        if lines.is_empty() {
            return;
        }
        (self.written).fetch_add(lines.len() as u64, Ordering::Relaxed);
        for feed in lock(&self.feeds).iter() {
            let wanted = lines
                .iter()
                .filter(|(kind, _)| feed.interests() & kind != 0);
            let (sent, skipped) = feed.put(wanted.map(|(_, line)| line.as_bytes()));
            self.sent.fetch_add(sent, Ordering::Relaxed);
            self.skipped.fetch_add(skipped, Ordering::Relaxed);
            if sent > 0 {
                self.pending[feed.worker()].store(true, Ordering::Relaxed);
                doorbells[feed.worker()].wake();
            }
        }
    }

    /// Counters of reported events.
    pub fn figures(&self) -> WatchFigures {
        WatchFigures {
            watchers: lock(&self.feeds).len() as u64,
            written: self.written.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }
}
