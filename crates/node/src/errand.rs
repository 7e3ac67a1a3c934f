//! Listing all items for one client (`lru_crawler metadump`, `mgdump`) while everybody else is served.
//!
//! The items of a partition are walked by its owner, some chains of the index at a time. So the walk is an errand: it is with the client's own
//! worker, or with the worker whose partitions it is at, and comes home with what it has found. It goes on only when the client has taken
//! that, so that it holds no more than [`DUMP_BYTES_HIGH`] and the items of one chain.

use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_base::limits::{DUMP_BYTES_HIGH, DUMP_CHAINS_PER_TURN};
use glimmer_base::sync::{AtomicBool, Ordering};
use glimmer_engine::{Engine, ListCursor, ListScope, Listed};
use glimmer_proto::text::dump::{self, Listing};
use glimmer_proto::text::{Dump, lines};

use crate::connection::ConnectionKey;
use crate::report::Report;
use crate::worker::Worker;

/// One client's walk over all items.
pub(crate) struct Errand {
    kind: Dump,
    /// The worker whose client waits, and its connection.
    home: usize,
    connection: ConnectionKey,
    /// The worker whose partitions are walked.
    at: usize,
    cursor: ListCursor,
    /// What was found away from home.
    found: Vec<u8>,
    _permit: Permit,
}

/// What a connection has to be told before it is parsed again.
pub(crate) enum Outing {
    /// It is here.
    Home(Box<Errand>),
    /// It is with another worker.
    Away,
    /// It is no errand: a long reply, whose next piece is made here.
    Report(Box<Report>),
}

/// The right to list all items, which one client has at a time, as in memcached.
pub(crate) struct Permit(Arc<AtomicBool>);

impl Permit {
    /// Takes the right, unless somebody has it.
    pub fn take(is_taken: &Arc<AtomicBool>) -> Option<Permit> {
        let was_taken = is_taken.swap(true, Ordering::Relaxed);
        (!was_taken).then(|| Permit(is_taken.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Errand {
    pub fn new(kind: Dump, permit: Permit, home: usize, connection: ConnectionKey) -> Errand {
        Errand {
            kind,
            home,
            connection,
            at: 0,
            cursor: ListCursor::new(ListScope::Owned),
            found: Vec::new(),
            _permit: permit,
        }
    }

    /// Walks on at the worker that it is at.
    fn walk(&mut self, engine: &mut dyn Engine, now: Moment, out: &mut Vec<u8>) {
        let write = match self.kind {
            Dump::Meta => dump::metadump,
            Dump::Mg => dump::mgdump,
        };
        let mut chains_left = DUMP_CHAINS_PER_TURN;
        let mut more = true;
        while more && chains_left > 0 && out.len() < DUMP_BYTES_HIGH {
            let visit = &mut |item: &Listed<'_>| write(out, &listing(item, now));
            more = engine.list(now, &mut self.cursor, 1, visit);
            chains_left -= 1;
        }
        if !more {
            self.at += 1;
            self.cursor = ListCursor::new(ListScope::Owned);
        }
    }

    fn end(&self) -> &'static str {
        match self.kind {
            Dump::Meta => lines::END,
            Dump::Mg => lines::META_END,
        }
    }
}

/// An item as listings show it.
pub(crate) fn listing<'a>(item: &Listed<'a>, now: Moment) -> Listing<'a> {
    let unix_s = |ms: u64| (now.epoch_unix_ms + ms) / 1000;
    Listing {
        key: item.key,
        expiry_unix_s: (item.expiry.ms() != 0).then(|| unix_s(item.expiry.ms())),
        accessed_unix_s: (item.accessed_s != 0).then(|| unix_s(1000 * u64::from(item.accessed_s))),
        cas: item.cas,
        is_fetched: item.is_fetched,
        flags: item.flags,
        value_bytes: item.value_bytes,
        bytes: item.heap_bytes,
    }
}

impl Worker {
    /// Goes on with a connection's errand: the client has taken what it has found so far.
    pub fn advance_errand(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        let mut errand = match connection.outing.take() {
            Some(Outing::Home(errand)) => errand,
            Some(Outing::Report(report)) => return self.advance_report(key, report),
            away_or_none => {
                connection.outing = away_or_none;
                return;
            }
        };
        if errand.at != self.me {
            connection.outing = Some(Outing::Away);
            let to = errand.at;
            self.shared.send_errand(to, errand);
            return;
        }
        if connection.tx.capacity() == 0 {
            connection.tx = self.pool.take();
        }
        errand.walk(&mut *self.engine, self.now, &mut connection.tx);
        self.take_home(errand);
    }

    /// An errand is home again, and its connection has what was found: sends that, and the end of it.
    fn take_home(&mut self, errand: Box<Errand>) {
        let key = errand.connection;
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.closing {
            connection.outing = None;
        } else if errand.at < self.shared.workers() {
            connection.outing = Some(Outing::Home(errand));
        } else {
            connection.outing = None;
            connection.tx.extend_from_slice(errand.end().as_bytes());
            // A client that has seen the end may begin the next at once.
            drop(errand);
        }
        self.send_and_settle(key);
    }

    /// Takes the errands that came here: walks on with those of other workers' clients, and welcomes those of its own.
    pub fn take_errands(&mut self) {
        while let Some(mut errand) = self.shared.next_errand(self.me) {
            if errand.home != self.me {
                let mut found = std::mem::take(&mut errand.found);
                errand.walk(&mut *self.engine, self.now, &mut found);
                errand.found = found;
                let home = errand.home;
                self.shared.send_errand(home, errand);
            } else if let Some(connection) = self.connections.get_mut(errand.connection) {
                if connection.tx.capacity() == 0 {
                    connection.tx = self.pool.take();
                }
                connection.tx.extend_from_slice(&errand.found);
                errand.found.clear();
                self.take_home(errand);
            }
        }
    }
}
