//! A partition after a process that was ended by force.
//!
//! # What may be found
//!
//! The process ended between two instructions of each of its threads, and one thread at a time
//! writes to a partition (those that copy a large value write to a place that no entry names). What
//! it had stored before is there, and what comes later in program order is not.
//! So at the end of the process at most one change of the partition was underway:
//!
//! - *An item is written to a new place.* No entry names it, or the old one's entry still does. It
//!   was not acknowledged, and is not there.
//! - *Its entry replaces the old one's.* That is one word, so either is found.
//! - *An item is written over.* The header is [written last](crate::heap), so the entry may name a
//!   filler. Then it is cleared, and the item is counted as lost.
//! - *An item moves* to another place of its log, or to another log. The head may be beyond its old
//!   place, which its entry names. The [journal](Record) has the entries before and after, and
//!   tells that from an item that has left. If neither is in the index, the item is counted as
//!   lost.
//! - *A chain is rewritten*, as a bucket is split, merged or given up. Entries may be in two
//!   buckets or in none. The journal has them all, and they are put where they belong.
//! - *A bucket is linked to a chain.* It is linked or not, and empty in either case. What is not
//!   linked is free.
//! - *An item is removed.* That is one word.
//! - *A head moves.* The items before it are gone, and nothing is written to their places before.
//! - *A flush.* Heads may have moved without the number of flushes, which is then less than the
//!   store's: the flush is carried out again.
//!
//! *Nothing that was deleted, replaced, evicted or flushed comes back:* only entries of chains and
//! of the journal are believed. Those of a removed or replaced item are overwritten before its
//! removal is acknowledged, those of an evicted or flushed one name a place before the head, and
//! the journal holds what the chains held when the change began, which removes nothing.
//!
//! *Nothing foreign is served:* an entry is kept if its item's key belongs to its chain and has its
//! tag, and lies in the log where nothing else does.
//!
//! # What is made of it
//!
//! Free space is worked out from the items that are left, so what lies between them does not
//! matter: it becomes fillers. Each step leaves what the next recovery needs, so a process that is
//! ended while it recovers is followed by one that recovers.

use super::persist::Image;
use super::share::{Extent, PAGE_WORDS};
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Item, Offset, write_filler};
use crate::index::chained::{FreeList, PutBack, Spares, Verdict};
use crate::index::{Entry, LogId};
use crate::memory::Record;
use crate::table::{Heap, Index};
use glimmer_base::Keyhash;

/// What has been found.
struct Findings<'a> {
    /// Offsets of the items of each log.
    items: [Vec<Offset>; 2],
    /// Counts what is lost.
    record: &'a Record,
}

impl Shared {
    /// The item that an entry names, if that can be so, and its keyhash.
    fn believed(&self, entry: Entry) -> Option<(Item<'_>, Keyhash)> {
        let log = self.log(entry.log());
        let at = log.geometry().position(entry.offset());
        let end = match entry.log() {
            LogId::Main => self.index.border() as u64,
            LogId::Small => log.words_max(),
        };
        let item = Item::read(log.place(at))?;
        let keyhash = self.common.keyhash(&item);
        let words = item.words() as u64;
        let is_it = keyhash.tag() == entry.tag() && at as u64 + words <= end;
        is_it.then_some((item, keyhash))
    }

    /// Whether the index has this entry, and its item is there.
    fn is_named(&self, entry: Entry) -> bool {
        let believed = self.believed(entry).filter(|_| self.heap.is_live(entry));
        believed.is_some_and(|(_, keyhash)| {
            let mut named = self.index.candidates(self.index.home(keyhash), keyhash);
            named.any(|(_, other)| other.same_item(entry))
        })
    }
}

impl<A: Access> Writer<'_, A> {
    /// Makes the partition whole, and an image of it.
    #[cold]
    pub(super) fn recover(&mut self, record: &Record) -> Image {
        let index = &self.shared.index;
        let mut found = Findings {
            items: Default::default(),
            record,
        };
        let fetch = |entry| self.shared.heap.prefetch(entry, 0);
        let judge = |home, entry| self.judge(home, entry, &mut found);
        let mut spares = index.recover_chains(fetch, judge);
        let mut free = spares.free_list(index);
        let journal = record.journal();
        let of_kind = |is_moved: bool| {
            let (entries, _) = journal.as_chunks::<2>();
            let of_kind = entries.iter().filter(move |it| (it[1] != 0) == is_moved);
            of_kind.map(|it| Entry::from_raw(it[0]))
        };
        for entry in of_kind(false) {
            self.recover_entry(entry, (&mut spares, &mut free), &mut found);
        }
        let is_there = |entry: Entry| self.shared.is_named(entry);
        if of_kind(true).next().is_some() && !of_kind(true).any(is_there) {
            record.count_lost();
        }
        record.forget();
        let (mut tails, mut lap_ends, mut ends) = ([0; 2], [0; 2], [0; 2]);
        for id in [LogId::Main, LogId::Small] {
            let items = std::mem::take(&mut found.items[id as usize]);
            let (tail, lap_end, end) = self.recover_log(id, items, &mut found);
            let nth = id as usize;
            (tails[nth], lap_ends[nth], ends[nth]) = (tail.raw(), lap_end, end);
        }
        let counters = &self.shared.common.counters;
        counters.lost.set(record.lost());
        Image {
            tails,
            lap_ends,
            share: self.recover_share(ends, lap_ends[LogId::Main as usize] == 0),
            spares: free.words(),
            laps_unpaid: 0,
            usual_words_64: 0,
            items: counters.items.get(),
            bytes: counters.bytes.get(),
            spares_used: spares.used(),
        }
    }

    /// What becomes of an entry of the chain that begins at `home`.
    fn judge(&self, home: usize, entry: Entry, found: &mut Findings<'_>) -> Verdict {
        let (shared, index) = (self.shared, &self.shared.index);
        if !shared.heap.is_live(entry) {
            // One that dangles may be remembered for a reason. Heads move below, and none may come
            // to life by that.
            return match shared.is_forgotten(entry) {
                true => Verdict::Cleared,
                false => Verdict::Passed,
            };
        }
        let is_its = |keyhash| index.chain_of(index.home(keyhash)) == home;
        match shared.believed(entry) {
            Some((_, keyhash)) if is_its(keyhash) => {
                found.items[entry.log() as usize].push(entry.offset());
                Verdict::Stays(entry)
            }
            believed => {
                if believed.is_none() {
                    found.record.count_lost();
                }
                Verdict::Cleared
            }
        }
    }

    /// Puts an entry of the journal where it belongs, unless it is there.
    fn recover_entry(
        &self,
        entry: Entry,
        lists: (&mut Spares, &mut FreeList),
        found: &mut Findings<'_>,
    ) {
        let (shared, index) = (self.shared, &self.shared.index);
        let is_live = |entry| shared.heap.is_live(entry);
        if !is_live(entry) {
            return;
        }
        let Some((_, keyhash)) = shared.believed(entry) else {
            found.record.count_lost();
            return;
        };
        let home = index.chain_of(index.home(keyhash));
        match index.put_back(home, entry, is_live, lists) {
            PutBack::WasThere => {}
            PutBack::Done => found.items[entry.log() as usize].push(entry.offset()),
            PutBack::NoRoom => found.record.count_lost(),
        }
    }

    /// Fills what lies between the items of a log. Returns the tail, where the head's lap ended if
    /// the tail is in the next one, and the position that no item lies behind.
    fn recover_log(
        &self,
        id: LogId,
        mut items: Vec<Offset>,
        found: &mut Findings<'_>,
    ) -> (Offset, u64, u64) {
        let log = self.log(id);
        let geometry = log.geometry();
        let head = log.head();
        items.sort_unstable_by_key(|&offset| geometry.age_rank(offset, head));
        let counters = &self.shared.common.counters;
        let mut tail = items.first().copied().unwrap_or(head);
        log.publish_head(tail, true);
        let (first_at, mut lap_end, mut end) = (geometry.position(tail) as u64, 0, 0);
        for offset in items {
            let at = geometry.position(offset) as u64;
            let words = Item::read(log.place(at as usize)).map_or(0, |item| item.words() as u64);
            let is_next_lap = !geometry.is_same_lap(tail, offset);
            let from = match is_next_lap {
                true => 0,
                false => geometry.position(tail) as u64,
            };
            let is_second = lap_end != 0 || is_next_lap;
            // No crash leaves two items in one place, but a damaged file may have them.
            if at < from || words == 0 || is_second && at + words > first_at {
                found.record.count_lost();
                self.forget_item(id, offset);
                continue;
            }
            if is_next_lap {
                lap_end = geometry.position(tail) as u64;
            }
            if at > from {
                write_filler(log.place(from as usize), at - from);
            }
            tail = Offset::from_raw(offset.raw() + words);
            end = end.max(at + words);
            counters.items.add(1);
            counters.bytes.add(8 * words);
        }
        (tail, lap_end, end)
    }

    /// Clears the entry of an item.
    fn forget_item(&self, id: LogId, offset: Offset) {
        let index = &self.shared.index;
        for home in (0..index.mains()).map(|main| index.main(main)) {
            let is_it = |entry: Entry| entry.log() == id && entry.offset() == offset;
            index.clear_if(home, |entry| !entry.is_empty() && is_it(entry), true);
        }
    }

    /// The memory that the partition needs for what it has.
    fn recover_share(&self, ends: [u64; 2], grows: bool) -> Extent {
        let border = self.shared.index.border() as u64;
        let least = self.share_extent();
        let floor = least.floor.min(border / PAGE_WORDS * PAGE_WORDS);
        let in_pages = |id: LogId| ends[id as usize].next_multiple_of(PAGE_WORDS);
        let small_max = self.small_end_max();
        Extent {
            log_end: in_pages(LogId::Main).max(least.log_end).min(floor),
            floor,
            small_end: in_pages(LogId::Small).max(least.small_end).min(small_max),
            grows,
        }
    }
}
