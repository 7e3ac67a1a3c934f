//! Listing all items for one client (`lru_crawler metadump`, `mgdump`) while everybody else is
//! served.
//!
//! The items of a partition are walked by its owner, some chains of the index at a time. So the
//! walk is a dump: it is with the client's own worker, or with the worker whose partitions it is
//! at, and comes home with what it has found. It goes on only when the client has taken that, so
//! that it holds no more than [`DUMP_BYTES_HIGH`] and the items of one chain.

use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_base::limits::{DUMP_BYTES_HIGH, DUMP_CHAINS_PER_TURN};
use glimmer_base::sync::{AtomicBool, Ordering};
use glimmer_engine::{Engine, ListCursor, ListScope, Listed};
use glimmer_proto::text::dump::{self, Listing};
use glimmer_proto::text::{Dump, lines};

use crate::admin::report::Report;
use crate::stream::key::ConnectionKey;
use crate::worker::Worker;

/// One client's walk over all items.
pub(crate) struct DumpCursor {
    kind: Dump,
    /// The worker whose client waits, and its connection.
    home: usize,
    connection: ConnectionKey,
    /// The worker whose partitions are walked.
    at: usize,
    cursor: ListCursor,
    /// What was found away from home.
    found: Vec<u8>,
    _guard: DumpGuard,
}

/// What a connection has to be told before it is parsed again.
pub(crate) enum Continuation {
    /// It is here.
    Home(Box<DumpCursor>),
    /// It is with another worker.
    Away,
    /// It is no dump: a long reply, whose next piece is made here.
    Report(Box<Report>),
}

/// The right to list all items, which one client has at a time, as in memcached.
pub(crate) struct DumpGuard(Arc<AtomicBool>);

impl DumpGuard {
    /// Takes the right, unless somebody has it.
    pub fn take(is_taken: &Arc<AtomicBool>) -> Option<DumpGuard> {
        let was_taken = is_taken.swap(true, Ordering::Relaxed);
        (!was_taken).then(|| DumpGuard(is_taken.clone()))
    }
}

impl Drop for DumpGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl DumpCursor {
    pub fn new(kind: Dump, guard: DumpGuard, home: usize, connection: ConnectionKey) -> DumpCursor {
        DumpCursor {
            kind,
            home,
            connection,
            at: 0,
            cursor: ListCursor::new(ListScope::Owned),
            found: Vec::new(),
            _guard: guard,
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
    /// Goes on with a connection's dump: the client has taken what it has found so far.
    pub fn advance_continuation(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        let mut dump = match connection.continuation.take() {
            Some(Continuation::Home(dump)) => dump,
            Some(Continuation::Report(report)) => return self.advance_report(key, report),
            away_or_none => {
                connection.continuation = away_or_none;
                return;
            }
        };
        if dump.at != self.me {
            connection.continuation = Some(Continuation::Away);
            let to = dump.at;
            self.shared.send_dump(to, dump);
            return;
        }
        if connection.tx.capacity() == 0 {
            connection.tx = self.pool.take();
        }
        dump.walk(&mut *self.engine, self.now, &mut connection.tx);
        self.take_home(dump);
    }

    /// A dump is home again, and its connection has what was found: sends that, and the end of it.
    fn take_home(&mut self, dump: Box<DumpCursor>) {
        let key = dump.connection;
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.closing {
            connection.continuation = None;
        } else if dump.at < self.shared.workers() {
            connection.continuation = Some(Continuation::Home(dump));
        } else {
            connection.continuation = None;
            connection.tx.extend_from_slice(dump.end().as_bytes());
            // A client that has seen the end may begin the next at once.
            drop(dump);
        }
        self.send_and_settle(key);
    }

    /// Takes the dumps that came here: walks on with those of other workers' clients, and welcomes
    /// those of its own.
    pub fn take_dumps(&mut self) {
        while let Some(mut dump) = self.shared.next_dump(self.me) {
            if dump.home != self.me {
                let mut found = std::mem::take(&mut dump.found);
                dump.walk(&mut *self.engine, self.now, &mut found);
                dump.found = found;
                let home = dump.home;
                self.shared.send_dump(home, dump);
            } else if let Some(connection) = self.connections.get_mut(dump.connection) {
                if connection.tx.capacity() == 0 {
                    connection.tx = self.pool.take();
                }
                connection.tx.extend_from_slice(&dump.found);
                dump.found.clear();
                self.take_home(dump);
            }
        }
    }
}
