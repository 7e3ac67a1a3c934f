//! Lists all items for one client (`lru_crawler metadump`, `mgdump`) while other clients are
//! served, and does what else goes from worker to worker for a client.
//!
//! The owner of a partition walks its items, some chains of the index at a time. The cursor
//! therefore travels: it is at the client's own worker or at the owner of the current partition,
//! and returns with the items it has found. It continues only when the client has read them, so
//! that it holds no more than [`DUMP_BYTES_HIGH`] and the items of one chain.

use glimmer_base::Moment;
use glimmer_base::limits::DUMP_BYTES_HIGH;
use glimmer_dispatch::Layout;
use glimmer_engine::{Engine, ListCursor, ListScope, Listed};
use glimmer_proto::Words;
use glimmer_proto::control::Scan;
use glimmer_proto::text::dump::{self, Listing};
use glimmer_proto::text::{Dump, lines};

use crate::admin::allowance::Allowance;
use crate::admin::guard::DumpGuard;
use crate::admin::keys::{self, Keys};
use crate::admin::observe::Usage;
use crate::admin::random_key::RandomKey;
use crate::admin::survey::Survey;
use crate::admin::switches::Switches;
use crate::admin::transfer::Transfer;
use crate::stream::key::ConnectionKey;

/// One client's walk over all items.
pub(crate) struct DumpCursor {
    kind: Kind,
    /// The worker and connection of the waiting client.
    pub home: usize,
    pub connection: ConnectionKey,
    /// The worker whose partitions are being walked.
    pub at: usize,
    cursor: ListCursor,
    /// Lines found at other workers.
    pub found: Vec<u8>,
}

/// What is listed.
enum Kind {
    /// A line for each item, by the client that has the right to.
    Lines(Dump, #[expect(dead_code, reason = "it is held")] DumpGuard),
    /// Keys that fit a pattern.
    Keys(Keys),
    /// Counts by key prefix.
    Prefixes(Box<Survey>),
    /// Any key.
    RandomKey(RandomKey),
    /// Nothing: an item gets another key.
    Transfer(Transfer),
}

impl DumpCursor {
    pub fn new(kind: Dump, guard: DumpGuard, home: usize, connection: ConnectionKey) -> DumpCursor {
        DumpCursor {
            kind: Kind::Lines(kind, guard),
            home,
            connection,
            at: 0,
            cursor: ListCursor::new(ListScope::Owned),
            found: Vec::new(),
        }
    }

    /// A walk that counts items by key prefix, for a reply with these counts of requests.
    pub fn prefixes(usage: Usage, home: usize, connection: ConnectionKey) -> DumpCursor {
        DumpCursor {
            kind: Kind::Prefixes(Box::new(Survey::new(usage))),
            home,
            connection,
            at: 0,
            cursor: ListCursor::new(ListScope::Owned),
            found: Vec::new(),
        }
    }

    /// A walk for keys, from the client's cursor on.
    pub fn keys(
        scan: &Scan<'_>,
        words: Words,
        (home, layout): (usize, Layout),
        connection: ConnectionKey,
    ) -> DumpCursor {
        let cursor = keys::place(scan.page.map_or(0, |(cursor, _)| cursor));
        let at = owner(layout, &cursor);
        DumpCursor {
            kind: Kind::Keys(Keys::new(scan, words)),
            home,
            connection,
            at,
            cursor,
            found: Vec::new(),
        }
    }

    /// A search for any key; `random` is a random number.
    pub fn random_key(
        words: Words,
        random: u64,
        (home, layout): (usize, Layout),
        connection: ConnectionKey,
    ) -> DumpCursor {
        let (search, cursor) = RandomKey::new(words, random, layout);
        DumpCursor {
            kind: Kind::RandomKey(search),
            home,
            connection,
            at: owner(layout, &cursor),
            cursor,
            found: Vec::new(),
        }
    }

    /// An item that gets another key, beginning at this worker.
    pub fn transfer(
        (transfer, at): (Transfer, usize),
        home: usize,
        connection: ConnectionKey,
    ) -> DumpCursor {
        DumpCursor {
            kind: Kind::Transfer(transfer),
            home,
            connection,
            at,
            cursor: ListCursor::new(ListScope::Owned),
            found: Vec::new(),
        }
    }

    /// Whether the walk may go on now. What takes much memory is done for one client at a time,
    /// which takes the right to.
    pub fn may_walk(&mut self, switches: &Switches, now_ms: u64) -> bool {
        let gathers = || switches.take_gathering(now_ms);
        match &mut self.kind {
            Kind::Lines(..) | Kind::RandomKey(_) => true,
            Kind::Keys(keys) => keys.may_gather(gathers),
            Kind::Prefixes(survey) => survey.may_gather(gathers),
            Kind::Transfer(transfer) => transfer.may_begin(|| DumpGuard::take(&switches.is_moving)),
        }
    }

    /// Whether it is a listing of all items, which takes as long as its client takes to read it.
    pub fn is_listing(&self) -> bool {
        matches!(self.kind, Kind::Lines(..))
    }

    /// Whether it has the right to gather what takes much memory, for which others wait.
    pub fn has_right_to_gather(&self) -> bool {
        match &self.kind {
            Kind::Keys(keys) => keys.has_right(),
            Kind::Prefixes(survey) => survey.has_right(),
            Kind::Lines(..) | Kind::RandomKey(_) | Kind::Transfer(_) => false,
        }
    }

    /// Whether others may wait for a right that ends with this walk.
    pub fn is_awaited(&self) -> bool {
        matches!(&self.kind, Kind::Transfer(transfer) if transfer.has_travelled())
    }

    /// Whether the walk of the partitions of this many workers has come to its end.
    pub fn is_over(&self, workers: usize) -> bool {
        let has_enough = match &self.kind {
            Kind::Lines(..) | Kind::Prefixes(_) => false,
            Kind::Keys(keys) => keys.has_enough(),
            Kind::RandomKey(search) => search.is_found(),
            Kind::Transfer(transfer) => transfer.is_over(),
        };
        self.at >= workers || has_enough
    }

    /// Continues the walk at the current worker, for its share of the turn's allowance.
    pub fn walk(
        &mut self,
        engine: &mut dyn Engine,
        now: Moment,
        allowance: &mut Allowance,
        out: &mut Vec<u8>,
    ) {
        let share = allowance.share();
        let mut more = true;
        let (kind, out) = match &mut self.kind {
            Kind::Lines(kind, _) => (*kind, out),
            Kind::Prefixes(survey) => {
                while more && allowance.has(share) {
                    let mut items = 0;
                    let visit = &mut |item: &Listed<'_>| {
                        survey.visit(item);
                        items += 1;
                    };
                    more = engine.list(now, &mut self.cursor, 1, visit);
                    allowance.spend_on_chain(0);
                    allowance.spend_on_items(items, 0);
                }
                if !more {
                    self.at += 1;
                    self.cursor = ListCursor::new(ListScope::Owned);
                }
                return;
            }
            Kind::RandomKey(search) => {
                let (here, layout) = (self.at, engine.layout());
                while self.at == here && allowance.has(share) && !search.is_found() {
                    let (partition, _) = self.cursor.place();
                    engine.list(now, &mut self.cursor, 1, &mut |item| search.visit(item));
                    search.end_chain(partition, layout.map.partitions(), &mut self.cursor);
                    self.at = owner(layout, &self.cursor);
                    allowance.spend_on_chain(0);
                }
                return;
            }
            Kind::Transfer(transfer) => {
                self.at = transfer.advance(engine, now, self.at);
                allowance.spend_on_command(0);
                return;
            }
            Kind::Keys(keys) => {
                let (here, layout) = (self.at, engine.layout());
                while self.at == here && allowance.has(share) && !keys.has_enough() {
                    let (before, mut lines) = (keys.bytes(), 0);
                    let visit = &mut |item: &Listed<'_>| {
                        keys.visit(item);
                        lines += 1;
                    };
                    engine.list(now, &mut self.cursor, 1, visit);
                    // A client's cursor goes through all partitions, and not only the worker's own.
                    self.at = owner(layout, &self.cursor);
                    keys.end_chain();
                    allowance.spend_on_chain(0);
                    allowance.spend_on_items(lines, keys.bytes() - before);
                    allowance.spend_on_steps(keys.take_steps());
                }
                return;
            }
        };
        let write = match kind {
            Dump::Meta => dump::metadump,
            Dump::Mg => dump::mgdump,
        };
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

    /// Appends the end of a reply for which the partitions of `workers` workers were walked, or its
    /// next piece. Returns whether it was the last.
    pub fn end(&mut self, workers: usize, out: &mut Vec<u8>) -> bool {
        let line = match &mut self.kind {
            Kind::Lines(Dump::Meta, _) => lines::END,
            Kind::Lines(Dump::Mg, _) => lines::META_END,
            Kind::Keys(keys) => {
                let next = (self.at < workers).then_some(&self.cursor);
                return keys.send(next, out);
            }
            Kind::Prefixes(survey) => return survey.send(out),
            Kind::RandomKey(search) => {
                search.answer(out);
                return true;
            }
            Kind::Transfer(transfer) => {
                transfer.answer(out);
                return true;
            }
        };
        out.extend_from_slice(line.as_bytes());
        true
    }
}

/// The worker that owns the partition at which a walk stands; none has this number after the last.
fn owner(layout: Layout, cursor: &ListCursor) -> usize {
    let (partition, _) = cursor.place();
    match partition < layout.map.partitions() {
        true => layout.map.owner_of(partition),
        false => usize::MAX,
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
