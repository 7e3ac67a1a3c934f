//! What the workers share.

use std::collections::VecDeque;
use std::sync::Arc;

use glimmer_base::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use glimmer_proto::Accepts;
use glimmer_transport::Stream;

use crate::alarm::Alarms;
use crate::config::NodeConfig;
use crate::errand::Errand;
use crate::frontdesk::Frontdesk;
use crate::guestbook::Guestbook;
use crate::mesh::doorbell::Doorbell;
use crate::observe::Observers;
use crate::roster::Roster;
use crate::stats::WorkerStats;
use crate::switches::Switches;
use crate::wake::EventBell;

/// What the workers share. Only connections that come and go, and the end of the server, pass through here.
pub(crate) struct Shared {
    pub config: NodeConfig,
    pub frontdesk: Arc<dyn Frontdesk>,
    pub roster: Roster,
    pub guestbook: Guestbook,
    pub stats: Vec<WorkerStats>,
    pub doorbells: Vec<Arc<Doorbell<EventBell>>>,
    pub switches: Switches,
    pub observers: Observers,
    pub alarms: Alarms,
    /// Connections accepted by one worker for another.
    guests: Vec<Mailbox<(Stream, Accepts)>>,
    /// Walks over all items that one worker does for another.
    errands: Vec<Mailbox<Box<Errand>>>,
    /// The server has been told to stop.
    pub stopping: AtomicBool,
    /// Workers that accept no more connections, after that. Released by each of them after the
    /// last connection that it handed over: who sees all of them here sees those connections, too.
    closed_doors: AtomicUsize,
    /// Workers that have no connections left, after that.
    drained: AtomicUsize,
}

/// What is left for one worker by others.
struct Mailbox<T> {
    waiting: AtomicUsize,
    letters: Mutex<VecDeque<T>>,
}

impl<T> Mailbox<T> {
    /// One for each worker.
    fn for_each(workers: usize) -> Vec<Mailbox<T>> {
        let mailbox = |_| Mailbox {
            waiting: AtomicUsize::new(0),
            letters: Mutex::new(VecDeque::new()),
        };
        (0..workers).map(mailbox).collect()
    }

    fn put(&self, letter: T) {
        lock(&self.letters).push_back(letter);
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn take(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let letter = lock(&self.letters).pop_front()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(letter)
    }
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
            observers: Observers::new(workers, &config),
            guestbook: Guestbook::default(),
            switches: Switches::new(config.crawler, workers),
            alarms: Alarms::default(),
            config,
            frontdesk,
            stats: (0..workers).map(|_| WorkerStats::default()).collect(),
            doorbells,
            guests: Mailbox::for_each(workers),
            errands: Mailbox::for_each(workers),
            stopping: AtomicBool::new(false),
            closed_doors: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
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

    /// Gives a connection, which may speak these protocols, to a worker.
    pub fn hand_over(&self, worker: usize, stream: Stream, accepts: Accepts) {
        self.guests[worker].put((stream, accepts));
        self.doorbells[worker].wake();
    }

    /// Gives an errand to a worker.
    pub fn send_errand(&self, worker: usize, errand: Box<Errand>) {
        self.errands[worker].put(errand);
        self.doorbells[worker].wake();
    }

    /// The next errand that was given to a worker.
    pub fn next_errand(&self, worker: usize) -> Option<Box<Errand>> {
        self.errands[worker].take()
    }

    /// Whether something was left for a worker.
    pub fn has_mail(&self, worker: usize) -> bool {
        !self.guests[worker].is_empty()
            || !self.errands[worker].is_empty()
            || self.observers.has_pending(worker)
    }

    /// The next connection that was given to a worker.
    pub fn next_guest(&self, worker: usize) -> Option<(Stream, Accepts)> {
        self.guests[worker].take()
    }

    /// Tells every worker to stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    /// Whether a connection was given to a worker that it has not taken yet.
    pub fn has_guests(&self, worker: usize) -> bool {
        !self.guests[worker].is_empty()
    }

    /// A worker accepts no more connections.
    pub fn note_closed_doors(&self) {
        self.closed_doors.fetch_add(1, Ordering::Release);
        self.wake_all();
    }

    /// Whether no worker accepts connections any more.
    pub fn all_closed_doors(&self) -> bool {
        self.closed_doors.load(Ordering::Acquire) == self.doorbells.len()
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
