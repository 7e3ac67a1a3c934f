//! What a partition has of the memory for all items: a fixed share, or what it has claimed of the
//! memory that all partitions have in [common](Commons).
//!
//! ```text
//!  0            log_end              floor   border         range
//! +----------------+------------------+--------+--------------+
//! |    main log    |    never used    |  kept  |    index     |
//! +----------------+------------------+--------+--------------+
//! ```
//!
//! The *words* that the partition has are what lies before `log_end` and after `floor`. The index
//! grows down to the floor. A fixed share has no hole in it, and its floor follows the border.
//!
//! With memory in common, the addresses are for several times an equal share, and what is not
//! claimed is not touched. The main log claims more whenever its tail comes to `log_end` and
//! nothing lies after the tail: while the log is filled for the first time, that is, or after a
//! flush. The small log does the same up to its tenth. The index claims more for its own growth. So
//! a partition that chance gives more bytes than others has more memory, and nothing that is live
//! leaves before the memory as a whole is full. When nothing is left, log and index divide what the
//! partition has (see [`growth`](super::growth)): the index grows after log memory has gone back to
//! the kernel.
//!
//! A partition that has its equal share, and much of it dead, goes round before it claims more. In
//! that lap the head moves on what is live, until nothing lies after the tail again.
//!
//! When nothing is left any more, a partition that has more than an equal share has its main log's
//! laps end earlier, by [`Goal`]s, while others lack memory.
//!
//! Minimum: a main log of two of the largest items, and a small one of one item that it takes.
//!
//! Claims end where huge pages do while much is left, because a huge page is resident as a whole.
//! Towards the end they are as small as needed.
//!
//! While much is left, the partition has also claimed the huge page after the end of each log that
//! grows. A thread takes it from the kernel ([`PagesAhead`](crate::memory::PagesAhead)). The log
//! goes on there when it comes to its end, and seldom waits for the kernel. Where log or index get
//! memory in another way, the page is given back first.

use super::goal::Goal;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::CircularLog;
use crate::index::LogId;
use crate::memory::{Commons, HUGE_PAGE};
use glimmer_base::limits::GIVEN_BACK_BYTES_PER_STEP;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// Words of a page, the unit of claims.
pub(super) const PAGE_WORDS: u64 = if cfg!(any(loom, miri)) { 8 } else { 512 };
/// Words of a huge page.
pub(super) const HUGE_WORDS: u64 = HUGE_PAGE as u64 / 8;
/// Claims are made in huge pages while as many are left for each partition.
const HUGE_PAGES_LEFT_MIN: u64 = 2;
/// A page is taken ahead while as many are left for each partition.
const AHEAD_PAGES_LEFT_MIN: u64 = 4;
/// A claim takes at most this part of what is left for each partition.
const LEFT_PART: u64 = 16;
/// The index claims this part of an equal share at once, up to a huge page.
const INDEX_PART: u64 = 16;
/// While at least this part of an equal share is dead, the main log claims no more than that share.
/// Then three words at most are moved for each word that comes free, which is less than a store may
/// move ([`SPARED_BYTES_PER_BYTE`](glimmer_base::limits::SPARED_BYTES_PER_BYTE)).
const DEAD_PART: u64 = 4;
/// The index has at most this part of the partition's words.
const INDEX_PART_MAX: u64 = 2;
/// Where memory is in common, a partition has addresses for this many equal shares,
const RANGE_SHARES: u64 = 2;
/// and as many of the largest items.
const RANGE_ITEMS: u64 = 32;

/// What a partition has. In the writer's state.
pub(super) struct Share {
    /// Words of the addresses.
    range: u64,
    /// Words of main log and index together.
    words: u64,
    /// Where the memory of the index begins, whether it has buckets there or not.
    floor: u64,
    /// Words after the end of each log that are claimed, and whose pages are taken ahead.
    ahead: [u64; 2],
    /// Words that each log has in an equal share.
    equal: [u64; 2],
    /// Words of the least main log.
    least: u64,
    /// Words that the index claims at once.
    index_step: u64,
    /// Whether the logs may yet get more, as far as is known. Until then no live item has to leave.
    pub grows: bool,
    /// The main log is giving back what it does not use beyond this many words.
    pub gives_beyond: Option<u64>,
}

/// How far the parts of a partition go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Words of the main log.
    pub log_end: u64,
    /// Where the memory of the index begins.
    pub floor: u64,
    /// Words of the small log.
    pub small_end: u64,
    /// Whether the logs may yet get more.
    pub grows: bool,
}

/// The same as everybody may see it.
pub(super) struct Claimed {
    pub commons: Option<Commons>,
    /// Words of both logs and the index.
    pub words: AtomicU64,
}

impl Claimed {
    /// Words of the partition, and an equal part of those that no partition has claimed.
    pub fn words(&self) -> u64 {
        let left = self.commons.as_ref().map_or(0, Commons::left_each);
        self.words.load(Relaxed) + left
    }
}

/// Words of addresses for one of the partitions that share `commons`.
pub(super) fn range_words(commons: &Commons, share_words: u64, item_words_max: u64) -> u64 {
    let wanted = RANGE_SHARES * share_words + RANGE_ITEMS * item_words_max;
    let unit = match cfg!(any(loom, miri)) {
        true => PAGE_WORDS,
        false => HUGE_WORDS,
    };
    wanted.min(commons.words()).next_multiple_of(unit)
}

impl Share {
    /// All of `range` words, with the index after `border`.
    pub fn fixed(range: u64, border: u64) -> Share {
        Share {
            range,
            words: range,
            floor: border,
            ahead: [0; 2],
            equal: [0; 2],
            least: 0,
            index_step: 0,
            grows: false,
            gives_beyond: None,
        }
    }

    /// The minimum, of `range` words: an index after `floor`, and a main log of `least` words.
    /// `equal` as in the type.
    pub fn least(range: u64, floor: u64, least: u64, equal: [u64; 2]) -> Share {
        let part = (equal[0] / INDEX_PART).clamp(PAGE_WORDS, HUGE_WORDS.max(PAGE_WORDS));
        Share {
            range,
            words: least + range - floor,
            floor,
            ahead: [0; 2],
            equal,
            least,
            index_step: 1 << part.ilog2(),
            grows: true,
            gives_beyond: None,
        }
    }

    /// Whether it is of the memory that partitions have in common.
    pub fn is_in_common(&self) -> bool {
        self.index_step > 0
    }

    /// Words of main log and index together.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// How far the main log may go.
    pub fn log_end(&self) -> u64 {
        self.floor + self.words - self.range
    }

    /// Words that a lap of a log will have that may go as far as `limit` now.
    pub fn lap_words(&self, id: LogId, limit: u64) -> u64 {
        match self.grows {
            true => limit.max(self.equal[id as usize]),
            false => limit,
        }
    }

    pub(super) fn assert_sound(&self, (border, open): (u64, u64)) {
        assert!(self.words <= self.range && self.log_end() + self.ahead[0] <= self.floor);
        assert!(self.floor <= border && self.floor <= open);
    }
}

/// What is claimed so that a log goes as far as `needed`, which is at most `most`.
fn claim_end(commons: &Commons, needed: u64, most: u64) -> u64 {
    let left = commons.left_each();
    let end = match left >= HUGE_PAGES_LEFT_MIN * HUGE_WORDS {
        true => needed.next_multiple_of(HUGE_WORDS),
        false => (needed + left / LEFT_PART).next_multiple_of(PAGE_WORDS),
    };
    end.min(most).max(needed)
}

/// Lets the pages that a log has got lie on huge ones, if it has a whole one more.
fn grant(log: &CircularLog, before: u64, end: u64) {
    if before / HUGE_WORDS < end / HUGE_WORDS {
        log.grant(0..end);
    }
}

impl Shared {
    fn commons(&self) -> Option<&Commons> {
        self.heap.claimed.commons.as_ref()
    }
}

impl<A: Access> Writer<'_, A> {
    /// Has a log go further, so that it takes `words` words more in the lap that it is in. Says
    /// whether it does. Head and tail are in one lap.
    #[cold]
    #[inline(never)]
    pub(super) fn extend(&mut self, id: LogId, words: u64) -> bool {
        let Some(commons) = self.shared.commons() else {
            return false;
        };
        let needed = self.position(id, self.tail(id)) + words;
        let limit = self.limit(id);
        if needed <= limit {
            return true;
        }
        let most = match id {
            LogId::Main => self.state.share.floor,
            LogId::Small => self.log(LogId::Small).limit_max(),
        };
        // A lap with a goal ends there, so that others get what lies after it. A partition that has
        // its equal share uses the memory of dead items first.
        let share = &self.state.share;
        let (equal, is_filling) = (share.equal[id as usize], commons.is_filling());
        let is_dead = || limit >= equal && self.dead_words() * DEAD_PART >= limit;
        if id == LogId::Main && (self.state.growth.has_goal(id) || is_dead()) {
            return false;
        }
        if needed > most {
            return match id {
                LogId::Main if self.take_from_index() => self.extend(id, words),
                // A partition alone may come to the end of its addresses before a claim fails.
                LogId::Main => {
                    self.stop_growing();
                    false
                }
                LogId::Small => false,
            };
        }
        if !is_filling && needed > equal {
            self.stop_growing();
            return false;
        }
        self.state.share.gives_beyond = None;
        let claimed = limit + self.state.share.ahead[id as usize];
        let least = needed.next_multiple_of(PAGE_WORDS).min(most).max(claimed);
        let claims = [claim_end(commons, needed.max(claimed), most), least];
        let end = claims.into_iter().find(|end| commons.claim(end - claimed));
        match (end, id) {
            (Some(end), LogId::Main) => {
                self.state.share.words += end - limit;
                self.state.share.grows = is_filling;
                self.share_changed();
                self.go_on(id, claimed, end);
                true
            }
            (Some(end), LogId::Small) => {
                self.set_limit(id, end);
                self.note_claimed();
                self.go_on(id, claimed, end);
                true
            }
            (None, LogId::Main) if self.take_from_index() => self.extend(id, words),
            (None, _) => {
                commons.note_lack(needed <= equal);
                self.stop_growing();
                false
            }
        }
    }

    /// A log goes on to `end`, and what lies before `claimed` was claimed before. While much is
    /// left, claims the page that the log comes to next, and has it taken from the kernel.
    fn go_on(&mut self, id: LogId, claimed: u64, end: u64) {
        grant(self.log(id), claimed, end);
        let (heap, share) = (&self.shared.heap, &mut self.state.share);
        share.ahead[id as usize] = 0;
        let (Some(commons), Some(by)) = (&heap.claimed.commons, &heap.pages_ahead) else {
            return;
        };
        let most = match id {
            LogId::Main => share.floor,
            LogId::Small => heap.log(id).limit_max(),
        };
        let next = end + HUGE_WORDS;
        let is_much = commons.left_each() >= AHEAD_PAGES_LEFT_MIN * HUGE_WORDS;
        let is_page = end.is_multiple_of(HUGE_WORDS) && next <= most;
        if is_much && commons.is_filling() && is_page && commons.claim(HUGE_WORDS) {
            share.ahead[id as usize] = HUGE_WORDS;
            heap.log(id).take_ahead(end..next, by);
        }
    }

    /// Gives back what was claimed ahead. Says whether anything was.
    fn drop_ahead(&mut self) -> bool {
        let ahead = std::mem::take(&mut self.state.share.ahead);
        for id in [LogId::Main, LogId::Small] {
            let words = ahead[id as usize];
            if let Some(commons) = self.shared.commons().filter(|_| words > 0) {
                let end = match id {
                    LogId::Main => self.state.share.log_end(),
                    LogId::Small => self.limit(id),
                };
                self.log(id).withdraw(end..end + words);
                commons.give_back(words);
            }
        }
        ahead != [0; 2]
    }

    /// Has the small log claim memory for an item of this many words, which does not fit into what
    /// it has. Says whether that was done.
    #[cold]
    #[inline(never)]
    pub(super) fn widen_small(&mut self, words: u64) -> bool {
        let (id, shared) = (LogId::Small, self.shared);
        let (limit, most) = (self.limit(id), self.log(id).limit_max());
        let Some(commons) = shared.commons() else {
            return false;
        };
        let claimed = limit + self.state.share.ahead[id as usize];
        let end = claim_end(commons, words.max(claimed), most);
        let is_open = self.geometry(id).lap_end().is_none();
        let is_claimed = is_open && commons.claim(end - claimed);
        if is_claimed {
            self.set_limit(id, end);
            self.note_claimed();
            self.go_on(id, claimed, end);
        }
        is_claimed
    }

    /// The laps of the logs will be no longer than they are.
    fn stop_growing(&mut self) {
        self.drop_ahead();
        if self.state.share.grows {
            self.state.share.grows = false;
            for id in [LogId::Main, LogId::Small] {
                self.set_limit(id, self.limit(id));
            }
        }
    }

    /// Has the log have pages that the index has claimed and not used. Says whether there are any.
    fn take_from_index(&mut self) -> bool {
        let (floor, open) = (self.state.share.floor, self.state.border.open() as u64);
        let to = open / PAGE_WORDS * PAGE_WORDS;
        if to <= floor {
            return false;
        }
        self.drop_ahead();
        self.log(LogId::Main).withdraw(floor..to);
        self.state.share.floor = to;
        self.share_changed();
        true
    }

    /// How far down the index may grow where the log keeps `kept` words.
    pub(super) fn index_end(&self, kept: u64) -> u64 {
        match self.shared.commons() {
            Some(_) => self.state.share.floor,
            None => kept,
        }
    }

    /// Claims memory for an index that is to have a bucket more, or takes it from the log, which
    /// keeps `kept` words. Says whether there is some.
    pub(super) fn claim_for_index(&mut self, kept: u64) -> bool {
        let Some(commons) = self.shared.commons() else {
            return false;
        };
        let share = &mut self.state.share;
        let lower = |step: u64| share.floor - (share.floor - 1) / step * step;
        let (step, hole) = (share.index_step, share.range - share.words - share.ahead[0]);
        let few = lower(PAGE_WORDS);
        for more in [lower(step), few] {
            let index_words = share.range - share.floor + more;
            let is_much = index_words * INDEX_PART_MAX > (share.words + more).max(share.equal[0]);
            let is_last = commons.left_each() < step && more > few;
            if more <= hole && !is_much && !is_last && commons.claim(more) {
                share.words += more;
                share.floor -= more;
                self.share_changed();
                let share = &self.state.share;
                self.log(LogId::Main).grant(share.floor..share.range);
                return true;
            }
        }
        if self.drop_ahead() {
            return self.claim_for_index(kept);
        }
        let end = self.state.share.log_end();
        if end < kept + few {
            return false;
        }
        self.log(LogId::Main).withdraw(end - few..end);
        self.state.share.floor -= few;
        self.share_changed();
        true
    }

    /// The border of the index has moved.
    pub(super) fn follow_border(&mut self) {
        let open = self.state.border.open() as u64;
        let share = &mut self.state.share;
        if self.shared.commons().is_none() {
            share.floor = open;
        } else if open >= share.floor + 2 * share.index_step {
            // The index has shrunk.
            self.take_from_index();
        }
    }

    /// Sets how far a log may go, and with it how long its laps are.
    pub(super) fn set_limit(&mut self, id: LogId, limit: u64) {
        let (nth, lap_words) = (id as usize, self.state.share.lap_words(id, limit));
        if (limit, lap_words) != (self.state.limits[nth], self.state.lap_words[nth]) {
            self.state.admission.resized();
        }
        self.state.limits[nth] = limit;
        self.state.lap_words[nth] = lap_words;
    }

    /// How far log and index go.
    pub(super) fn share_extent(&self) -> Extent {
        let share = &self.state.share;
        Extent {
            log_end: share.log_end(),
            floor: share.floor,
            small_end: self.limit(LogId::Small),
            grows: share.grows,
        }
    }

    /// The furthest that the small log may go: it begins with all of its memory, or comes to it.
    pub(super) fn small_end_max(&self) -> u64 {
        let id = LogId::Small;
        self.log(id).limit_max().max(self.limit(id))
    }

    /// Has log and index go as far as they once went. Says whether there is as much memory.
    pub(super) fn resume_share(&mut self, extent: Extent) -> bool {
        let small = LogId::Small;
        let small_more = extent.small_end.saturating_sub(self.limit(small));
        let Some(commons) = self.shared.commons() else {
            self.state.share.floor = self.state.border.open() as u64;
            self.share_changed();
            return small_more == 0;
        };
        let share = &mut self.state.share;
        let words = extent.log_end + share.range - extent.floor;
        let more = words.saturating_sub(share.words) + small_more;
        if words > share.range || !commons.claim(more) {
            return false;
        }
        (share.words, share.floor) = (words.max(share.words), extent.floor);
        share.grows = extent.grows;
        self.set_limit(small, self.limit(small) + small_more);
        self.share_changed();
        let (end, floor) = (self.state.share.log_end(), self.state.share.floor);
        self.log(LogId::Main).grant(0..end);
        self.log(LogId::Main).grant(floor..self.state.share.range);
        self.log(small).grant(0..self.limit(small));
        // What a process that was ended had claimed and not used.
        self.log(LogId::Main).withdraw(end..floor);
        true
    }

    fn share_changed(&mut self) {
        self.limit_main();
        self.note_claimed();
    }

    fn note_claimed(&self) {
        let small = match self.log(LogId::Small).item_words_max() {
            0 => 0,
            _ => self.limit(LogId::Small),
        };
        let claimed = &self.shared.heap.claimed.words;
        claimed.store(self.state.share.words + small, Relaxed);
    }

    /// Begins to give back what the main log has claimed: the partition is empty.
    pub(super) fn give_back_all(&mut self) {
        let least = self.state.share.least;
        self.state.share.gives_beyond = self.shared.commons().map(|_| least);
    }

    /// Has a lap that has just begun end earlier than the one before it, if the partition has more
    /// than an equal share and others lack theirs.
    pub(super) fn give_to_others(&mut self) {
        let id = LogId::Main;
        let share = &self.state.share;
        let (equal, beyond) = (
            share.equal[0],
            share.log_end().saturating_sub(share.equal[0]),
        );
        let Some(end) = self.geometry(id).lap_end().filter(|_| beyond >= PAGE_WORDS) else {
            return;
        };
        if self.shared.commons().is_some_and(Commons::take_want) {
            self.state.share.gives_beyond = Some(equal);
            let lap = (self.position(id, self.tail(id)), end);
            self.aim(Goal::new(None, lap, end.saturating_sub(equal), equal));
        }
    }

    /// Gives back some of what the main log does not use.
    #[cold]
    #[inline(never)]
    pub(super) fn give_back(&mut self, beyond: u64) {
        self.drop_ahead();
        let id = LogId::Main;
        let end = self.state.share.log_end();
        let geometry = self.geometry(id);
        let used = geometry
            .lap_end()
            .unwrap_or(self.position(id, self.tail(id)));
        let kept = beyond.max(used).next_multiple_of(PAGE_WORDS);
        let step = GIVEN_BACK_BYTES_PER_STEP as u64 / 8;
        let to = kept.max(end.saturating_sub(step));
        let (true, Some(commons)) = (to < end, self.shared.commons()) else {
            // The lap before ends at the goal of this one.
            if !self.state.growth.has_goal(id) {
                self.state.share.gives_beyond = None;
            }
            return;
        };
        self.log(id).withdraw(to..end);
        self.state.share.words -= end - to;
        commons.give_back(end - to);
        self.state.share.grows |= commons.is_filling();
        self.share_changed();
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
