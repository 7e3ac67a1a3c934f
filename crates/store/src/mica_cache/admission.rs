//! Admission: which log a new item enters, and with how many uses it begins there.
//!
//! That follows from the [`Setting`] in use. Stores need it in another form, which the writer works
//! out when the setting or the memory of the logs changes, and keeps.

use super::{Found, Writer};
use crate::access::Access;
use crate::evict::{Probation, Setting};
use crate::heap::{Item, Offset, Put};
use crate::index::chained::HomeBucket;
use crate::index::{Entry, LogId, Slot};
use crate::table::{DRAFT_WORDS_MIN, Heap, Index};
use glimmer_base::Keyhash;

/// Parts of new items are counted in 2^32nds.
const WHOLE: u64 = 1 << 32;

/// How new items are admitted.
pub(super) struct Admission {
    pub setting: Setting,
    /// The word of the setting; none if the rest is to be worked out.
    word: Option<u64>,
    /// The part of the new items that enters the main log at once.
    direct: u64,
    /// What part of the next new item is to enter it.
    due: u64,
    /// What enters it so.
    pub probation: Probation,
    /// Items of fewer words begin with uses.
    few_words: u64,
    /// Items of more words are too large for the small log, unless it can be widened.
    small_words_max: u64,
}

impl Admission {
    pub fn new(setting: Setting) -> Admission {
        Admission {
            setting,
            word: None,
            direct: 0,
            due: 0,
            probation: Probation::default(),
            few_words: 0,
            small_words_max: 0,
        }
    }

    /// The logs have more or less memory from now on.
    pub fn resized(&mut self) {
        self.word = None;
    }

    /// Uses that an item begins with.
    #[inline(always)]
    fn first_uses(&self, words: u64) -> u8 {
        match words < self.few_words {
            true => Setting::first_uses(self.setting.doublings(words)),
            false => 0,
        }
    }
}

/// What the entries with a key's tag say about the key.
enum Known {
    /// Its item is there.
    Item(Slot, Entry),
    /// It may have left the small log not long ago.
    Ghost(Slot, Entry),
    Nothing,
}

impl<'a, A: Access> Writer<'a, A> {
    /// Has the setting in use apply to what is stored from now on.
    #[inline(always)]
    pub(super) fn follow_setting(&mut self) {
        let word = self.shared.heap.learner.word();
        if self.state.admission.word != Some(word) {
            self.work_out(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn work_out(&mut self, word: u64) {
        // Also while the logs fill: else the small one would take more than its part, and its items
        // would leave before those of the main one.
        let [main, small] = [LogId::Main, LogId::Small].map(|id| u128::from(self.lap_words(id)));
        let item_words_max = self.log(LogId::Small).item_words_max() as u64;
        let small_words_max = item_words_max.min(self.limit(LogId::Small));
        let admission = &mut self.state.admission;
        admission.small_words_max = small_words_max;
        admission.setting = Setting::unpacked(word);
        admission.word = Some(word);
        let direct = u128::from(admission.setting.direct_percent) * main * u128::from(WHOLE);
        admission.direct = (direct / (100 * (main + small)).max(1)) as u64;
        admission.few_words = admission.setting.few_words();
    }

    /// The key's item, or else the entry by which an item is remembered that was its own or that of
    /// a key with its tag. One search serves both. `words` are those of the new item.
    #[inline(always)]
    pub(super) fn find_or_remember(
        &self,
        home: HomeBucket,
        keyhash: Keyhash,
        (key, words): (&[u8], u64),
    ) -> Result<Found<'a>, Option<(Slot, Entry)>> {
        let shared = self.shared;
        match self.known(home, keyhash, (key, words)) {
            Known::Nothing => Err(None),
            Known::Ghost(slot, entry) => Err(Some((slot, entry))),
            Known::Item(slot, entry) => {
                let cell = shared.index.cell(slot);
                let found = shared.named_item(home, (slot, entry), cell, key);
                found.ok_or(None)
            }
        }
    }

    /// Apart, as [`find`](super::Shared::find) has its search.
    #[inline(never)]
    fn known(&self, home: HomeBucket, keyhash: Keyhash, (key, words): (&[u8], u64)) -> Known {
        let heap = &self.shared.heap;
        let mut known = Known::Nothing;
        for (slot, entry) in self.shared.index.candidates(home, keyhash) {
            if heap.is_tagged_live(entry) {
                if Item::of_key(heap.words(entry), key).is_some() {
                    return Known::Item(slot, entry);
                }
            } else if matches!(known, Known::Nothing) && self.is_ghost(entry, words) {
                known = Known::Ghost(slot, entry);
            }
        }
        known
    }

    /// Whether an entry that dangles says that its item, taken to be as large as the new one, has
    /// left the small log not long ago.
    fn is_ghost(&self, entry: Entry, words: u64) -> bool {
        let log = self.log(LogId::Small);
        let setting = self.state.admission.setting;
        let laps = setting.laps_remembered(setting.doublings(words));
        entry.log() == LogId::Small
            && log.geometry().laps_behind(entry.offset(), log.head()) < laps.into()
    }

    /// The log for the item of a new key, and whether the item has to prove itself there
    /// ([`Probation`]).
    #[inline(always)]
    pub(super) fn log_for_new(&mut self, words: u64, is_remembered: bool) -> (LogId, bool) {
        if !self.is_for_small(words) {
            return (LogId::Main, true);
        }
        let Admission { direct, due, .. } = self.state.admission;
        let is_large = words >= DRAFT_WORDS_MIN as u64;
        let is_direct = due + direct >= WHOLE && !(is_large && self.fits_small_alone(words));
        match (is_remembered, is_direct) {
            (true, _) => (LogId::Main, false),
            (false, true) => (LogId::Main, true),
            (false, false) => (LogId::Small, false),
        }
    }

    /// The log for an item that is appended in place of another one, whose value it may keep. A
    /// write is a use: an item that was used before it is stored again has proved itself.
    #[inline(always)]
    pub(super) fn log_for_known(
        &mut self,
        found: &Found<'_>,
        words: u64,
        keeps_value: bool,
    ) -> LogId {
        let setting = self.state.admission.setting;
        let old_words = found.item.words() as u64;
        let doublings = setting.doublings(old_words);
        if setting.keeps(found.entry.reads(), doublings) || !self.is_for_small(words) {
            return LogId::Main;
        }
        let is_large = words >= DRAFT_WORDS_MIN as u64;
        match found.entry.log() {
            LogId::Small
                if (is_large || keeps_value)
                    && self.ousts_from_small(old_words, words, keeps_value) =>
            {
                LogId::Main
            }
            id => id,
        }
    }

    /// Whether room for an item in the small log may take the item there that it replaces, while
    /// that is still asked for: its value is kept, or it has yet to be compared. So it may not if
    /// there is no room for both, or if the main log has room.
    #[cold]
    #[inline(never)]
    fn ousts_from_small(&self, old_words: u64, words: u64, keeps_value: bool) -> bool {
        let lacks_room = self.free(LogId::Small) < words;
        let has_no_room_for_both = old_words + words > self.lap_words(LogId::Small);
        lacks_room && (keeps_value || has_no_room_for_both || self.free(LogId::Main) >= words)
    }

    /// Whether the small log takes an item of this many words.
    #[inline(always)]
    fn is_for_small(&mut self, words: u64) -> bool {
        words <= self.state.admission.small_words_max || self.is_for_wider_small(words)
    }

    #[cold]
    #[inline(never)]
    fn is_for_wider_small(&mut self, words: u64) -> bool {
        let most = self.log(LogId::Small).item_words_max() as u64;
        words <= most && (words <= self.limit(LogId::Small) || self.widen_small(words))
    }

    /// Whether a large item has room at the tail of the small log, and none at that of the main
    /// one: as long as the logs fill, nothing leaves one of them because of the other's turn.
    #[cold]
    #[inline(never)]
    fn fits_small_alone(&self, words: u64) -> bool {
        self.free(LogId::Small) >= words && self.free(LogId::Main) < words
    }

    /// The entry of an item that has just been written, of a new key or of one that had an item.
    #[inline(always)]
    pub(super) fn new_entry(
        &mut self,
        put: &Put<'_>,
        (id, offset): (LogId, Offset),
        is_new: bool,
    ) -> Entry {
        let admission = &mut self.state.admission;
        if is_new {
            let due = admission.due + admission.direct;
            admission.due = match id {
                // An item that came back or is large takes the place of another one.
                LogId::Main => due.saturating_sub(WHOLE),
                LogId::Small => due.min(WHOLE),
            };
        }
        let uses = admission.first_uses(put.words as u64);
        Entry::new(put.keyhash.tag(), id, offset, uses)
    }

    /// The slot of an entry by which an item was remembered, if it is still there.
    #[cold]
    #[inline(never)]
    pub(super) fn slot_of_ghost(&self, main: usize, (slot, entry): (Slot, Entry)) -> Option<Slot> {
        let shared = self.shared;
        let is_there = shared.index.chain(main).any(|number| number == slot.bucket)
            && shared.index.get(slot) == entry
            && !shared.heap.is_live(entry);
        is_there.then_some(slot)
    }
}
