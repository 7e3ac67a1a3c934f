//! Where items lie, one log or two, and which entries are live.

use super::ages::SharedAges;
use super::place::{name_of, named};
use super::share::Claimed;
use super::{Shared, Writer};
use crate::access::Access;
use crate::evict::{Learner, Rule, Setting};
use crate::heap::{CircularLog, Geometry, Offset};
use crate::index::chained::ChainedIndex;
use crate::index::{Entry, LogId};
use crate::memory::PagesAhead;
use crate::memory::Words;
use crate::table::{Ages, Heap};
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, weakened};
use std::ops::Range;
use std::sync::Arc;

/// The logs, by [`LogId`]. The main one has the index in the same memory, after its end.
pub struct Logs {
    /// Under rules with one log the second holds no items.
    pub(super) logs: [CircularLog; 2],
    /// Offsets between which the last flush found items.
    pub(super) flushed_from: [AtomicU64; 2],
    /// See [`flushed_from`](Self::flushed_from).
    pub(super) flushed_to: [AtomicU64; 2],
    pub(super) ages: SharedAges,
    pub(super) rule: Rule,
    pub(super) claimed: Claimed,
    pub(super) pages_ahead: Option<PagesAhead>,
    /// Has the setting of the rule.
    pub(super) learner: Arc<Learner>,
}

impl Logs {
    #[inline(always)]
    pub(super) fn log(&self, id: LogId) -> &CircularLog {
        &self.logs[id as usize]
    }

    /// What becomes of new items and of used ones, as things stand.
    #[inline(always)]
    pub(super) fn setting(&self) -> Setting {
        self.learner.setting()
    }
}

impl Heap for Logs {
    type Index = ChainedIndex;

    #[inline(always)]
    fn learner(&self) -> Option<&Learner> {
        Some(&self.learner)
    }

    fn loan_name(&self, entry: Entry) -> u64 {
        name_of(entry.log(), entry.offset())
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.log(LogId::Main).item_words_max()
    }

    /// The head has not come to a live item.
    #[inline(always)]
    fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && self.is_tagged_live(entry)
    }

    #[inline(always)]
    fn is_tagged_live(&self, entry: Entry) -> bool {
        self.log(entry.log()).is_live(entry.offset_and_more())
    }

    #[inline(always)]
    fn is_still_live(&self, entry: Entry) -> bool {
        weakened("head_recheck") || self.log(entry.log()).is_live(entry.offset_and_more())
    }

    fn was_flushed(&self, entry: Entry) -> bool {
        let id = entry.log() as usize;
        let [from, to] = [&self.flushed_from, &self.flushed_to]
            .map(|offsets| Offset::from_raw(offsets[id].load(Relaxed)));
        let (geometry, offset) = (self.logs[id].geometry(), entry.offset());
        !entry.is_empty()
            && from != to
            && geometry.is_live(offset, from)
            && geometry.distance(from, offset) < geometry.distance(from, to)
    }

    #[inline(always)]
    fn words(&self, entry: Entry) -> Words<'_> {
        let log = self.log(entry.log());
        log.place(log.geometry().position(entry.offset_and_more()))
    }

    #[inline(always)]
    fn prefetch(&self, entry: Entry, word: usize) {
        let log = self.log(entry.log());
        log.prefetch(log.geometry().position(entry.offset_and_more()) + word);
    }

    #[inline(always)]
    fn reads_counted(&self) -> u8 {
        self.rule.reads_counted
    }

    #[inline(always)]
    fn moves_what_is_read(&self) -> bool {
        self.rule.reinsertion_threshold.is_some()
    }

    fn ages(&self) -> Ages {
        self.ages.get()
    }

    fn bytes(&self, index: &ChainedIndex) -> u64 {
        8 * self.claimed.words().saturating_sub(index.words() as u64)
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        self.logs.iter().map(CircularLog::addresses).collect()
    }
}

impl Shared {
    #[inline(always)]
    pub(super) fn log(&self, id: LogId) -> &CircularLog {
        self.heap.log(id)
    }
}

impl<A: Access> Writer<'_, A> {
    /// Gives up what lies before `head`. If that is all of the lap before the tail's, there is one
    /// lap now.
    #[inline(always)]
    pub(super) fn set_head(&mut self, id: LogId, head: Offset) {
        self.log(id).publish_head(head, A::SHARED_READS);
        if self.state.passed_large[id as usize] {
            self.end_loans(id);
        }
        let geometry = self.geometry(id);
        if geometry.is_same_lap(head, self.tail(id)) {
            self.state.geometry[id as usize] = geometry.open();
        }
    }

    /// Waits until no value is lent at a place that the head of a log has passed.
    #[cold]
    #[inline(never)]
    fn end_loans(&mut self, id: LogId) {
        self.state.passed_large[id as usize] = false;
        let is_passed = |name| {
            let (log, offset) = named(name);
            log == id && !self.log(id).is_live(offset)
        };
        self.shared.common.loans.give_up(is_passed);
    }

    #[inline(always)]
    pub(super) fn log(&self, id: LogId) -> &CircularLog {
        self.shared.log(id)
    }

    #[inline(always)]
    pub(super) fn tail(&self, id: LogId) -> Offset {
        self.state.tails[id as usize]
    }

    /// The arithmetic of a log's offsets as things stand.
    #[inline(always)]
    pub(super) fn geometry(&self, id: LogId) -> Geometry {
        self.state.geometry[id as usize]
    }

    /// The position that the tail of a log does not cross, as things stand.
    #[inline(always)]
    pub(super) fn limit(&self, id: LogId) -> u64 {
        self.state.limits[id as usize]
    }

    /// Words that a lap of a log has, or will have: a log that is filled for the first time may go
    /// further than its [`limit`](Self::limit) now.
    #[inline(always)]
    pub(super) fn lap_words(&self, id: LogId) -> u64 {
        self.state.lap_words[id as usize]
    }

    #[inline(always)]
    pub(super) fn position(&self, id: LogId, offset: Offset) -> u64 {
        self.geometry(id).position(offset) as u64
    }
}
