//! What the workers share.

use std::collections::VecDeque;
use std::sync::Arc;

use glimmer_base::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use glimmer_transport::Stream;

use crate::config::NodeConfig;
use crate::frontdesk::Frontdesk;
use crate::mesh::doorbell::Doorbell;
use crate::roster::Roster;
use crate::stats::WorkerStats;
use crate::wake::EventBell;

/// What the workers share. Only connections that come and go, and the end of the server, pass through here.
pub(crate) struct Shared {
    pub config: NodeConfig,
    pub frontdesk: Arc<dyn Frontdesk>,
    pub roster: Roster,
    pub stats: Vec<WorkerStats>,
    pub doorbells: Vec<Arc<Doorbell<EventBell>>>,
    /// Connections accepted by one worker for another.
    guests: Vec<Guests>,
    /// The server has been told to stop.
    pub stopping: AtomicBool,
    /// Workers that have no connections left, after that.
    drained: AtomicUsize,
}

#[derive(Default)]
struct Guests {
    waiting: AtomicUsize,
    streams: Mutex<VecDeque<Stream>>,
}

impl Shared {
    pub fn new(
        config: NodeConfig,
        frontdesk: Arc<dyn Frontdesk>,
        doorbells: Vec<Arc<Doorbell<EventBell>>>,
    ) -> Shared {
        let workers = doorbells.len();
        Shared {
            roster: Roster::new(workers, config.connections_max),
            config,
            frontdesk,
            stats: (0..workers).map(|_| WorkerStats::default()).collect(),
            doorbells,
            guests: (0..workers).map(|_| Guests::default()).collect(),
            stopping: AtomicBool::new(false),
            drained: AtomicUsize::new(0),
        }
    }

    /// Whether there is one worker only.
    pub fn is_alone(&self) -> bool {
        self.doorbells.len() == 1
    }

    /// Gives a connection to a worker.
    pub fn hand_over(&self, worker: usize, stream: Stream) {
        let guests = &self.guests[worker];
        lock(&guests.streams).push_back(stream);
        guests.waiting.fetch_add(1, Ordering::Relaxed);
        self.doorbells[worker].wake();
    }

    /// Whether a connection waits to be taken by a worker.
    pub fn has_mail(&self, worker: usize) -> bool {
        self.guests[worker].waiting.load(Ordering::Relaxed) > 0
    }

    /// The next connection that was given to a worker.
    pub fn next_guest(&self, worker: usize) -> Option<Stream> {
        if !self.has_mail(worker) {
            return None;
        }
        let guests = &self.guests[worker];
        let stream = lock(&guests.streams).pop_front()?;
        guests.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(stream)
    }

    /// Tells every worker to stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wake_all();
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

    fn wake_all(&self) {
        for doorbell in &self.doorbells {
            doorbell.wake();
        }
    }
}
