//! Connections that another worker serves for one large request, or because it has nothing else to
//! do.
//!
//! A connection *visits* a worker: the whole of it moves there, the worker executes its next
//! request, of whatever size, with the ordinary code, and sends the reply. Then the connection
//! comes *home*. Only its place stays at home meanwhile, and keeps what the poller reports. A
//! connection that was taken from a software queue (`share`) is served for what has arrived.
//!
//! - A connection visits only when all its earlier requests are answered and sent. The order of its
//!   replies therefore follows, and requests behind a large one wait for it.
//! - It comes home as soon as it would have to wait for its client. A client that is slow to send a
//!   large value, or to take one, never keeps the other worker, and its memory counts at home.
//! - It is closed at home only. The other worker sends it home for that.
//! - A worker has at most one visitor for each connection that is open, so that the mailboxes need
//!   no bound of their own.
//! - What a connection holds on its way counts nowhere, and so has bounds of its own. On its way to
//!   another worker that is what its client has sent, in a buffer of that size: while those that
//!   are away hold much, further ones stay at home. On its way home it is a reply that its client
//!   does not take (`budget::homeward`). Its home looks after each arrival whether its connections
//!   hold too much.

use std::mem;
use std::sync::Arc;

use glimmer_base::limits::TRAVELLERS_PER_TURN_MAX;
use glimmer_base::sync::weakened;
use glimmer_dispatch::Decision;

use super::Streams;
use super::connection::{Connection, Turn};
use super::key::ConnectionKey;
use super::phase::Phase;
use super::ready::Lane;
use super::visit::Visit;
use crate::admin::observe::CloseReason;
use crate::budget::homeward::InFlight;
use crate::budget::pool::Charge;
use crate::core::Core;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::forward::mailbox::Mailbox;

/// A connection on its way to another worker, or home.
pub(crate) struct Traveller {
    connection: Box<Connection>,
    visit: Visit,
    /// What it holds on its way home.
    in_flight: Option<InFlight>,
}

/// The ways between the workers for connections that visit, come home, or get another home.
pub(crate) struct Travels {
    /// By worker.
    travellers: Vec<Mailbox<Traveller>>,
    /// By worker: its software queue, from which any worker may take what waits.
    pub(super) queues: Vec<Mailbox<Traveller>>,
    /// By worker: connections that are at home there from now on.
    pub(super) movers: Vec<Mailbox<Box<Connection>>>,
    pub(super) doorbells: Vec<Arc<Doorbell<EventBell>>>,
}

impl Travels {
    /// Ways between the workers with these doorbells.
    pub fn between(doorbells: &[Arc<Doorbell<EventBell>>]) -> Travels {
        Travels {
            travellers: Mailbox::for_each(doorbells.len()),
            queues: Mailbox::for_each(doorbells.len()),
            movers: Mailbox::for_each(doorbells.len()),
            doorbells: doorbells.to_vec(),
        }
    }

    fn send(&self, worker: usize, traveller: Traveller) {
        self.travellers[worker].put(traveller);
        self.doorbells[worker].wake();
    }

    /// Whether a connection waits for this worker to take it.
    #[inline]
    pub fn has_travellers(&self, worker: usize) -> bool {
        !self.travellers[worker].is_empty() || !self.movers[worker].is_empty()
    }
}

impl Streams {
    /// The worker that receives the large value that a connection has announced, if that is another
    /// one and there is more to be received now. A client behind a slow link costs less here than
    /// the way there and back for each of its pieces.
    #[inline]
    pub fn worker_for_value(&self, key: ConnectionKey, core: &Core) -> Option<usize> {
        let connection = self.connections.get(key)?;
        let is_large = |bytes: usize| bytes >= core.plan.large_from() as usize;
        if !is_large(connection.rx.need)
            || !connection.may_visit()
            || !connection.input.is_readable()
        {
            return None;
        }
        let need = connection.rx.request_bytes();
        if !is_large(need) || !connection.rx.expects_value() {
            return None;
        }
        let need = need.min(u32::MAX as usize - 1) as u32;
        if !core.may_depart() {
            return None;
        }
        match core.plan.on_sized(core.me, need) {
            Decision::HandTo(worker) => Some(worker),
            Decision::Run => None,
        }
    }

    /// Sends a connection, which has nothing to send and waits for nothing, to another worker.
    pub fn depart(&mut self, key: ConnectionKey, worker: usize, core: &mut Core) {
        let traveller = self.leave_home(key, true, core);
        core.tally.visits += 1;
        core.shared.plans.queue(worker).enter();
        self.travels.send(worker, traveller);
    }

    /// Takes a connection out of its place, for one large request or for what has arrived.
    pub(super) fn leave_home(
        &mut self,
        key: ConnectionKey,
        is_for_one: bool,
        core: &mut Core,
    ) -> Traveller {
        let place = &mut self.connections[key];
        debug_assert!(place.may_visit());
        let stub = Connection::absent(place, core.now.ms);
        let mut connection = Box::new(mem::replace(place, stub));
        if is_for_one {
            // The buffer itself stays here, and what it holds waits in as much memory as it needs.
            connection.compact(&mut core.memory.pool);
        }
        release(&mut connection, core);
        let away_bytes = connection.charge().bytes;
        core.memory.away_bytes += away_bytes;
        let visit = Visit {
            worker: core.me,
            key,
            is_for_one,
            // What has arrived for it is served in one turn.
            is_over: !is_for_one,
            away_bytes,
            timed_since_ns: core.counting.turn_began_ns(),
        };
        Traveller {
            connection,
            visit,
            in_flight: None,
        }
    }

    /// Takes connections that other workers have sent, visitors and those that come home, as many
    /// as one turn may.
    pub fn take_travellers(&mut self, core: &mut Core) {
        for _ in 0..TRAVELLERS_PER_TURN_MAX {
            let Some(traveller) = self.travels.travellers[core.me].take() else {
                return;
            };
            self.receive_traveller(traveller, core);
        }
    }

    /// Takes a connection: a visitor, or one that comes home.
    pub(super) fn receive_traveller(&mut self, traveller: Traveller, core: &mut Core) {
        let Traveller {
            connection,
            visit,
            in_flight,
        } = traveller;
        if visit.worker != core.me {
            return self.receive_visitor(*connection, visit, core);
        }
        core.memory.away_bytes -= visit.away_bytes;
        self.welcome_home(*connection, visit.key, core);
        if let Some(in_flight) = in_flight {
            self.bound_held(core);
            core.shared.arrive(in_flight);
        }
    }

    fn receive_visitor(&mut self, mut connection: Connection, visit: Visit, core: &mut Core) {
        connection.visit = Some(visit);
        connection.is_wanted_at_home = false;
        connection.turn = Turn::Queued;
        connection.recharge(&mut core.memory.budget);
        let lane = match visit.is_for_one {
            true => Lane::Large,
            false => connection.lane(),
        };
        let key = self.connections.insert(connection);
        self.ready.push(key, lane);
    }

    /// Sends a visitor home if it has had its request, or would have to wait for its client.
    /// Returns whether it is gone.
    #[inline]
    pub fn goes_home(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let connection = &mut self.connections[key];
        let Some(visit) = connection.visit else {
            return false;
        };
        let has_ended = visit.is_over || connection.is_wanted_at_home;
        let is_busy = connection.turn == Turn::Queued
            || connection.tx.takes_turns()
            || connection.should_produce();
        if is_busy || (connection.is_runnable() && !has_ended) {
            return false;
        }
        self.send_home(key, visit, core);
        true
    }

    /// A visitor is to be closed, which its home does; or a connection that is elsewhere, which is
    /// done when it comes back. Returns whether the connection is one.
    pub fn close_at_home(&mut self, key: ConnectionKey, core: &mut Core) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        if let Phase::Away | Phase::HandshakeAway = connection.phase {
            connection.close_for(CloseReason::Normal);
            return true;
        }
        let Some(visit) = connection.visit else {
            return false;
        };
        connection.close_for(CloseReason::Normal);
        connection.tx.clear(&mut core.memory.pool);
        self.send_home(key, visit, core);
        true
    }

    fn send_home(&mut self, key: ConnectionKey, visit: Visit, core: &mut Core) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        let mut connection = Box::new(connection);
        connection.visit = None;
        if visit.is_for_one {
            core.shared.plans.queue(core.me).leave();
        }
        let in_flight = InFlight {
            worker: core.me,
            bytes: connection.charge().bytes,
        };
        let in_flight = (in_flight.bytes > 0).then_some(in_flight);
        release(&mut connection, core);
        in_flight.inspect(|in_flight| core.shared.homeward.leave(*in_flight));
        let traveller = Traveller {
            connection,
            visit,
            in_flight,
        };
        self.travels.send(visit.worker, traveller);
    }

    /// Puts a connection back into its place, with what was reported and decided meanwhile.
    fn welcome_home(&mut self, mut connection: Connection, key: ConnectionKey, core: &mut Core) {
        let Some(place) = self.connections.get_mut(key) else {
            // The place is given up only with the server.
            return;
        };
        if !weakened("readiness_lost_while_away") {
            connection.input = connection.input.max(place.input);
        }
        // Its address may have got an account.
        connection.session.is_metered |= place.session.is_metered;
        // The home's reason for closing counts.
        connection.closes = place.closes.or(connection.closes);
        // The place may still be named in a list of those to be served.
        connection.turn = place.turn;
        *place = connection;
        place.recharge(&mut core.memory.budget);
        if place.closes.is_some() {
            place.tx.clear(&mut core.memory.pool);
        } else if place.rx.is_refused() && place.tx.is_empty() {
            return self.await_place(key, core);
        }
        self.send_and_settle(key, core);
    }
}

/// Takes a connection's memory off this worker's account, and forgets what is true here alone.
pub(super) fn release(connection: &mut Connection, core: &mut Core) {
    (core.memory.budget).recharge_held(connection.counted, Charge::default());
    connection.counted = Charge::default();
    connection.patience.end_hold();
    connection.turn = Turn::None;
    // The list of those that borrow is this worker's.
    connection.tx.is_listed = false;
    // It was meant for a request that arrived at this worker.
    connection.session.hand_to = None;
    connection.patience.end_wait(core.now.ms);
}
