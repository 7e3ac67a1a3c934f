//! Reports events to clients (`watch`), and counts requests by key prefix (`stats detail`).
//!
//! | file | idea |
//! | --- | --- |
//! | `watch` | the observer of all engines: what it is told of becomes lines |
//! | `change` | what a request did to an item, in memcached's words |
//! | `line` | memcached's format of events |
//! | `json` | what changes, as JSON |
//! | `prefixes` | counts by key prefix |
//! | `usage` | the same by a sample of the requests (`stats prefix`) |
//!
//! The engines report requests and evictions ([`ChangeObserver`]),
//! and workers report connections. Without watchers and counts the engines' tap is closed. A slow
//! watcher loses lines and is told how many (`../../feeds/`).

mod change;
mod json;
mod line;
mod prefixes;
mod usage;
mod watch;

use std::fmt;
use std::sync::Arc;

use glimmer_base::limits::{WATCH_BYTES_MAX, WATCHERS_MAX};
use glimmer_base::sync::{AtomicBool, Mutex, Ordering, lock};
use glimmer_engine::{ChangeObserver, Tap, Told};
use glimmer_hotset::Pause;

use crate::clock::Clock;
use crate::feeds::{Feed, WatchFigures};
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::hot::{Accelerator, Popular};
use crate::stream::registry::SocketEntry;

pub(crate) use line::CloseReason;
pub(crate) use usage::{Usage, keep_largest};
use watch::{Watch, WatchersWorker};

/// The events that can be watched, one bit each.
mod interest {
    pub use glimmer_proto::text::watch::{
        CHANGES, CONNEVENTS, DELETIONS, EVICTIONS, FETCHERS, MUTATIONS,
    };

    /// Counting by prefix, which is not a watcher's interest.
    pub const DETAIL: u32 = 1 << 31;
    /// Interests in what engines report.
    pub const ITEMS: u32 = FETCHERS | MUTATIONS | DELETIONS | EVICTIONS | CHANGES | DETAIL;
}

/// Those who are shown what all workers do: watchers, and counts by prefix.
#[derive(Clone)]
pub struct Observers(Arc<Tap<Watch>>);

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.figures()).finish()
    }
}

impl Observers {
    /// No watchers. `clock` stamps events, `prefix_delimiter` divides a key's prefix from the rest,
    /// and `detail` says whether requests are counted by prefix from the start.
    pub fn new(clock: Arc<dyn Clock>, prefix_delimiter: u8, detail: bool) -> Observers {
        Self::with_accelerator(clock, (prefix_delimiter, detail), WATCH_BYTES_MAX, None)
    }

    /// The same, with the bytes of unsent lines of one watcher ([`WATCH_BYTES_MAX`] outside of
    /// tests), and an accelerator that is kept exact.
    pub fn with_accelerator(
        clock: Arc<dyn Clock>,
        (prefix_delimiter, detail): (u8, bool),
        watch_bytes: usize,
        accelerator: Option<Arc<Accelerator>>,
    ) -> Observers {
        let watch = Watch::new(clock, (prefix_delimiter, watch_bytes), accelerator);
        let observers = Observers(Arc::new(Tap::new(watch)));
        observers.set_detail(detail);
        observers
    }

    /// The accelerator.
    pub fn accelerator(&self) -> Option<&Arc<Accelerator>> {
        self.watch().accelerator.as_ref()
    }

    /// What is known of hot keys.
    pub(crate) fn popular(&self) -> &Popular {
        &self.watch().popular
    }

    /// What the engines report to.
    pub fn tap(&self) -> &Arc<Tap<impl ChangeObserver + use<>>> {
        &self.0
    }

    /// The workers with these doorbells may have watchers from now on.
    pub(crate) fn attach(&self, doorbells: &[Arc<Doorbell<EventBell>>]) {
        let worker = |doorbell: &Arc<Doorbell<_>>| WatchersWorker {
            is_pending: AtomicBool::new(false),
            doorbell: doorbell.clone(),
        };
        let workers = doorbells.iter().map(worker).collect();
        let attached = self.watch().workers.set(workers);
        assert!(attached.is_ok(), "a node has observers of its own");
    }

    fn watch(&self) -> &Watch {
        self.0.observer()
    }

    /// Adds a watcher with a connection of this worker; `None` if there are too many.
    pub(crate) fn add(&self, worker: usize, interests: u32) -> Option<Arc<Feed>> {
        let watcher = (worker, interests);
        (self.watch().feeds).add(watcher, WATCHERS_MAX, |all| {
            self.renew(all, self.has_detail())
        })
    }

    /// Removes a watcher.
    pub(crate) fn remove(&self, feed: &Arc<Feed>) {
        (self.watch().feeds).remove(feed, |all| self.renew(all, self.has_detail()));
    }

    /// Moves the lines of a watcher to the end of `out`.
    pub(crate) fn take(&self, feed: &Feed, out: &mut Vec<u8>) {
        let note = |lines: u64| match feed.interests() & interest::CHANGES {
            0 => format!("skipped={lines}\n"),
            _ => json::of_lost(lines),
        };
        self.watch().feeds.take(feed, out, note);
    }

    /// Enables or disables counting by prefix.
    pub(crate) fn set_detail(&self, is_on: bool) {
        (self.watch().feeds).with_interests(|all| self.renew(all, is_on));
    }

    /// Notes what watchers are interested in. No watcher comes or goes meanwhile.
    fn renew(&self, watchers: u32, has_detail: bool) {
        let detail = if has_detail { interest::DETAIL } else { 0 };
        let interests = watchers | detail;
        self.watch().interests.store(interests, Ordering::Relaxed);
        let is_watched = interests & interest::ITEMS != 0;
        let accelerator = self.accelerator();
        if let Some(accelerator) = accelerator {
            accelerator.pause(Pause::Watched, is_watched);
        }
        self.0.tell(match (is_watched, accelerator) {
            (true, _) => Told::All,
            (false, Some(_)) => Told::Changes,
            (false, None) => Told::Nothing,
        });
    }

    /// Whether keys are counted by prefix.
    pub(crate) fn has_detail(&self) -> bool {
        self.watch().wants(interest::DETAIL)
    }

    /// Appends a part of the counts by prefix, from the first one after a prefix on. Returns the
    /// last prefix of the part if there are more.
    pub(crate) fn dump_prefixes(
        &self,
        after: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Option<Box<[u8]>> {
        lock(&self.watch().prefixes).dump(after, out)
    }

    /// Has requests be counted by a sample of them, by the prefixes before this delimiter.
    pub fn sample_prefixes(&self, delimiter: u8) {
        (self.watch().usage).get_or_init(|| Mutex::new(Usage::new(delimiter)));
    }

    /// A copy of the counts by a sample, if there are any.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.watch().usage.get().map(|usage| lock(usage).clone())
    }

    /// Resets the counts by prefix.
    pub(crate) fn clear_prefixes(&self) {
        lock(&self.watch().prefixes).clear();
    }

    /// Whether a watcher of this worker has unsent lines. Resets the flag.
    pub(crate) fn take_pending(&self, worker: usize) -> bool {
        self.has_pending(worker) && self.pending(worker).swap(false, Ordering::Relaxed)
    }

    /// Whether a watcher of this worker has unsent lines.
    #[inline]
    pub(crate) fn has_pending(&self, worker: usize) -> bool {
        self.pending(worker).load(Ordering::Relaxed)
    }

    #[inline]
    fn pending(&self, worker: usize) -> &AtomicBool {
        let workers = self.watch().workers.get();
        &workers.expect("the workers are attached")[worker].is_pending
    }

    /// Reports that a connection was opened or, with the reason, closed.
    pub(crate) fn show_connection(&self, entry: &SocketEntry, closed: Option<CloseReason>) {
        (self.watch()).publish(interest::CONNEVENTS, |stamp| {
            line::of_connection(stamp, entry, closed)
        });
    }

    /// Reports that the handshake of a connection failed, for this reason.
    pub(crate) fn show_failed_handshake(&self, entry: &SocketEntry, reason: &str) {
        (self.watch()).publish(interest::CONNEVENTS, |stamp| {
            line::of_handshake(stamp, entry, reason)
        });
    }

    /// Counters of reported events.
    pub(crate) fn figures(&self) -> WatchFigures {
        self.watch().feeds.figures()
    }
}
