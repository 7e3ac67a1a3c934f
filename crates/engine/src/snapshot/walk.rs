//! A walk over a worker's partitions that copies their items, some at a time.
//!
//! # What is in a snapshot
//!
//! *Each item that is there throughout.* The walk goes through all chains of a partition's index.
//! It copies a chain while the gate of the partition is held, so that no item is in two states, and
//! none slips from one bucket of the chain to another. From one chain to another, items are moved
//! by the index alone:
//!
//! - A chained index splits chains and joins them. The walk passes places, which a key keeps, and
//!   each chain has neighbouring ones (`index/chained/lookup.rs`).
//! - A cuckoo index moves items to their other bucket. The table notes those that it moves from
//!   ahead of the walk to behind it ([`TableWriter::walk_on`]), and the walk copies them by their
//!   keys.
//!
//! A store under a key that has an item leaves the entry where it is, or is noted too. An item that
//! changes meanwhile is in its state before or after the change. One that the walk meets twice is
//! in the snapshot twice.
//!
//! *Until the flush that is pending.* No item of the snapshot is to outlive a `flush_all` with a
//! delay, which was acknowledged: each expires when that is due, at the latest.
//!
//! *Whole.* A value is copied while the gate is held, or, if it is large, some bytes at a time from
//! where the table [lends](glimmer_store::table::LentValue) it: then no byte of it changes. A value
//! that is lost meanwhile, for lack of memory beside the table, is copied again from its item.
//!
//! [`TableWriter::walk_on`]: glimmer_store::table::TableWriter::walk_on

use super::record::{Fields, Times};
use crate::job::{Engine, ListCursor, ListScope, Visit, Visited};
use glimmer_base::limits::WALK_RESTARTS_MAX;
use glimmer_base::{KeyHasher, Moment};
use glimmer_store::heap::Item;
use glimmer_store::table::LentValue;
use std::collections::VecDeque;

/// How often a value may be lost before it is copied while the gate is held.
const LOSSES_MAX: u32 = 3;

/// A walk over the partitions that one worker owns.
pub struct SnapshotWalk {
    cursor: ListCursor,
    times: Times,
    /// Items that are copied by themselves, and whether they were read.
    later: VecDeque<(Box<[u8]>, bool)>,
    /// One of which a part has been copied.
    large: Option<Large>,
    /// How often the current item was lost.
    losses: u32,
    restarts: u32,
    is_over: bool,
    has_failed: bool,
}

/// An item whose value is being copied.
struct Large {
    key: Box<[u8]>,
    was_read: bool,
    value: Box<dyn LentValue>,
    /// Where the item begins among what was copied.
    begin: usize,
    /// Bytes of the value that have been copied.
    copied: usize,
    /// The value's last bytes.
    rest: Vec<u8>,
}

/// What a step has copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Items that are complete.
    pub items: u32,
    /// Chains of the index that were walked.
    pub chains: u32,
}

impl SnapshotWalk {
    /// The beginning. The epoch of the server's clock is this one by the clock of now, in
    /// milliseconds since 1970.
    pub fn new(epoch_unix_ms: u64) -> SnapshotWalk {
        SnapshotWalk {
            cursor: ListCursor::new(ListScope::Owned),
            times: Times {
                epoch_unix_ms,
                flush_ms: None,
            },
            later: VecDeque::new(),
            large: None,
            losses: 0,
            restarts: 0,
            is_over: false,
            has_failed: false,
        }
    }

    /// Whether all items have been copied, or the walk has failed.
    pub fn is_over(&self) -> bool {
        self.has_failed || self.is_over && self.later.is_empty() && self.large.is_none()
    }

    /// Whether the walk has failed: a table changed faster than it was copied.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether a part of an item stands at the end of what was copied.
    pub fn is_within_item(&self) -> bool {
        self.large.is_some()
    }

    /// Takes a step: appends the items of a chain, or one item, or some of a large one, to `out`,
    /// which holds what was copied since the walk was last not [within an
    /// item](Self::is_within_item). Appends about `bytes_max` bytes of values at most, but one
    /// that cannot be lent as a whole.
    pub fn advance(
        &mut self,
        engine: &mut dyn Engine,
        hasher: &KeyHasher,
        now: Moment,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Copied {
        self.times.flush_ms = engine.flush_pending_ms();
        if let Some(large) = self.large.take() {
            return self.go_on(large, bytes_max, out);
        }
        if let Some(item) = self.later.pop_front() {
            return self.copy_one(item, (engine, hasher), now, bytes_max, out);
        }
        self.copy_chain(engine, now, bytes_max, out)
    }

    /// The walk does not go on.
    pub fn give_up(self, engine: &mut dyn Engine, now: Moment) {
        engine.end_visits(now, &self.cursor);
    }

    fn copy_chain(
        &mut self,
        engine: &mut dyn Engine,
        now: Moment,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Copied {
        let (mut items, mut bytes_left) = (0, bytes_max);
        let (times, later) = (self.times, &mut self.later);
        let mut visit = |visited: Visited<'_>| match visited {
            Visited::Item(item, was_read) => {
                let bytes = item.value().len();
                if bytes > bytes_left {
                    bytes_left = 0;
                    with_key(item, |key| later.push_back((key.into(), was_read)));
                    return;
                }
                bytes_left -= bytes;
                encode(item, was_read, times, out);
                items += 1;
            }
            Visited::Moved(key) => later.push_back((key.into(), false)),
        };
        match engine.visit(now, &mut self.cursor, &mut visit) {
            Visit::Continues => {}
            Visit::Restarts if self.restarts < WALK_RESTARTS_MAX => self.restarts += 1,
            Visit::Restarts => self.has_failed = true,
            Visit::Over => self.is_over = true,
        }
        Copied { items, chains: 1 }
    }

    /// Copies an item by its key, unless it has gone: then it was not there throughout.
    fn copy_one(
        &mut self,
        (key, was_read): (Box<[u8]>, bool),
        (engine, hasher): (&mut dyn Engine, &KeyHasher),
        now: Moment,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Copied {
        let keyhash = hasher.keyhash(&key);
        let (begin, times) = (out.len(), self.times);
        let copy_whole = |engine: &mut dyn Engine, out: &mut Vec<u8>, bytes_max: usize| {
            let (mut items, mut is_large) = (0, false);
            engine.look(now, keyhash, &key, &mut |_, item| {
                let Some(item) = item else { return };
                is_large = item.value().len() > bytes_max;
                if !is_large {
                    encode(&item, was_read, times, out);
                    items = 1;
                }
            });
            (!is_large).then_some(Copied { items, chains: 1 })
        };
        let most = match self.losses < LOSSES_MAX {
            true => bytes_max,
            false => usize::MAX,
        };
        if let Some(copied) = copy_whole(engine, out, most) {
            self.losses = 0;
            return copied;
        }
        let mut rest = Vec::new();
        let mut head = Vec::new();
        let lent = engine.lend(now, keyhash, &key, &mut |item| {
            let (value, lent) = (item.value(), item.whole_bytes());
            rest.clear();
            head.clear();
            value.part(lent, value.len() - lent).append_to(&mut rest);
            let fields = Fields::of(item, was_read, times);
            fields.encode(&key, value.len(), &mut head);
        });
        let Some(value) = lent else {
            return copy_whole(engine, out, usize::MAX).unwrap_or_default();
        };
        out.extend_from_slice(&head);
        let large = Large {
            key,
            was_read,
            value,
            begin,
            copied: 0,
            rest,
        };
        self.go_on(large, bytes_max, out)
    }

    /// Copies some of a large value.
    fn go_on(&mut self, mut large: Large, bytes_max: usize, out: &mut Vec<u8>) -> Copied {
        let to = large.value.bytes().min(large.copied + bytes_max);
        let take = &mut |bytes: &[u8]| out.extend_from_slice(bytes);
        if !large.value.with(large.copied..to, take) {
            out.truncate(large.begin);
            self.losses += 1;
            self.later.push_front((large.key, large.was_read));
            return Copied::default();
        }
        large.copied = to;
        if to < large.value.bytes() {
            self.large = Some(large);
            return Copied::default();
        }
        out.extend_from_slice(&large.rest);
        self.losses = 0;
        Copied {
            items: 1,
            chains: 0,
        }
    }
}

/// Appends an item.
#[inline]
fn encode(item: &Item<'_>, was_read: bool, times: Times, out: &mut Vec<u8>) {
    let value = item.value();
    let fields = Fields::of(item, was_read, times);
    with_key(item, |key| fields.encode(key, value.len(), out));
    value.append_to(out);
}

fn with_key(item: &Item<'_>, take: impl FnOnce(&[u8])) {
    take(item.key(&mut [0; glimmer_base::limits::KEY_BYTES_MAX + 6]));
}
