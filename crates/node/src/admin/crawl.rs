//! The search for expired items that clients request (`lru_crawler crawl`).

use glimmer_base::limits::DUMP_CHAINS_PER_TURN;
use glimmer_engine::{ListCursor, ListScope};

use crate::core::Core;

/// One worker's search for expired items.
#[derive(Default)]
pub(crate) struct Crawler {
    /// The position of the search, if one is in progress.
    cursor: Option<ListCursor>,
    /// Searches started.
    begun: u64,
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

    /// Continues the search, or starts it if it was requested.
    pub fn go_on(&mut self, core: &mut Core) {
        let asked = core.shared.switches.crawls();
        if self.begun != asked {
            self.begun = asked;
            self.cursor = Some(ListCursor::new(ListScope::Owned));
        }
        let Some(cursor) = self.cursor.as_mut() else {
            return;
        };
        match core.engine.expire(core.now, cursor, DUMP_CHAINS_PER_TURN) {
            Some(removed) => {
                core.tally.crawler_reclaimed += removed;
                core.tally.crawler_items_checked += removed;
            }
            None => {
                self.cursor = None;
                // The search has examined all remaining items.
                let figures = core.engine.figures().table();
                core.tally.crawler_items_checked += figures.store.items;
                core.shared.switches.end_crawl();
            }
        }
    }
}
