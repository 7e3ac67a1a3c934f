//! Looking ahead of a log's head: which keys come next, so that their buckets are in the cache when
//! the head asks whether they are still indexed.

use super::Shared;
use crate::heap::{CircularLog, Geometry, Header, Item, Offset};
use crate::table::Index;
use crate::work;
use glimmer_base::{Expiry, Keyhash, Moment};

/// How many items ahead of the head are looked at.
const AHEAD: usize = 8;

/// A walk that runs a few items ahead of the head. It only ever stops at items, never at fillers:
/// an item and the fillers after it may be joined by an update in place, so that a filler's place
/// is no boundary for good.
#[derive(Clone, Copy)]
pub(super) struct Lookahead {
    next: Offset,
    ring: [Ahead; AHEAD],
    first: usize,
    count: usize,
    /// The first of the times in the ring.
    soonest_ms: u64,
}

/// An item that the head comes to soon.
#[derive(Clone, Copy)]
struct Ahead {
    at: Offset,
    keyhash: Keyhash,
    /// When it expires, in milliseconds after the epoch.
    due_ms: u64,
}

/// The time of an item that does not expire.
const NEVER_MS: u64 = u64::MAX;

impl Lookahead {
    /// Nothing is known; the walk goes on from `head`.
    pub fn at(head: Offset) -> Lookahead {
        Lookahead {
            next: head,
            ring: [Ahead {
                at: head,
                keyhash: Keyhash(0),
                due_ms: NEVER_MS,
            }; AHEAD],
            first: 0,
            count: 0,
            soonest_ms: NEVER_MS,
        }
    }

    /// Whether an item that is known to lie ahead has expired. Its expiry may have changed since.
    #[inline(always)]
    pub fn meets_expired(&self, now: Moment) -> bool {
        self.soonest_ms <= now.ms
    }

    /// Walks on until enough items are known, and fetches the bucket of each.
    #[inline]
    pub fn top_up(
        &mut self,
        shared: &Shared,
        (log, geometry): (&CircularLog, Geometry),
        tail: Offset,
    ) {
        if self.count == 0 {
            // Left at a filler, the walk would lag when the head goes on, and then stand in the
            // middle of the next item.
            self.next = skip_fillers((log, geometry), self.next, tail);
        }
        while self.count < AHEAD && self.next != tail {
            let Some(item) = Item::read(log.place(geometry.position(self.next))) else {
                break;
            };
            let keyhash = shared.common.keyhash(&item);
            shared.index.prefetch(shared.index.home(keyhash));
            let nth = (self.first + self.count) % AHEAD;
            let due_ms = match item.expiry() {
                Expiry::NEVER => NEVER_MS,
                expiry => expiry.ms(),
            };
            self.ring[nth] = Ahead {
                at: self.next,
                keyhash,
                due_ms,
            };
            self.soonest_ms = self.soonest_ms.min(due_ms);
            self.count += 1;
            let behind = geometry.advance(self.next, item.words() as u64);
            self.next = skip_fillers((log, geometry), behind, tail);
            log.prefetch(geometry.position(self.next) + 24);
        }
    }

    /// The tail has gone on at another place.
    pub fn tail_moved(&mut self, from: Offset, to: Offset) {
        if self.next == from {
            self.next = to;
        }
    }

    /// The keyhash of the item at the head.
    #[inline]
    pub fn take(
        &mut self,
        shared: &Shared,
        head: Offset,
        item: &Item<'_>,
        after: Offset,
    ) -> Keyhash {
        let first = self.ring[self.first];
        if self.count > 0 && first.at == head {
            self.first = (self.first + 1) % AHEAD;
            self.count -= 1;
            if first.due_ms == self.soonest_ms && first.due_ms != NEVER_MS {
                let rest = (0..self.count).map(|nth| self.ring[(self.first + nth) % AHEAD].due_ms);
                self.soonest_ms = rest.min().unwrap_or(NEVER_MS);
            }
            return first.keyhash;
        }
        *self = Lookahead::at(after);
        shared.common.keyhash(item)
    }
}

/// The first place from `at` on that is not a filler.
pub(super) fn skip_fillers(
    (log, geometry): (&CircularLog, Geometry),
    mut at: Offset,
    tail: Offset,
) -> Offset {
    while at != tail {
        let header = Header::read(log.place(geometry.position(at)));
        if !header.is_filler() {
            break;
        }
        debug_assert!(header.filler_words() > 0, "a filler has a length");
        work::examined(1);
        at = geometry.advance(at, header.filler_words());
    }
    at
}
