//! Walks over the items that a worker owns, some of them in each turn: the search for expired items
//! that clients request (`lru_crawler crawl`), the sweep after `flush_prefix`, and the copy of a
//! snapshot.

use glimmer_base::sync::Ordering;
use glimmer_engine::{ListCursor, ListScope, SweepCursor};

use super::snapshot::SnapshotPart;
use crate::core::Core;

/// One worker's walks.
#[derive(Default)]
pub(crate) struct Walks {
    /// The position of the search, if one is in progress.
    search: Option<ListCursor>,
    /// Searches started.
    begun: u64,
    /// The position of the sweep, if one is in progress.
    sweep: Option<SweepCursor>,
    snapshot: SnapshotPart,
    /// Calls that it has heard.
    calls: u64,
    /// One of the walks is in progress, and does not wait.
    is_busy: bool,
    /// The last turn had no allowance left for it.
    is_owed: bool,
}

impl Walks {
    /// Whether a walk is in progress.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether a walk was requested that has not started on this worker, or may go on.
    pub fn is_called(&self, core: &Core) -> bool {
        self.calls != core.shared.switches.walk_calls()
    }

    /// Goes on first if the last turn had no allowance left for it.
    #[inline]
    pub fn go_first(&mut self, core: &mut Core) {
        if self.is_owed {
            self.go_on(core);
        }
    }

    /// Goes on with what is left of the turn's allowance, or starts if that was requested.
    #[inline]
    pub fn go_on(&mut self, core: &mut Core) {
        if self.is_busy() || self.is_called(core) {
            self.advance(core);
        }
    }

    #[cold]
    fn advance(&mut self, core: &mut Core) {
        self.is_owed = core.allowance.is_spent();
        if self.is_owed {
            return;
        }
        let calls = core.shared.switches.walk_calls();
        if self.calls != calls {
            self.calls = calls;
            self.snapshot.note_call(core);
            self.look_for_groups(core);
        }
        let asked = core.shared.switches.crawls();
        if self.begun != asked {
            self.begun = asked;
            self.search = Some(ListCursor::new(ListScope::Owned));
        }
        self.search(core);
        self.sweep(core);
        self.snapshot.advance(core);
        let is_walking = self.search.is_some() || self.sweep.is_some();
        self.is_busy = is_walking || self.snapshot.is_busy();
    }

    /// Begins a sweep if groups wait for one. A worker looks each second beside when it is called,
    /// as it may have come to own a partition that another one has not swept.
    pub fn look_for_groups(&mut self, core: &Core) {
        note_groups(core);
        if self.sweep.is_none() && core.engine.groups_unswept() > 0 {
            self.sweep = Some(SweepCursor::default());
            self.is_busy = true;
        }
    }

    /// Removes items of groups that were invalidated.
    fn sweep(&mut self, core: &mut Core) {
        let Some(cursor) = self.sweep.as_mut() else {
            return;
        };
        let share = core.allowance.share();
        while core.allowance.has(share) {
            let Some(removed) = core.engine.sweep(core.now, cursor) else {
                self.sweep = None;
                note_groups(core);
                return;
            };
            core.allowance.spend_on_chain(removed);
        }
    }

    /// Removes expired items.
    fn search(&mut self, core: &mut Core) {
        let Some(cursor) = self.search.as_mut() else {
            return;
        };
        let share = core.allowance.share();
        while core.allowance.has(share) {
            let Some(removed) = core.engine.expire(core.now, cursor, 1) else {
                self.search = None;
                // The search has examined all remaining items.
                let figures = core.engine.figures().table();
                core.tally.crawler_items_checked += figures.store.items;
                core.shared.switches.end_crawl();
                return;
            };
            core.allowance.spend_on_chain(removed);
            core.tally.crawler_reclaimed += removed;
            core.tally.crawler_items_checked += removed;
        }
    }
}

/// Has operators see how many groups wait for a sweep.
fn note_groups(core: &Core) {
    let unswept = core.engine.groups_unswept();
    (core.shared.switches.groups_unswept).store(unswept, Ordering::Relaxed);
}
