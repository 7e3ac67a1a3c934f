//! What the workers share.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use glimmer_base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use glimmer_dispatch::Layout;
use glimmer_engine::Engine;
use glimmer_proto::Accepts;
use glimmer_transport::stream::ByteStream;

use crate::admin::alarm::Alarms;
use crate::admin::cluster::StoredCluster;
use crate::admin::dump::DumpCursor;
use crate::admin::feed::SnapshotSlot;
use crate::admin::observe::Observers;
use crate::admin::stats::WorkerStats;
use crate::admin::switches::Switches;
use crate::budget::homeward::{Homeward, InFlight};
use crate::config::NodeConfig;
use crate::dispatch::calls::Calls;
use crate::dispatch::exchange::Exchange;
use crate::dispatch::plans::Plans;
use crate::dispatch::slow::SlowLog;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::forward::mailbox::{ClosedListeners, Mailbox};
use crate::packet::native::{CompletionTables, NativeEndpoint};
use crate::stream::balancer::AcceptBalancer;
use crate::stream::places::Places;
use crate::stream::registry::ConnectionRegistry;
use crate::stream::shakers::Shakers;

/// A connection, and which protocols it may speak.
pub(crate) type Accepted = (Box<dyn ByteStream>, Accepts);

/// What the workers share. Only connections that come and go, and the end of the server, pass
/// through here.
pub(crate) struct Shared {
    pub config: NodeConfig,
    pub balancer: AcceptBalancer,
    pub registry: ConnectionRegistry,
    pub stats: Vec<WorkerStats>,
    pub doorbells: Vec<Arc<Doorbell<EventBell>>>,
    pub homeward: Homeward,
    pub switches: Switches,
    /// The servers that clients are told of.
    pub cluster: StoredCluster,
    pub snapshots: SnapshotSlot,
    /// Connections that wait for places for large values.
    pub places: Places,
    /// The plan that all workers go by.
    pub plans: Plans,
    /// Where workers hand in their engines when the access mode changes.
    pub engines: Exchange<Box<dyn Engine>>,
    /// Calls for datagrams that workers have passed on.
    pub calls: CachePadded<Calls>,
    pub alarms: Alarms,
    /// The latest slow requests.
    pub slow: Arc<SlowLog>,
    /// Which native mutations have been executed, by the owner of their partitions.
    pub completions: Option<Arc<CompletionTables>>,
    /// Threads that shake hands.
    pub shakers: Shakers,
    /// Connections accepted by one worker for another.
    accepted: Vec<Mailbox<Accepted>>,
    /// Walks over all items that one worker does for another.
    dumps: Vec<Mailbox<Box<DumpCursor>>>,
    /// How often there was news for replies that wait for it.
    news: AtomicU64,
    /// The server has been told to stop.
    pub stopping: AtomicBool,
    /// Workers that accept no more connections, after that.
    closed_listeners: ClosedListeners,
    /// Workers that have no connections left, after that.
    drained: AtomicUsize,
}

impl Shared {
    pub fn new(
        config: NodeConfig,
        doorbells: Vec<Arc<Doorbell<EventBell>>>,
        layout: Layout,
        shakers: usize,
    ) -> Shared {
        let workers = doorbells.len();
        config.observers.attach(&doorbells);
        Shared {
            balancer: AcceptBalancer::new(workers, config.connections_max),
            registry: ConnectionRegistry::default(),
            plans: Plans::new(
                config.dispatch.clone(),
                config.dispatch_settings,
                layout,
                config.clock.now().ms,
            ),
            engines: Exchange::new(workers),
            calls: CachePadded::default(),
            switches: Switches::new(&config, workers),
            cluster: StoredCluster::default(),
            snapshots: SnapshotSlot::default(),
            places: Places::default(),
            alarms: Alarms::default(),
            slow: Arc::new(SlowLog::new(config.slow_ms)),
            completions: config
                .native
                .as_ref()
                .map(|native| NativeEndpoint::completions(&native.rules, config.native_bytes())),
            config,
            shakers: Shakers::new(shakers, workers),
            stats: (0..workers).map(|_| WorkerStats::default()).collect(),
            doorbells,
            homeward: Homeward::new(workers),
            accepted: Mailbox::for_each(workers),
            dumps: Mailbox::for_each(workers),
            news: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            closed_listeners: ClosedListeners::none_of(workers),
            drained: AtomicUsize::new(0),
        }
    }

    /// Notes that replies have arrived at the home of their connection.
    pub fn arrive(&self, in_flight: InFlight) {
        if self.homeward.arrive(in_flight) {
            self.doorbells[in_flight.worker].wake();
        }
    }

    /// A place for a large value was given up, or its value has become an item.
    pub fn end_upload(&self) {
        self.places.end();
        if self.places.are_awaited() {
            self.wake_all();
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.doorbells.len()
    }

    /// Whether there is one worker only.
    pub fn is_alone(&self) -> bool {
        self.doorbells.len() == 1
    }

    /// Those who are shown what happens.
    pub fn observers(&self) -> &Observers {
        &self.config.observers
    }

    /// There is news for replies that wait for it.
    pub fn announce(&self) {
        self.news.fetch_add(1, Ordering::Release);
        self.wake_all();
    }

    /// How often there was news.
    #[inline]
    pub fn news(&self) -> u64 {
        self.news.load(Ordering::Acquire)
    }

    /// Gives a connection to a worker.
    pub fn hand_over(&self, worker: usize, accepted: Accepted) {
        self.accepted[worker].put(accepted);
        self.doorbells[worker].wake();
    }

    /// Gives a dump to a worker.
    pub fn send_dump(&self, worker: usize, dump: Box<DumpCursor>) {
        self.dumps[worker].put(dump);
        self.doorbells[worker].wake();
    }

    /// The next dump that was given to a worker.
    #[inline]
    pub fn next_dump(&self, worker: usize) -> Option<Box<DumpCursor>> {
        self.dumps[worker].take()
    }

    /// Whether something was left for a worker, beside dumps.
    #[inline]
    pub fn has_mail(&self, worker: usize) -> bool {
        !self.accepted[worker].is_empty() || self.observers().has_pending(worker)
    }

    /// Whether a dump was given to a worker that it has not taken yet.
    #[inline]
    pub fn has_dump(&self, worker: usize) -> bool {
        !self.dumps[worker].is_empty()
    }

    /// The next connection that was given to a worker.
    #[inline]
    pub fn next_accepted(&self, worker: usize) -> Option<Accepted> {
        self.accepted[worker].take()
    }

    /// Tells every worker to stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.engines.wake();
        self.wake_all();
    }

    /// Whether a connection was given to a worker that it has not taken yet.
    pub fn has_accepted(&self, worker: usize) -> bool {
        !self.accepted[worker].is_empty()
    }

    /// A worker accepts no more connections.
    pub fn note_closed_listeners(&self) {
        self.closed_listeners.note();
        self.wake_all();
    }

    /// Whether no worker accepts connections any more.
    pub fn all_closed_listeners(&self) -> bool {
        self.closed_listeners.are_all()
    }

    /// A worker has no connections left.
    pub fn note_drained(&self) {
        self.drained.fetch_add(1, Ordering::Relaxed);
        self.wake_all();
    }

    /// Whether no worker has a connection left.
    pub fn all_drained(&self) -> bool {
        self.drained.load(Ordering::Relaxed) == self.doorbells.len()
    }

    /// Wakes every worker.
    pub fn wake_all(&self) {
        for doorbell in &self.doorbells {
            doorbell.wake();
        }
    }
}
