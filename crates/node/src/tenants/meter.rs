//! What one user or address has asked for, and what it may ask for.

use glimmer_base::limits::{THROTTLE_RELEASED_BY_BYTES, THROTTLE_RELEASED_MAX};
use glimmer_base::sync::{AtomicU64, Ordering};

use super::bucket::Bucket;

/// What a user or an address may have; 0: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Connections at a time.
    pub connections: u64,
    /// Requests per second. Each key of a command with several is one.
    pub requests: u64,
    /// Bytes per second, received and sent.
    pub bytes: u64,
}

impl Quotas {
    /// Whether nothing is limited.
    pub fn are_none(&self) -> bool {
        *self == Quotas::default()
    }
}

/// What a user or an address has asked for since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Open connections.
    pub connections: u64,
    /// Requests that were served.
    pub requests: u64,
    /// Their bytes, and those of their replies.
    pub bytes: u64,
    /// How often a connection had to wait for a limit.
    pub waits: u64,
    /// Requests that were refused after a wait.
    pub refused: u64,
    /// Requests that were denied for lack of a right.
    pub denied: u64,
    /// Connections that were refused.
    pub connections_refused: u64,
}

/// The account of one user or address, which all workers share. Its numbers are apart from one
/// another, and nothing is read by way of them, so that all accesses are relaxed.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// What tells it from others.
    pub id: u64,
    requests: Bucket,
    bytes: Bucket,
    /// 0: no limit.
    connections_max: AtomicU64,
    connections: AtomicU64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    waits: AtomicU64,
    refused: AtomicU64,
    denied: AtomicU64,
    connections_refused: AtomicU64,
}

fn add(to: &AtomicU64, count: u64) {
    to.fetch_add(count, Ordering::Relaxed);
}

impl Meter {
    pub fn new(id: u64, quotas: &Quotas) -> Meter {
        let meter = Meter {
            id,
            ..Meter::default()
        };
        meter.limit(quotas);
        meter
    }

    /// Other limits, from now on.
    pub fn limit(&self, quotas: &Quotas) {
        self.requests.set(quotas.requests);
        self.bytes.set(quotas.bytes);
        (self.connections_max).store(quotas.connections, Ordering::Relaxed);
    }

    /// A connection comes. Returns whether it may, which one that `is_open` already does.
    pub fn enter(&self, is_open: bool) -> bool {
        let connections_max = self.connections_max.load(Ordering::Relaxed);
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let is_full = !is_open && connections_max > 0 && before >= connections_max;
        if is_full {
            self.leave();
            add(&self.counts.connections_refused, 1);
        }
        !is_full
    }

    /// A connection goes.
    pub fn leave(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it has no connections.
    pub fn is_left(&self) -> bool {
        self.connections.load(Ordering::Relaxed) == 0
    }

    /// Pays for requests that were served, and for their bytes.
    pub fn pay(&self, requests: u64, bytes: u64, now_ms: u64) {
        self.requests.take(requests, now_ms);
        self.bytes.take(bytes, now_ms);
        add(&self.counts.requests, requests);
        add(&self.counts.bytes, bytes);
    }

    /// From when on requests are served, in milliseconds since the epoch.
    pub fn ready_ms(&self) -> u64 {
        self.requests.ready_ms().max(self.bytes.ready_ms())
    }

    /// How many connections that wait may go on now.
    pub fn releases(&self, now_ms: u64) -> u64 {
        match self.requests.left(now_ms) {
            _ if now_ms < self.ready_ms() => 0,
            None => THROTTLE_RELEASED_BY_BYTES,
            Some(left) => left.clamp(1, THROTTLE_RELEASED_MAX),
        }
    }

    pub fn note_wait(&self) {
        add(&self.counts.waits, 1);
    }

    pub fn note_refused(&self) {
        add(&self.counts.refused, 1);
    }

    pub fn note_denied(&self) {
        add(&self.counts.denied, 1);
    }

    pub fn usage(&self) -> Usage {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        Usage {
            connections: read(&self.connections),
            requests: read(&counts.requests),
            bytes: read(&counts.bytes),
            waits: read(&counts.waits),
            refused: read(&counts.refused),
            denied: read(&counts.denied),
            connections_refused: read(&counts.connections_refused),
        }
    }
}
