//! A worker's part in a snapshot: it copies the items that it owns.

use std::sync::Arc;

use glimmer_base::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_CHAIN_BYTES, SNAPSHOT_SHARE_NS};
use glimmer_base::{KeyHasher, Moment};
use glimmer_engine::Engine;
use glimmer_engine::snapshot::SnapshotWalk;

use super::feed::{Portion, SnapshotFeed};
use crate::core::Core;

/// What a worker does for snapshots.
#[derive(Default)]
pub(super) struct SnapshotPart {
    /// The number of the last snapshot that it has begun to copy for.
    number: u64,
    copying: Option<Copying>,
}

struct Copying {
    feed: Arc<SnapshotFeed>,
    walk: SnapshotWalk,
    portion: Portion,
    /// There was no room for the portion.
    is_waiting: bool,
}

impl SnapshotPart {
    /// Whether there is something to be copied now.
    pub fn is_busy(&self) -> bool {
        (self.copying.as_ref()).is_some_and(|copying| !copying.is_waiting)
    }

    /// The worker was called: a snapshot begins, or there is room again.
    pub fn note_call(&mut self, core: &Core) {
        if let Some(copying) = &mut self.copying {
            copying.is_waiting = false;
        }
        let (number, feed) = core.shared.snapshots.latest();
        if self.copying.is_none() && number != self.number {
            self.number = number;
            self.copying = feed.map(|feed| Copying {
                walk: SnapshotWalk::new(feed.epoch_unix_ms()),
                feed,
                portion: Portion::default(),
                is_waiting: false,
            });
        }
    }

    /// Copies items, for a share of what is left of the turn's allowance.
    pub fn advance(&mut self, core: &mut Core) {
        let Some(mut copying) = self.copying.take() else {
            return;
        };
        if copying.feed.is_cancelled() {
            copying.walk.give_up(&mut *core.engine, core.now);
            return;
        }
        let share = core.allowance.share_of(SNAPSHOT_SHARE_NS);
        while core.allowance.has(share) {
            if copying.is_full() && !copying.feed.offer(&mut copying.portion) {
                copying.is_waiting = true;
                break;
            }
            if copying.walk.is_over() {
                if copying.portion.items > 0 {
                    // What is left is handed over first.
                    copying.is_waiting = !copying.feed.offer(&mut copying.portion);
                    if copying.is_waiting {
                        break;
                    }
                }
                copying.finish(&mut *core.engine, core.now);
                return;
            }
            let before = copying.portion.bytes.len();
            let (engine, now) = (&mut *core.engine, core.now);
            let (items, chains) = copying.step(engine, &core.hasher, now, SNAPSHOT_CHAIN_BYTES);
            let bytes = copying.portion.bytes.len().saturating_sub(before);
            core.allowance.spend_on_copies(chains, items, bytes);
        }
        self.copying = Some(copying);
    }
}

impl Copying {
    /// Whether the portion is to be handed over.
    fn is_full(&self) -> bool {
        self.portion.bytes.len() >= SNAPSHOT_BLOCK_BYTES && !self.walk.is_within_item()
    }

    /// Returns the items and chains of the step.
    fn step(
        &mut self,
        engine: &mut dyn Engine,
        hasher: &KeyHasher,
        now: Moment,
        bytes_max: usize,
    ) -> (u32, u32) {
        let out = &mut self.portion.bytes;
        let copied = self.walk.advance(engine, hasher, now, bytes_max, out);
        self.portion.items += copied.items;
        (copied.items, copied.chains)
    }

    fn finish(self, engine: &mut dyn Engine, now: Moment) {
        let is_complete = !self.walk.has_failed();
        self.walk.give_up(engine, now);
        self.feed.finish(is_complete.then(|| engine.highest_cas()));
    }
}

/// Copies all items that a worker owns, while nothing else uses the store.
pub fn copy_all(engine: &mut dyn Engine, hasher: &KeyHasher, now: Moment, feed: Arc<SnapshotFeed>) {
    let mut copying = Copying {
        walk: SnapshotWalk::new(feed.epoch_unix_ms()),
        feed,
        portion: Portion::default(),
        is_waiting: false,
    };
    while !copying.walk.is_over() && !copying.feed.is_cancelled() {
        copying.step(engine, hasher, now, usize::MAX);
        if copying.is_full() {
            copying.feed.hand_over(&mut copying.portion);
        }
    }
    if copying.portion.items > 0 {
        copying.feed.hand_over(&mut copying.portion);
    }
    copying.finish(engine, now);
}
