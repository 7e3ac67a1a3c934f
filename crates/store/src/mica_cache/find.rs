//! Which entries are live, and where their items lie.

use super::Shared;
use crate::heap::{CircularLog, Item, Offset};
use crate::index::chained::ChainedIndex;
use crate::index::{Entry, LogId, Slot};
use crate::memory::Words;
use crate::table::{self, Absence, Ages, Common, Taken};
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};
use std::ops::Range;

impl Shared {
    #[inline(always)]
    pub(super) fn log(&self, id: LogId) -> &CircularLog {
        &self.logs[id as usize]
    }

    /// Whether an entry names an item: the head has not come to it.
    #[inline(always)]
    pub(super) fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && self.log(entry.log()).is_live(entry.offset())
    }

    /// The number of the key's main bucket now.
    #[inline(always)]
    pub(super) fn place(&self, keyhash: Keyhash) -> usize {
        self.index.home(self.index.shape(), keyhash)
    }

    /// Where the item of an entry lies, or lay.
    #[inline(always)]
    fn words_at(&self, entry: Entry) -> Words<'_> {
        let log = self.log(entry.log());
        log.place(log.geometry().position(entry.offset()))
    }

    /// Whether the last flush passed an item by, of which the index still knows.
    fn is_flushed(&self, entry: Entry) -> bool {
        let id = entry.log() as usize;
        let [from, to] = [&self.flushed_from, &self.flushed_to]
            .map(|places| Offset::from_raw(places[id].load(Relaxed)));
        let (geometry, offset) = (self.logs[id].geometry(), entry.offset());
        from != to
            && geometry.is_live(offset, from)
            && geometry.distance(from, offset) < geometry.distance(from, to)
    }
}

impl table::Shared for Shared {
    type Index = ChainedIndex;

    #[inline(always)]
    fn index(&self) -> &ChainedIndex {
        &self.index
    }

    #[inline(always)]
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.log(LogId::Main).item_words_max()
    }

    #[inline(always)]
    fn words(&self, entry: Entry) -> Option<Words<'_>> {
        self.is_live(entry).then(|| self.words_at(entry))
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, home: usize) {
        for entry in self.index.entries_to_fetch(home, keyhash.tag()) {
            let log = self.log(entry.log());
            let at = log.geometry().position(entry.offset());
            self.common.prefetch(at, |word| log.prefetch(word));
        }
    }

    #[inline(always)]
    fn reads_counted(&self) -> u8 {
        self.rule.reads_counted
    }

    /// The argument why what it returns is neither torn nor stale nor another item's stands at
    /// [`Bucket`](crate::index::Bucket), [`index::chained`](crate::index::chained) and
    /// [`CircularLog`].
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        _flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Taken<T, Self>> {
        let read = |home| self.take(home, keyhash, key, now, take);
        let taken = self.index.try_read(keyhash, read)?;
        let is_gone = |&(_, _, entry): &(T, Slot, Entry)| {
            !weakened("head_recheck") && !self.log(entry.log()).is_live(entry.offset())
        };
        (!taken.as_ref().is_some_and(is_gone)).then_some(taken)
    }

    /// Only what bears the key's tag is looked at, so that a plain miss costs one look at its
    /// bucket.
    #[inline(always)]
    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        for (_, entry) in self.index.candidates(self.place(keyhash), keyhash.tag()) {
            let is_live = self.is_live(entry);
            if entry.is_empty() || !is_live && !self.is_flushed(entry) {
                continue;
            }
            if Item::read(self.words_at(entry)).is_some_and(|item| item.key_is(key)) {
                return match is_live {
                    true => Absence::Expired,
                    false => Absence::Flushed,
                };
            }
        }
        Absence::Other
    }

    fn ages(&self) -> Ages {
        self.ages.get()
    }

    fn heap_bytes(&self) -> u64 {
        let small = self.log(LogId::Small);
        let small_words = match small.item_words_max() {
            0 => 0,
            _ => small.words_max(),
        };
        8 * (self.index.border() as u64 + small_words)
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        self.logs.iter().map(CircularLog::addresses).collect()
    }
}
