//! One core's loop.
//!
//! A turn waits until something is ready, takes what the poller and the mesh bring, serves every
//! connection that has something to be done, and tells the other workers. Nothing in it blocks but
//! the wait, and the wait sleeps only if nothing is left to do.

mod drain;
mod events;
mod tick;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use glimmer_base::Moment;
use glimmer_base::limits::{REPLY_BYTES_HIGH, SHORT_TICK_MS};
use glimmer_engine::{Engine, ListCursor};
use glimmer_transport::{Poller, udp};
use slotmap::SlotMap;

use crate::admin::observe::interest;
use crate::admin::stats::Tally;
use crate::bind::StreamSource;
use crate::budget::pool::{Budget, Pool};
use crate::forward::port::Port;
use crate::packet::memcached::DatagramSource;
use crate::packet::native::NativeServer;
use crate::shared::Shared;
use crate::stream::burst::Burst;
use crate::stream::connection::Connection;
use crate::stream::key::ConnectionKey;
use crate::stream::ready::{ReadyQueue, ReplyClass};

/// One core's share of the server.
pub(crate) struct Worker {
    pub me: usize,
    pub shared: Arc<Shared>,
    pub engine: Box<dyn Engine>,
    pub port: Port,
    pub poller: Poller,
    pub listeners: Vec<StreamSource>,
    pub sockets: Vec<DatagramSource>,
    /// Datagrams being answered.
    pub inbox: udp::Inbox,
    /// What native clients are served with.
    pub native: Option<Box<NativeServer>>,
    /// Turns that may find nothing to do before the worker sleeps.
    pub idle_turns_left: u32,
    /// Listeners are not watched: descriptors ran out, or there are as many connections as there
    /// may be.
    pub deaf: bool,
    /// Since when there have been so many, in milliseconds since the epoch.
    pub full_since_ms: Option<u64>,
    pub connections: SlotMap<ConnectionKey, Connection>,
    /// Connections to be served.
    pub ready: ReadyQueue,
    /// Connections that wait for memory, with the bytes they want.
    pub starved: VecDeque<(ConnectionKey, usize)>,
    /// Connections whose answers are withheld, each until a time in milliseconds since the epoch,
    /// in the order of these times; some may be closed.
    pub withheld: VecDeque<(u64, ConnectionKey)>,
    /// Connections that wait for a batch for requests to other workers.
    pub out_of_credit: Vec<ConnectionKey>,
    /// Connections that are shown what happens; some may be closed.
    pub watchers: Vec<ConnectionKey>,
    /// Where the search for expired items stands, if there is one.
    pub crawl: Option<ListCursor>,
    /// Searches begun.
    pub crawls: u64,
    /// Connections whose reorder buffer moved while the mesh was drained.
    pub moved: Vec<ConnectionKey>,
    pub burst: Burst,
    pub pool: Pool,
    pub budget: Budget,
    /// Bytes of the largest replies of late, on average over a batch: a guess at the next ones.
    pub reply_bytes_guess: usize,
    /// Somebody goes without memory.
    pub is_short: bool,
    /// When it was last looked for somebody who holds memory without headway, in milliseconds since
    /// the epoch.
    pub searched_ms: u64,
    /// When a search for connections to close because too much was held was last in vain.
    pub shed_ms: u64,
    /// Bytes held beyond the bound that this search left.
    pub unshed_excess: usize,
    pub tally: Tally,
    pub now: Moment,
    /// When timers were last looked at, in milliseconds since the epoch.
    pub ticked_ms: u64,
    /// Failures wait to be told to the admin handler.
    pub is_alarmed: bool,
    /// When to stop waiting for clients, once the server is told to stop.
    pub drain_until_ms: Option<u64>,
    /// This worker accepts no more connections, and has said so.
    pub has_closed_listeners: bool,
    /// This worker has said that it has no connections left.
    pub has_drained: bool,
}

const TICK: Duration = Duration::from_secs(1);
const SHORT_TICK: Duration = Duration::from_millis(SHORT_TICK_MS);

impl Worker {
    /// Runs until the server is told to stop.
    pub fn run(mut self) {
        loop {
            self.wait();
            self.turn();
            if self.is_told_to_stop() {
                self.begin_to_drain();
            }
            if self.drain_until_ms.is_some() && self.may_leave() {
                return;
            }
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) {
        if self.is_busy() || self.idle_turns_left > 0 || self.shared.config.busy_poll {
            self.idle_turns_left = self.idle_turns_left.saturating_sub(1);
            self.poll(Some(Duration::ZERO));
        } else {
            let doorbell = self.shared.doorbells[self.me].clone();
            let may_sleep = doorbell.may_sleep(|| self.has_mail());
            let timeout = if may_sleep {
                self.timer()
            } else {
                Some(Duration::ZERO)
            };
            self.poll(timeout);
            doorbell.awake();
        }
        self.now = self.shared.config.clock.now();
        self.now.ms += self.shared.switches.ahead_ms();
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        self.poller.wait(timeout).expect("the poller is sound");
    }

    fn turn(&mut self) {
        self.take_events();
        self.look_for_datagrams();
        self.take_mail();
        self.take_dumps();
        self.take_forwarded();
        self.take_handed_over();
        if self.is_short {
            self.relieve();
        }
        self.serve_ready();
        self.port.ship();
        self.port.wake_peers();
        self.resume_out_of_credit();
        self.bound_held();
        if self.now.ms - self.ticked_ms >= TICK.as_millis() as u64 {
            self.tick();
        }
        let shared = &self.shared;
        (shared.observers).show_departures(&shared.doorbells);
        self.serve_watchers();
        self.crawl_on();
        if !self.withheld.is_empty() {
            self.send_withheld(self.now.ms);
        }
        if self.is_alarmed {
            self.raise_alarms();
        }
        self.tally.turns += 1;
        self.show_figures();
    }

    /// Whether connections wait to be served, or datagrams may.
    fn is_busy(&self) -> bool {
        !self.ready.is_empty()
            || self.crawl.is_some()
            || self.watches_datagrams()
            || (self.has_more_to_accept() && !self.deaf)
            || self.can_relieve()
    }

    /// Whether another thread has put something where this one looks.
    fn has_mail(&self) -> bool {
        self.port.has_incoming()
            || self.shared.has_mail(self.me)
            || self.is_told_to_stop()
            || self.crawls != self.shared.switches.crawls()
            || self.has_just_drained()
            || (self.has_drained && self.shared.all_drained())
    }

    /// How long the worker may sleep although nobody wakes it; `None`: for ever.
    fn timer(&self) -> Option<Duration> {
        let watches_idlers =
            self.shared.config.idle_timeout.is_some() && !self.connections.is_empty();
        let has_tick = self.deaf
            || self.drain_until_ms.is_some()
            || self.is_alarmed
            || watches_idlers
            || self.pool.has_freed();
        let tick = if self.is_short || self.has_more_to_accept() {
            Some(SHORT_TICK)
        } else {
            has_tick.then_some(TICK)
        };
        let answer = self.withheld.front().map(|&(until_ms, _)| {
            // Not at all would be a turn for nothing.
            Duration::from_millis(until_ms.saturating_sub(self.now.ms).max(1))
        });
        tick.into_iter().chain(answer).min()
    }

    /// Bytes of buffers that may still be used.
    pub fn bytes_free(&self) -> usize {
        self.budget.free(self.pool.bytes() + self.port.bytes)
    }

    /// Bytes that connections may still hold.
    pub fn room(&self) -> usize {
        self.budget.room()
    }

    /// Takes what came over the mesh: executes others' requests and joins the replies to its own.
    fn take_forwarded(&mut self) {
        if self.shared.is_alone() {
            return;
        }
        let Worker {
            port,
            engine,
            connections,
            pool,
            budget,
            moved,
            now,
            shared,
            ..
        } = self;
        let watched = shared.observers.interests() & interest::REQUESTS != 0;
        port.drain(&mut **engine, *now, watched, |batch| {
            let sights = batch.take_sights(|tag| {
                let entry = connections.get(tag.connection)?.entry();
                entry.map(|entry| entry.fd)
            });
            if !sights.is_empty() {
                shared.observers.show(&sights, &shared.doorbells);
            }
            for (tag, reply) in batch.replies() {
                let Some(connection) = connections.get_mut(tag.connection) else {
                    continue;
                };
                let Some(reorder) = connection.reorder.as_mut() else {
                    continue;
                };
                if connection.tx.capacity() == 0 {
                    connection.tx = pool.take();
                }
                reorder.fill(tag.slot, reply, &mut connection.tx);
                if reorder.is_complete() || connection.tx.len() >= REPLY_BYTES_HIGH {
                    moved.push(tag.connection);
                }
                connection.recharge(budget);
            }
        });
        self.port.wake_peers();
        for index in 0..self.moved.len() {
            self.advance_replies(self.moved[index]);
        }
        self.moved.clear();
        self.resume_out_of_credit();
        if self.port.has_unfinished() {
            self.is_short = true;
        }
    }

    /// Gives connections that wait for a batch another turn, if one became free.
    fn resume_out_of_credit(&mut self) {
        if self.port.take_freed() {
            for key in self.out_of_credit.drain(..) {
                if let Some(connection) = self.connections.get(key) {
                    self.ready
                        .push(key, ReplyClass::of(connection.burst_reply_bytes));
                }
            }
        }
    }

    /// A reorder buffer got replies: closes it if it has all, and sends what is in order.
    fn advance_replies(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Some(mut reorder) = connection.reorder.take_if(|reorder| reorder.is_complete()) else {
            self.send_and_settle(key);
            return;
        };
        let local = reorder.finish(&mut connection.tx);
        self.pool.give(local);
        self.burst.recycle(reorder);
        self.send_and_settle(key);
    }

    /// Shows others what was counted: at the end of a turn, and before a client can see that its
    /// connection was taken, refused or closed.
    pub fn show_figures(&mut self) {
        self.tally.forwarded_batches_sent = self.port.forwarded_batches_sent;
        self.tally.forwarded_batches_run = self.port.forwarded_batches_run;
        self.tally.buffer_bytes = self.budget.used(self.pool.bytes() + self.port.bytes) as u64;
        self.tally.buffer_bytes_free = self.pool.bytes() as u64;
        self.tally.buffers = (self.budget.buffers() + self.pool.buffers()) as u64;
        self.shared.stats[self.me].publish(&self.tally);
    }
}
