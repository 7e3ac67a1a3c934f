//! The index follows the items: it grows at the main log's expense, and gives back what it does not
//! need.
//!
//! How many items a gibibyte holds, and so how many buckets they need, depends on how large they
//! are. Log and index share one piece of memory: the log has its beginning, the index its end, and
//! the *border* between them moves, a bucket at a time.
//!
//! *Growing.* Whenever stores use up spare buckets faster than they should be needed, main buckets
//! are split ([`index::chained`](crate::index::chained)). While the log fills for the first time,
//! or after a flush, nothing lies between its tail and the border, and the memory is there. Later
//! the log's items lie there. Then the lap gets a [`Goal`] before the end of the lap before it.
//! When the tail comes to the goal nothing lives after it, and the index may have that memory.
//!
//! *Shrinking.* When the buckets have become nearly empty (items are larger, or gone) the scan
//! merges them, and the log's next lap goes as far as the border then lies. Until no reader may
//! write to the buckets any more, it goes no further than before
//! ([`Border`](crate::index::chained::Border)).

use super::goal::Goal;
use super::{Shared, Writer};
use crate::access::Access;
use crate::index::LogId;
use crate::table::Heap;
use glimmer_base::limits::BUCKETS_ADDED_PER_STORE_MAX;

/// Share of its spare buckets, in percent, that an index uses before it grows. An index that waits
/// longer loses entries of chains that find no spare bucket before it has grown.
const SPARES_USED_PERCENT: usize = 95;
/// Share of its spare buckets, in percent, that an index uses before the chains of evicted items
/// are looked at for spare buckets that they need no longer, so that it does not grow for those.
const SPARES_LACKED_PERCENT: usize = 90;
/// An index with fewer spare buckets than this leaves all of them to the scan, which comes to every
/// chain soon.
const SPARES_LACKED_MIN: usize = 16;
/// The log gives up at least this part of the index's size in a lap, if it gives up anything.
const LEAST_PART: u64 = 64;
/// An index that loses more than this part of its items in a lap is too small.
const LOST_PART: u64 = 32;
/// While the index takes less than this part of the memory, it also grows so that items which have
/// left are remembered for longer.
const GHOSTS_PART: u64 = 32;
/// Words of the index that one item needs, spare buckets included.
const WORDS_PER_ITEM: u64 = 2;
/// The log keeps at least this part of the memory.
const LOG_PART_MIN: u64 = 2;

/// After a flush the log goes on at its beginning if it has come at least this part of its way,
const RESTART_PART: u64 = 16;
/// and if its offsets hold this many laps: several times as many as may pass before the scan has
/// been round once.
const RESTART_LAPS_MIN: u64 = 8 * RESTART_PART;

/// What the writer knows of the index's growth.
pub(super) struct Growth {
    /// Whether the index follows the items at all.
    follows: bool,
    /// A store had to take a spare bucket, or found none.
    pub is_wanted: bool,
    /// A store took the entry of an item that was to be remembered.
    pub is_for_ghosts: bool,
    goal: Option<Goal>,
    /// Whether buckets were idle when the lap began: what is so for a while only, after many items
    /// were removed, say, is no reason to shrink.
    was_idle: bool,
    /// Items that the index had lost for want of buckets when the lap began.
    lost_before: u64,
}

impl Growth {
    pub fn new(follows: bool) -> Growth {
        Growth {
            follows,
            is_wanted: false,
            is_for_ghosts: false,
            goal: None,
            was_idle: false,
            lost_before: 0,
        }
    }

    /// Whether the head of a log has to run ahead of need.
    #[inline(always)]
    pub fn has_goal(&self, id: LogId) -> bool {
        id == LogId::Main && self.goal.is_some()
    }
}

impl Shared {
    fn is_idle(&self) -> bool {
        self.index.is_idle(self.common.counters.items.get())
    }

    fn is_pressed(&self) -> bool {
        self.uses_spares(SPARES_USED_PERCENT)
    }

    /// Whether spare buckets are to be taken from chains that need them no longer.
    pub(super) fn lacks_spares(&self) -> bool {
        self.index.spares() >= SPARES_LACKED_MIN && self.uses_spares(SPARES_LACKED_PERCENT)
    }

    fn uses_spares(&self, percent: usize) -> bool {
        let used = self.common.counters.spares_used.get() as usize;
        used * 100 >= self.index.spares() * percent
    }
}

impl<A: Access> Writer<'_, A> {
    /// By how many words the head of a log has to be ahead of the tail, beyond what an append
    /// needs.
    pub(super) fn gap(&self, id: LogId) -> u64 {
        match self.state.growth.goal {
            Some(goal) if id == LogId::Main && self.geometry(id).lap_end().is_some() => {
                goal.lead_at(self.position(id, self.tail(id)))
            }
            _ => 0,
        }
    }

    /// Whether the index has lost a good part of the items in this lap, for want of buckets.
    pub(super) fn index_loses_many(&self) -> bool {
        let counters = &self.shared.common.counters;
        self.index_lost() * LOST_PART > counters.items.get()
    }

    /// Items that the index has lost in this lap.
    fn index_lost(&self) -> u64 {
        let counters = &self.shared.common.counters;
        counters.index_evictions.get() - self.state.growth.lost_before
    }

    /// Whether the index may take memory so that items which have left are remembered for longer.
    pub(super) fn has_room_for_ghosts(&self) -> bool {
        self.state.growth.follows
            && self.shared.index.words() as u64 * GHOSTS_PART < self.limit(LogId::Main)
    }

    /// A lap of the main log has begun: it goes as far as the index leaves room.
    pub(super) fn begin_lap(&mut self) {
        let shared = self.shared;
        self.state.growth.goal = None;
        self.state.growth.was_idle = shared.is_idle();
        self.state.growth.lost_before = shared.common.counters.index_evictions.get();
        self.border_moved();
        self.give_to_others();
    }

    /// Has the main log, which is empty, go on at its beginning: all that is free then lies before
    /// the index, which may grow into it. Else what comes to lie at the beginning would come
    /// without buckets for it. A lap that has hardly begun goes on, so that laps are paid for by
    /// appends, and with them the scan for stale entries.
    pub(super) fn restart_lap(&mut self) {
        let id = LogId::Main;
        let (tail, geometry) = (self.tail(id), self.geometry(id));
        let is_far = self.position(id, tail) * RESTART_PART >= self.limit(id);
        if self.state.growth.follows && is_far && geometry.laps() >= RESTART_LAPS_MIN {
            self.end_lap(id);
        }
    }

    /// Lets the log go as far as it may by now.
    fn border_moved(&mut self) {
        let (shared, border) = (self.shared, &mut self.state.border);
        border.follow(&shared.index, self.seat);
        self.follow_border();
        self.limit_main();
    }

    /// The main log goes to its goal, or to the end of its memory.
    pub(super) fn limit_main(&mut self) {
        let (end, goal) = (self.state.share.log_end(), self.state.growth.goal);
        let goal = goal.map_or(end, |goal| goal.position());
        self.set_limit(LogId::Main, end.min(goal));
    }

    /// Splits buckets until spare ones are used as they should be, or asks the log for memory to do
    /// so.
    #[cold]
    pub(super) fn grow(&mut self) {
        self.state.growth.is_wanted = false;
        let is_for_ghosts = std::mem::take(&mut self.state.growth.is_for_ghosts);
        let shared = self.shared;
        for _ in 0..BUCKETS_ADDED_PER_STORE_MAX {
            let is_pressed = shared.is_pressed() || is_for_ghosts && self.has_room_for_ghosts();
            if !self.state.growth.follows || !is_pressed {
                return;
            }
            let geometry = self.geometry(LogId::Main);
            let tail = self.position(LogId::Main, self.tail(LogId::Main));
            let kept = geometry.lap_end().unwrap_or(tail).max(self.log_words_min());
            let end = self.index_end(kept);
            let spares = &mut self.state.spares;
            let is_kept = |entry| !shared.is_forgotten(entry);
            let grown = (shared.index).grow(end as usize, spares, is_kept, A::SHARED_READS);
            let Some(spares_freed) = grown else {
                if shared.index.may_grow() && self.claim_for_index(kept) {
                    continue;
                }
                return self.set_goal();
            };
            shared.common.counters.spares_used.sub(spares_freed as u64);
            shared.common.counters.buckets_added.add(1);
            self.border_moved();
        }
    }

    fn log_words_min(&self) -> u64 {
        let log = self.log(LogId::Main);
        (self.state.share.words() / LOG_PART_MIN).max(2 * log.item_words_max() as u64)
    }

    /// Has the lap end earlier than the one before it, by what the index has lacked so far.
    fn set_goal(&mut self) {
        let Some(end) = self.geometry(LogId::Main).lap_end() else {
            // The tail is about to come to the border: the next lap will be another matter.
            return;
        };
        let shared = self.shared;
        let wanted =
            (self.index_lost() * WORDS_PER_ITEM).max(shared.index.words() as u64 / LEAST_PART);
        let places = (self.position(LogId::Main, self.tail(LogId::Main)), end);
        let before = self.state.growth.goal;
        self.aim(Goal::new(before, places, wanted, self.log_words_min()));
    }

    /// Has the lap end at a goal, if it is not to keep the one that it has.
    pub(super) fn aim(&mut self, goal: Option<Goal>) {
        if goal.is_some() {
            self.state.growth.goal = goal;
            self.border_moved();
        }
    }

    /// Merges the last bucket with the one it was split from, if buckets are idle.
    pub(super) fn shrink(&mut self) {
        let shared = self.shared;
        if self.state.border.is_withheld() {
            self.border_moved();
        }
        if let Some(beyond) = self.state.share.gives_beyond {
            self.give_back(beyond);
        }
        let Growth {
            follows, was_idle, ..
        } = self.state.growth;
        if !follows || !was_idle || !shared.is_idle() {
            return;
        }
        let is_live = |entry| shared.heap.is_live(entry);
        let spares = &mut self.state.spares;
        if let Some(spares_freed) = shared.index.shrink(spares, is_live, A::SHARED_READS) {
            shared.common.counters.spares_used.sub(spares_freed as u64);
            shared.common.counters.buckets_merged.add(1);
            self.state.search.soonest.spoil_round();
            self.border_moved();
        }
    }
}
