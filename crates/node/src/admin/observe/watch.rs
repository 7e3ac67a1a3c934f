//! The observer of all engines: it makes lines of what it is told of, and gives them to watchers.

use std::sync::{Arc, OnceLock};

use glimmer_base::limits::{KEY_BYTES_MAX, PREFIXES_MAX};
use glimmer_base::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, lock};
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::{ChangeObserver, Done, Item, Job, Reason, Removal, RemovalObserver};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::{Form, Verb};

use super::change::{
    Asked, Old, STORED, needs_a_look, needs_two_looks, status, ttl_asked_s, ttl_s, value_bytes,
};
use super::interest;
use super::json;
use super::line::{self, Stamp};
use super::prefixes::Prefixes;
use super::usage::Usage;
use crate::clock::Clock;
use crate::dispatch::profile::is_continued;
use crate::feeds::Feeds;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::hot::{Accelerator, Popular, Retracted};

/// All watchers, and counts by prefix.
pub(super) struct Watch {
    /// The interests of all watchers together, and [`interest::DETAIL`].
    pub interests: AtomicU32,
    pub feeds: Feeds,
    /// Each worker as watchers know it.
    pub workers: OnceLock<Vec<WatchersWorker>>,
    /// The number of the next event.
    gid: AtomicU64,
    pub prefixes: Mutex<Prefixes>,
    /// Counts by prefix, of a sample of the requests.
    pub usage: OnceLock<Mutex<Usage>>,
    pub popular: Popular,
    pub accelerator: Option<Arc<Accelerator>>,
    clock: Arc<dyn Clock>,
}

/// A worker that may have watchers.
pub(super) struct WatchersWorker {
    /// Whether one of its watchers has unsent lines.
    pub is_pending: AtomicBool,
    pub doorbell: Arc<Doorbell<EventBell>>,
}

/// What is kept from before a change until after it.
pub(super) struct Before {
    /// The slot of the accelerator that the item had.
    retracted: Option<Retracted>,
    watched: Watched,
}

/// What is kept for watchers.
enum Watched {
    /// Nobody watches.
    Nothing,
    /// Nobody has room: the events are counted.
    Count,
    /// The item before, if there was one.
    Before(Option<Old>),
}

impl Watch {
    pub fn new(
        clock: Arc<dyn Clock>,
        (prefix_delimiter, watch_bytes): (u8, usize),
        accelerator: Option<Arc<Accelerator>>,
    ) -> Watch {
        Watch {
            interests: AtomicU32::new(0),
            feeds: Feeds::new(watch_bytes),
            workers: OnceLock::new(),
            gid: AtomicU64::new(0),
            usage: OnceLock::new(),
            popular: Popular::new(clock.now()),
            accelerator,
            prefixes: Mutex::new(Prefixes::new(prefix_delimiter, PREFIXES_MAX)),
            clock,
        }
    }

    /// Whether somebody is interested.
    #[inline]
    pub fn wants(&self, interest: u32) -> bool {
        self.interests.load(Ordering::Relaxed) & interest != 0
    }

    /// Gives the watchers with an interest a line, if there are any. While none of them has room,
    /// the event is counted.
    pub fn publish(&self, interest: u32, line: impl FnOnce(Stamp) -> String) {
        if !self.wants(interest) {
            return;
        }
        if !self.feeds.has_room(interest) {
            return self.count(interest, 1);
        }
        let gid = self.gid.fetch_add(1, Ordering::Relaxed) + 1;
        let line = line(Stamp::new(self.clock.unix_us(), gid));
        self.feeds
            .put(interest, line.as_bytes(), |worker| self.tell(worker));
    }

    /// Counts events that nobody is shown.
    fn count(&self, interest: u32, count: u64) {
        self.feeds.miss(interest, count);
        self.feeds.look_again(interest, |worker| self.tell(worker));
    }

    /// A worker has something for one of its watchers.
    fn tell(&self, worker: usize) {
        if let Some(workers) = self.workers.get() {
            let worker = &workers[worker];
            worker.is_pending.store(true, Ordering::Relaxed);
            worker.doorbell.wake();
        }
    }

    /// Counts the events of a request that nobody is shown, where its outcome tells which they are.
    fn count_change(&self, job: &Job<'_>, outcome: OutcomeKind) {
        let change = match Asked::of(&job.request) {
            Asked::Store(_) => interest::MUTATIONS,
            Asked::Delete(_) if outcome == OutcomeKind::Deleted => interest::DELETIONS,
            _ => 0,
        };
        for interest in [interest::FETCHERS, change, interest::CHANGES] {
            let is_event = interest != interest::CHANGES || change != 0;
            if is_event && self.wants(interest) {
                self.count(interest, 1);
            }
        }
    }

    /// Reports that a request was executed, and how many bytes the item had before. As in
    /// memcached, a store, a delete or a calculation begins with a fetch.
    fn note_request(&self, job: &Job<'_>, asked: Asked, before: Option<usize>) {
        let key = job.request.key;
        if self.wants(interest::DETAIL) {
            let asked = match (job.request.verb, job.request.form) {
                // memcached counts a binary touch as a read.
                (Verb::Touch { .. }, Form::Binary(_)) => Asked::Fetch,
                _ => asked,
            };
            lock(&self.prefixes).count(key, asked, before.is_some());
        }
        self.publish(interest::FETCHERS, |stamp| {
            line::of_fetch(stamp, key, before, job.client)
        });
    }

    /// Reports what a request did to the item.
    fn note_change(
        &self,
        now: Moment,
        job: &Job<'_>,
        (old, after): (Option<Old>, Option<&Item<'_>>),
        outcome: OutcomeKind,
    ) {
        let (key, asked) = (job.request.key, Asked::of(&job.request));
        let before = old.map(|old| old.value_bytes);
        if self.wants(interest::CHANGES)
            && let Some(change) = json::Change::of(job, (old, after), outcome)
        {
            self.publish(interest::CHANGES, |stamp| {
                json::of_change(stamp, job, change, (after, outcome), now)
            });
        }
        self.note_request(job, asked, before);
        let store = |command, status, made: Option<&Item<'_>>| {
            let size = made.map_or_else(|| value_bytes(job), |item| item.layout().value_len);
            let ttl_s = made.map_or_else(|| ttl_asked_s(job, now), |it| ttl_s(it.expiry(), now));
            let store = line::Store {
                status,
                command,
                ttl_s,
                size,
            };
            self.publish(interest::MUTATIONS, |stamp| {
                line::of_store(stamp, key, &store, job.client)
            });
        };
        match (asked, before, after) {
            (Asked::Store(command), ..) => {
                let status = status(job, before.is_some(), outcome);
                store(command, status, after.filter(|_| status == STORED));
            }
            (Asked::Count, None, Some(made)) => store("add", STORED, Some(made)),
            (Asked::Delete(command), Some(size), None) => {
                self.publish(interest::DELETIONS, |stamp| {
                    line::of_delete(stamp, key, command, size)
                });
            }
            _ => {}
        }
    }
}

impl ChangeObserver for Watch {
    const SEES_REQUESTS: bool = true;

    type Before = Before;

    #[inline]
    fn epoch(&self) -> u64 {
        self.accelerator.as_ref().map_or(0, |it| it.epoch())
    }

    #[inline]
    fn ignores(&self, keyhash: Keyhash) -> bool {
        let accelerator = self.accelerator.as_ref();
        !self.wants(interest::ITEMS) && accelerator.is_none_or(|it| !it.may_have(keyhash))
    }

    fn before<'i>(
        &self,
        _now: Moment,
        epoch: u64,
        job: &Job<'_>,
        find: impl FnOnce() -> Option<Item<'i>>,
    ) -> Before {
        let accelerator = self.accelerator.as_ref();
        let looks = || {
            self.wants(interest::DETAIL)
                || self.feeds.has_room(interest::ITEMS)
                || needs_a_look(&job.request.verb)
                || self.wants(interest::CHANGES) && needs_two_looks(&job.request)
        };
        Before {
            retracted: accelerator.and_then(|it| it.retract(job.keyhash, epoch)),
            watched: match self.wants(interest::ITEMS) {
                false => Watched::Nothing,
                true if looks() => Watched::Before(find().map(|item| Old::of(&item))),
                true => Watched::Count,
            },
        }
    }

    fn after<'i>(
        &self,
        now: Moment,
        job: &Job<'_>,
        before: Before,
        outcome: OutcomeKind,
        find: impl FnOnce() -> Option<Item<'i>>,
    ) {
        // A read that changed the item is reported as a read.
        let is_change = || Asked::of(&job.request) != Asked::Fetch || !job.request.verb.is_read();
        if matches!(before.watched, Watched::Count) && is_change() {
            self.count_change(job, outcome);
        }
        if before.retracted.is_none() && !matches!(before.watched, Watched::Before(_)) {
            return;
        }
        let item = find();
        if let (Some(accelerator), Some(retracted)) = (&self.accelerator, before.retracted) {
            accelerator.refill(retracted, job.request.key, item.as_ref(), now);
        }
        if let Watched::Before(before) = before.watched
            && is_change()
        {
            self.note_change(now, job, (before, item.as_ref()), outcome);
        }
    }

    fn sample(&self, now: Moment, job: &Job<'_>, done: &Done) -> u32 {
        if let Some(usage) = self.usage.get().filter(|_| !is_continued(job)) {
            let asked = Asked::of(&job.request);
            let is_hit = done.kind == Some(OutcomeKind::Value);
            (job.request).with_key(|key| lock(usage).count(key, asked, is_hit));
        }
        self.popular.take(now, job, done)
    }

    fn flush(&self, flush: impl FnOnce() -> Option<u64>) {
        match &self.accelerator {
            Some(accelerator) => accelerator.flush(flush),
            None => drop(flush()),
        }
    }

    fn read(&self, job: &Job<'_>, value_bytes: Option<usize>) {
        self.note_request(job, Asked::Fetch, value_bytes);
    }

    fn counts_reads(&self) -> bool {
        !self.wants(interest::DETAIL) && !self.feeds.has_room(interest::FETCHERS)
    }

    fn count_reads(&self, reads: u64) {
        if reads > 0 && self.wants(interest::FETCHERS) {
            self.count(interest::FETCHERS, reads);
        }
    }
}

impl RemovalObserver for Watch {
    fn removed(&self, removal: &Removal<'_>) {
        if let Some(accelerator) = &self.accelerator {
            accelerator.evict(removal.keyhash());
        }
        if matches!(removal.reason, Reason::Evicted | Reason::IndexFull) {
            self.publish(interest::EVICTIONS, |stamp| {
                let mut key = [0; KEY_BYTES_MAX + 6];
                line::of_removal(stamp, removal.item.key(&mut key), removal)
            });
        }
    }

    fn flushed(&self, _items: u64) {}
}
