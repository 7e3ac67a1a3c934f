//! Lists all items for one client (`lru_crawler metadump`, `mgdump`) while other clients are
//! served.
//!
//! The owner of a partition walks its items, some chains of the index at a time. The cursor
//! therefore travels: it is at the client's own worker or at the owner of the current partition,
//! and returns with the items it has found. It continues only when the client has read them, so
//! that it holds no more than [`DUMP_BYTES_HIGH`] and the items of one chain.

use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_base::limits::DUMP_BYTES_HIGH;
use glimmer_base::sync::{AtomicBool, Ordering};
use glimmer_engine::{Engine, ListCursor, ListScope, Listed};
use glimmer_proto::text::dump::{self, Listing};
use glimmer_proto::text::{Dump, lines};

use crate::admin::allowance::Allowance;
use crate::stream::key::ConnectionKey;

/// One client's walk over all items.
pub(crate) struct DumpCursor {
    kind: Dump,
    /// The worker and connection of the waiting client.
    pub home: usize,
    pub connection: ConnectionKey,
    /// The worker whose partitions are being walked.
    pub at: usize,
    cursor: ListCursor,
    /// Lines found at other workers.
    pub found: Vec<u8>,
    _guard: DumpGuard,
}

/// The right to list all items. One client has it at a time, as in memcached.
pub(crate) struct DumpGuard(Arc<AtomicBool>);

impl DumpGuard {
    /// Takes the right, unless it is taken.
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

    /// Continues the walk at the current worker, for its share of the turn's allowance.
    pub fn walk(
        &mut self,
        engine: &mut dyn Engine,
        now: Moment,
        allowance: &mut Allowance,
        out: &mut Vec<u8>,
    ) {
        let write = match self.kind {
            Dump::Meta => dump::metadump,
            Dump::Mg => dump::mgdump,
        };
        let share = allowance.share();
        let mut more = true;
        while more && allowance.has(share) && out.len() < DUMP_BYTES_HIGH {
            let (before, mut lines) = (out.len(), 0);
            let visit = &mut |item: &Listed<'_>| {
                write(out, &listing(item, now));
                lines += 1;
            };
            more = engine.list(now, &mut self.cursor, 1, visit);
            allowance.spend_on_chain(0);
            allowance.spend_on_items(lines, out.len() - before);
        }
        if !more {
            self.at += 1;
            self.cursor = ListCursor::new(ListScope::Owned);
        }
    }

    pub fn end(&self) -> &'static str {
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
