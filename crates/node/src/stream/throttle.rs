//! Connections whose user or address is over its limit: they are not received from until that has
//! been made up for.
//!
//! A connection pays for its requests after each burst ([`Streams::pay`]), and is looked at before
//! the next ([`Streams::is_held_back`]). While its account owes something, it waits with others of
//! the same account, those first that came first. One that may go on, and then finds that others
//! have taken what there was, has the place again that it had. After [`THROTTLE_WAIT_MS_MAX`] the
//! requests of one burst are refused, and it waits again. A sleeping worker wakes up when the first
//! of them is due.
//!
//! A connection that visits another worker is not held back there. Metered connections wait in no
//! software queue, so that such a visit is for one large request.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use glimmer_base::limits::THROTTLE_WAIT_MS_MAX;
use glimmer_proto::Rights;

use super::Streams;
use super::connection::{Connection, Gate, Turn};
use super::key::ConnectionKey;
use crate::core::Core;
use crate::tenants::addresses::Admission;
use crate::tenants::meter::Meter;

/// The connections of one worker that wait for limits.
#[derive(Default)]
pub(super) struct Throttled {
    /// By the number of the account.
    queues: HashMap<u64, Queue>,
    /// When each queue is looked at next, in milliseconds since the epoch, and its account.
    due: BTreeSet<(u64, u64)>,
}

/// The connections that wait for one account.
struct Queue {
    meter: Arc<Meter>,
    /// When it is looked at next, in milliseconds since the epoch.
    due_ms: u64,
    /// Since when each has waited, in milliseconds since the epoch, in this order; some may be
    /// closed.
    waiting: VecDeque<(u64, ConnectionKey)>,
}

impl Throttled {
    /// When a queue is looked at next.
    #[inline]
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|&(due_ms, _)| due_ms)
    }

    /// Adds a connection that has waited since `since_ms`. Its queue is looked at by `due_ms`.
    fn push(&mut self, key: ConnectionKey, since_ms: u64, meter: &Arc<Meter>, due_ms: u64) {
        let queue = self.queues.entry(meter.id).or_insert_with(|| Queue {
            meter: meter.clone(),
            due_ms: u64::MAX,
            waiting: VecDeque::new(),
        });
        let place = (queue.waiting).partition_point(|&(since, _)| since <= since_ms);
        queue.waiting.insert(place, (since_ms, key));
        if due_ms < queue.due_ms {
            self.due.remove(&(queue.due_ms, meter.id));
            queue.due_ms = due_ms;
            self.due.insert((due_ms, meter.id));
        }
    }
}

impl Streams {
    /// Whether a metered connection, which is about to be served, has to wait for its limits. It
    /// waits then. Otherwise, its gate is what its user's rights ask for.
    #[cold]
    #[inline(never)]
    pub(super) fn is_held_back(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        core.users.follow(&core.shared.config.tenants);
        let (connection, now_ms) = (&mut self.connections[key], core.now.ms);
        let session = &mut connection.session;
        session.refuses = false;
        if session.gate != Gate::Locked {
            session.gate = match core.users.rules(session.user) {
                Some(rules) if !rules.allow_all() => Gate::Judged,
                _ => Gate::Open,
            };
        }
        let user = core.users.user(session.user);
        if connection.visit.is_some() || core.is_draining {
            return false;
        }
        let owes = |meter: &&Arc<Meter>| now_ms < meter.ready_ms();
        let of_user = user.map(|user| &user.meter).filter(owes);
        let Some(meter) = of_user.or_else(|| connection.entry.meter().filter(owes)) else {
            connection.throttled_since_ms = None;
            return false;
        };
        let meter = meter.clone();
        if connection.throttled_since_ms.is_none() {
            meter.note_wait();
            core.tally.throttled += 1;
        }
        let since_ms = *connection.throttled_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) >= THROTTLE_WAIT_MS_MAX {
            connection.throttled_since_ms = None;
            if session_may_refuse(connection) {
                connection.session.refuses = true;
                connection.session.gate = Gate::Judged;
            }
            return false;
        }
        connection.turn = Turn::Queued;
        let due_ms = meter.ready_ms().min(since_ms + THROTTLE_WAIT_MS_MAX);
        (self.throttled).push(key, since_ms, &meter, due_ms.max(now_ms + 1));
        true
    }

    /// A metered connection pays for what it had in a burst.
    #[cold]
    #[inline(never)]
    pub(super) fn pay(connection: &mut Connection, requests: u32, bytes: usize, core: &Core) {
        if std::mem::take(&mut connection.session.refuses) {
            return;
        }
        let (requests, bytes, now_ms) = (requests.into(), bytes as u64, core.now.ms);
        if let Some(user) = core.users.user(connection.session.user) {
            user.meter.pay(requests, bytes, now_ms);
        }
        if let Some(meter) = connection.entry.meter() {
            meter.pay(requests, bytes, now_ms);
        }
    }

    /// Lets those go on that have waited for long enough, or whose account has something again.
    #[cold]
    #[inline(never)]
    pub fn release_throttled(&mut self, core: &Core) {
        let now_ms = core.now.ms;
        while let Some(&(due_ms, id)) = self.throttled.due.first()
            && (due_ms <= now_ms || core.is_draining)
        {
            self.throttled.due.pop_first();
            if let Some(due_ms) = self.release_of(id, core) {
                self.throttled.due.insert((due_ms, id));
            } else {
                self.throttled.queues.remove(&id);
            }
        }
    }

    /// The same for one account. Returns when to look again; `None` if no connection waits.
    fn release_of(&mut self, id: u64, core: &Core) -> Option<u64> {
        let now_ms = core.now.ms;
        let queue = self.throttled.queues.get_mut(&id)?;
        let mut releases = match core.is_draining {
            true => u64::MAX,
            false => queue.meter.releases(now_ms),
        };
        while let Some(&(since_ms, key)) = queue.waiting.front() {
            if let Some(connection) = self.connections.get(key) {
                let until_ms = since_ms + THROTTLE_WAIT_MS_MAX;
                if releases == 0 && now_ms < until_ms {
                    queue.due_ms = queue.meter.ready_ms().min(until_ms).max(now_ms + 1);
                    return Some(queue.due_ms);
                }
                releases = releases.saturating_sub(1);
                let lane = connection.lane();
                self.ready.push(key, lane);
            }
            queue.waiting.pop_front();
        }
        None
    }

    /// When connections are due that wait for limits, in milliseconds since the epoch.
    #[inline]
    pub fn throttled_due_ms(&self) -> Option<u64> {
        self.throttled.due_ms()
    }

    /// Whether a queue is to be looked at.
    #[inline]
    pub fn has_due_throttled(&self, core: &Core) -> bool {
        self.throttled_due_ms()
            .is_some_and(|due_ms| due_ms <= core.now.ms)
    }

    /// If rights or limits have changed: gives an account to the connections whose addresses have
    /// none, and closes those that watch and may not any more.
    pub fn follow_limits(&mut self, core: &mut Core) {
        let version = core.shared.config.tenants.version();
        if version == self.limits_version {
            return;
        }
        self.limits_version = version;
        core.users.follow(&core.shared.config.tenants);
        let mut lost = Vec::new();
        for (key, connection) in &mut self.connections {
            seat(connection, true, core);
            let rules = core.users.rules(connection.session.user);
            let may_watch = rules.is_none_or(|rules| rules.rights.has(Rights::ADMIN));
            if connection.phase.feed().is_some() && !may_watch {
                lost.push(key);
            }
        }
        for key in lost {
            self.close(key, core);
        }
    }
}

/// Whether requests of a connection may be refused: a login is not.
fn session_may_refuse(connection: &Connection) -> bool {
    connection.session.gate != Gate::Locked
}

/// Enters a connection into the account of its address, if addresses are limited. Returns whether
/// it may stay; one that `is_open` already may.
pub(super) fn seat(connection: &mut Connection, is_open: bool, core: &Core) -> bool {
    if connection.visit.is_some() || connection.entry.meter().is_some() {
        return true;
    }
    let Some(address) = connection.entry.peer_ip() else {
        return true;
    };
    let tenants = &core.shared.config.tenants;
    match tenants.enter_from(address, is_open, core.now.ms) {
        Admission::Unlimited => true,
        Admission::Full => false,
        Admission::Seated(seat) => {
            connection.entry.seat(seat);
            connection.session.is_metered = true;
            true
        }
    }
}
