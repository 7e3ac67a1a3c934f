//! The search for expired items that clients request (`lru_crawler crawl`).

use glimmer_engine::{ListCursor, ListScope};

use crate::core::Core;

/// One worker's search for expired items.
#[derive(Default)]
pub(crate) struct Crawler {
    /// The position of the search, if one is in progress.
    cursor: Option<ListCursor>,
    /// Searches started.
    begun: u64,
    /// The last turn had no allowance left for it.
    is_owed: bool,
}

impl Crawler {
    /// Whether a search is in progress.
    pub fn is_busy(&self) -> bool {
        self.cursor.is_some()
    }

    /// Whether a search was requested that has not started on this worker.
    pub fn is_asked(&self, core: &Core) -> bool {
        self.begun != core.shared.switches.crawls()
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
        if self.is_busy() || self.is_asked(core) {
            self.advance(core);
        }
    }

    #[cold]
    fn advance(&mut self, core: &mut Core) {
        self.is_owed = core.allowance.is_spent();
        if self.is_owed {
            return;
        }
        let asked = core.shared.switches.crawls();
        if self.begun != asked {
            self.begun = asked;
            self.cursor = Some(ListCursor::new(ListScope::Owned));
        }
        let Some(cursor) = self.cursor.as_mut() else {
            return;
        };
        let share = core.allowance.share();
        while core.allowance.has(share) {
            let Some(removed) = core.engine.expire(core.now, cursor, 1) else {
                self.cursor = None;
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
