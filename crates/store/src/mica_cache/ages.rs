//! How old the items of a partition are, for statistics. The writer finds it out at most once a
//! second.

use super::Writer;
use crate::access::Access;
use crate::index::LogId;
use crate::table::Ages;
use glimmer_base::Moment;
use glimmer_base::counter::Counter;

/// [`Ages`] as the writer shows them to other threads. Each figure is one more than it says; 0
/// means none.
#[derive(Default)]
pub(super) struct SharedAges {
    oldest_s: Counter,
    evicted_after_s: Counter,
}

impl SharedAges {
    pub fn get(&self) -> Ages {
        Ages {
            oldest_s: self.oldest_s.get().checked_sub(1),
            evicted_after_s: self.evicted_after_s.get().checked_sub(1),
        }
    }
}

impl<A: Access> Writer<'_, A> {
    /// Shows how old the items are, as the calendars tell, and how much memory is dead.
    #[cold]
    pub(super) fn show_ages(&mut self, now: Moment) {
        let head_s = |id: LogId| {
            let (log, calendar) = (self.log(id), &self.state.calendars[id as usize]);
            let second = calendar.second_of(log.head(), log.head(), log.geometry());
            second.map(u64::from)
        };
        let dead_bytes = 8 * self.dead_words();
        self.shared.common.counters.dead_bytes.set(dead_bytes);
        let ages = &self.shared.heap.ages;
        let oldest = [LogId::Main, LogId::Small].map(head_s);
        if let Some(second) = oldest.into_iter().flatten().min() {
            ages.oldest_s.set(second + 1);
        }
        // The item that left last lay just before the head.
        if let Some(second) = self.state.evicted_from.and_then(head_s) {
            let age = (now.ms / 1000).saturating_sub(second);
            ages.evicted_after_s.set(age + 1);
        }
        self.state.evicted_from = None;
    }
}
