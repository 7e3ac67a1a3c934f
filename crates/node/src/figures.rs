//! The workers' statistics, for the rest of the process.

use std::os::fd::RawFd;
use std::sync::{Arc, Weak};

use glimmer_base::Moment;
use glimmer_base::sync::Ordering;
use glimmer_dispatch::{AccessMode, Histogram, Policy, Settings, SizeClass};
use glimmer_hotset::HotKey;

use crate::admin::feed::SnapshotFeed;
use crate::admin::stats::Tally;
use crate::admin::switch::{self, Wanted};
use crate::dispatch::latencies::{Command, Latency};
use crate::dispatch::plans::DispatchView;
use crate::dispatch::service_times::Times;
use crate::dispatch::slow::SlowLog;
use crate::feeds::WatchFigures;
use crate::hot::Accelerator;
use crate::shared::Shared;
use crate::stream::registry::{ConnectionCounts, SocketView};

/// Access to the workers' statistics that does not keep the node alive, because the handler that
/// answers `stats` is itself a part of the node.
#[derive(Clone)]
pub struct NodeFigures(Weak<Shared>);

impl NodeFigures {
    /// The statistics of the workers that share this.
    pub(crate) fn of(shared: &Arc<Shared>) -> NodeFigures {
        NodeFigures(Arc::downgrade(shared))
    }

    /// At most `most` sockets in the order of their descriptors, starting with descriptor `from`.
    pub fn sockets(&self, from: RawFd, most: usize) -> Vec<SocketView> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| shared.registry.view(from, most))
    }

    /// Adds to `counts` the state of at most `most` connections in the order of their descriptors,
    /// starting with `from`, by the listener that they came in at. Returns where to go on.
    pub fn count_connections(
        &self,
        from: RawFd,
        most: usize,
        counts: &mut ConnectionCounts,
    ) -> Option<RawFd> {
        self.0.upgrade()?.registry.count(from, most, counts)
    }

    /// Counters of events reported to watchers.
    pub fn watch(&self) -> WatchFigures {
        let shared = self.0.upgrade();
        shared.map_or_else(WatchFigures::default, |shared| shared.observers().figures())
    }

    /// Whether requests are counted by key prefix.
    pub fn has_detail(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.observers().has_detail())
    }

    /// Resets the counts by key prefix.
    pub fn clear_detail(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.observers().clear_prefixes();
        }
    }

    /// Whether clients may list all items.
    pub fn has_crawler(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.switches.has_crawler())
    }

    /// Whether a listing of all items is in progress, and how many were started.
    pub fn dumps(&self) -> (bool, u64) {
        let shared = self.0.upgrade();
        shared.map_or((false, 0), |shared| {
            let dumps = shared.switches.dumps.load(Ordering::Relaxed);
            (shared.switches.is_walking(), dumps)
        })
    }

    /// When the most recent `flush_all` takes effect, in milliseconds since the epoch; 0 if there
    /// was none.
    pub fn flush_ms(&self) -> u64 {
        let shared = self.0.upgrade();
        shared.map_or(0, |shared| shared.switches.flush_ms())
    }

    /// Groups of keys that were invalidated and have yet to be swept.
    pub fn groups_unswept(&self) -> u64 {
        let shared = self.0.upgrade();
        shared.map_or(0, |shared| {
            shared.switches.groups_unswept.load(Ordering::Relaxed)
        })
    }

    /// The dispatch policy in force, and the plan that the workers go by. `None` when the node is
    /// gone.
    pub fn dispatch(&self) -> Option<DispatchView> {
        let shared = self.0.upgrade()?;
        Some(shared.plans.view())
    }

    /// Begins to put in force what is named: a dispatch policy, an access mode, and settings of
    /// policies. A policy that is named has the settings already.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be.
    pub fn switch(
        &self,
        policy: Option<Arc<dyn Policy>>,
        access: Option<AccessMode>,
        settings: Settings,
    ) -> Result<(), String> {
        let shared = self.0.upgrade().ok_or("the server stops")?;
        let wanted = Wanted {
            policy,
            access,
            settings: Some(settings),
        };
        switch::begin(wanted, &shared, self.now()).map(|_| ())
    }

    /// Has all workers copy their items for a snapshot, while they serve. The server's epoch by the
    /// clock of now is this one, in milliseconds since 1970. `None` when the node is gone. One
    /// snapshot at a time: [`end_snapshot`](Self::end_snapshot) has to follow.
    pub fn begin_snapshot(&self, epoch_unix_ms: u64) -> Option<Arc<SnapshotFeed>> {
        let shared = self.0.upgrade()?;
        let node = self.clone();
        let call = move || node.call_walks();
        let feed = SnapshotFeed::new(shared.workers(), epoch_unix_ms, Box::new(call));
        let feed = Arc::new(feed);
        shared.snapshots.begin(feed.clone());
        self.call_walks();
        Some(feed)
    }

    /// The snapshot was written, or cancelled.
    pub fn end_snapshot(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.snapshots.end();
        }
    }

    fn call_walks(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.switches.call_walks();
            shared.wake_all();
        }
    }

    /// The most connections at a time.
    pub fn connections_max(&self) -> usize {
        let shared = self.0.upgrade();
        shared.map_or(0, |shared| shared.balancer.connections_max())
    }

    /// From now on there are at most so many connections. Those that there are stay.
    pub fn limit_connections(&self, most: usize) {
        if let Some(shared) = self.0.upgrade() {
            shared.balancer.limit(most);
            // Those that wait may fit now.
            shared.wake_all();
        }
    }

    /// How long the latest requests of a class took on all workers.
    pub fn times_of(&self, class: SizeClass) -> Times {
        let shared = self.0.upgrade();
        shared.map_or_else(Times::default, |shared| shared.plans.times_of(class))
    }

    /// The accelerator, if there is one.
    pub fn accelerator(&self) -> Option<Arc<Accelerator>> {
        let shared = self.0.upgrade()?;
        shared.observers().accelerator().cloned()
    }

    /// The server's hottest keys, the hottest first, by sampled reads.
    pub fn hot_keys(&self, now: Moment) -> Vec<HotKey> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| {
            shared.observers().popular().hot_keys(now.ms)
        })
    }

    /// There is news for replies that wait for it ([`Part::Later`](crate::Part::Later)).
    pub fn announce(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.announce();
        }
    }

    /// The time of the workers.
    pub fn now(&self) -> Moment {
        let shared = self.0.upgrade();
        shared.map_or_else(Moment::default, |shared| {
            let mut now = shared.config.clock.now();
            now.ms += shared.switches.ahead_ms();
            now
        })
    }

    /// Wakes all workers, so that each takes a turn.
    pub fn wake(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake_all();
        }
    }

    /// The requests of all workers by the size of their values, while they were counted by size.
    /// Takes no lock.
    pub fn requests_by_size(&self) -> Histogram {
        let shared = self.0.upgrade();
        shared.map_or_else(Histogram::default, |shared| shared.plans.requests())
    }

    /// How long a sample of the requests of all workers took that do this. Takes no lock.
    pub fn latencies(&self, commands: &[Command]) -> Vec<Latency> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| shared.plans.latencies(commands))
    }

    /// The latest slow requests; `None` when the node is gone.
    pub fn slow(&self) -> Option<Arc<SlowLog>> {
        Some(self.0.upgrade()?.slow.clone())
    }

    /// A worker's counters as of its last turn, and the CPU time that it has used in nanoseconds if
    /// that is known; `None` if there is no such worker.
    pub fn worker(&self, worker: usize) -> Option<(Tally, Option<u64>)> {
        let shared = self.0.upgrade()?;
        let tally = shared.stats.get(worker)?.snapshot();
        let work = shared.plans.work(worker);
        Some((tally, work.cpu_ns(worker, &*shared.config.clock)))
    }

    /// Each worker's counters as of its last turn; empty when the node is gone.
    pub fn tallies(&self) -> Vec<Tally> {
        let shared = self.0.upgrade();
        shared
            .iter()
            .flat_map(|shared| &shared.stats)
            .map(|stats| stats.snapshot())
            .collect()
    }
}
