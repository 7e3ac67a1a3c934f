//! What every core may see of a table, whatever the table is made of.

use super::{Asides, Counters, Drafts, Loans, Underway, expired};
use crate::flushes::FlushCount;
use crate::groups::Groups;
use crate::heap::{Item, Marks};
use crate::removals::{Exit, Reason};
use crossbeam_utils::CachePadded;
use glimmer_base::counter::Counter;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::{Arc, weakened};
use glimmer_base::{Expiry, KeyHasher, Keyhash, Moment};

/// See the module's text.
pub struct Common {
    /// How many flushes the table has carried out.
    pub(crate) flushes: FlushCount,
    /// Which word of an item is the last that is fetched: that of an item of the usual size, which
    /// is a moving average over what is stored.
    last_word: Counter,
    /// Changed with every store, and so on lines of their own.
    pub(crate) counters: CachePadded<Counters>,
    /// Large values that are being copied.
    pub(crate) drafts: Drafts,
    /// Large values that are being received. Changed by the receivers, and so on lines of their
    /// own.
    pub(crate) uploads: CachePadded<Underway>,
    /// Large values that are lent. Changed with every loan, and so on lines of their own.
    pub(crate) loans: CachePadded<Loans>,
    hasher: KeyHasher,
    /// Whether items have been stored under second keyhashes since the last flush.
    overflowed: Counter,
    /// Where what leaves is reported.
    pub(crate) exit: Exit,
    /// Which groups of keys were invalidated, if keys have groups.
    pub(crate) groups: Option<Arc<Groups>>,
    /// The latest event when the writer passed the gate for the request that it executes, if it
    /// looks at groups.
    event_at_entry: Counter,
}

impl Common {
    pub(crate) fn new(hasher: KeyHasher, asides: Asides) -> Common {
        Common {
            flushes: FlushCount::default(),
            last_word: Counter::default(),
            counters: CachePadded::default(),
            drafts: Drafts::default(),
            uploads: CachePadded::default(),
            loans: CachePadded::new(Loans::new(asides)),
            hasher,
            overflowed: Counter::default(),
            exit: Exit::default(),
            groups: None,
            event_at_entry: Counter::default(),
        }
    }

    /// The hash of an item's key, computed again: items do not keep it.
    #[inline(always)]
    pub(crate) fn keyhash(&self, item: &Item<'_>) -> Keyhash {
        self.hasher.keyhash(item.key(&mut [0; KEY_BYTES_MAX + 6]))
    }

    /// The keyhash under which a key's entry lies if the chain of the first one was full. See
    /// [`Heap::OVERFLOWS`](super::Heap::OVERFLOWS).
    #[cold]
    pub(crate) fn second(&self, first: Keyhash, key: &[u8]) -> Keyhash {
        self.hasher.second(first, key)
    }

    /// [`second`](Self::second) of an item's key.
    #[cold]
    pub(crate) fn second_of(&self, item: &Item<'_>) -> Keyhash {
        let mut key = [0; KEY_BYTES_MAX + 6];
        let key = item.key(&mut key);
        self.second(self.hasher.keyhash(key), key)
    }

    /// Whether a key that is not under its keyhash may be under its second one.
    #[inline(always)]
    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflowed.get() != 0
    }

    /// An item is about to be stored under its key's second keyhash.
    pub(crate) fn note_overflow(&self) {
        self.overflowed.set((!weakened("overflow_note")).into());
    }

    /// Calls `fetch` for words of the lines, three at most, that an item of the usual size has.
    /// After three lines the processor's own prefetching has caught on.
    #[inline(always)]
    pub(crate) fn prefetch(&self, fetch: impl Fn(usize)) {
        let last_word = self.last_word.get() as usize;
        fetch(0);
        fetch(last_word);
        if last_word > 8 {
            fetch(8);
        }
    }

    /// Has items of this many words count as usual for [`prefetch`](Self::prefetch).
    #[inline(always)]
    pub(crate) fn expect_size(&self, words: u64) {
        let last_word = words.clamp(1, 16) - 1;
        if last_word != self.last_word.get() {
            self.last_word.set(last_word);
        }
    }

    /// Whether an item that was met has expired, or its group was invalidated. For who has passed
    /// the gate.
    #[inline(always)]
    pub(crate) fn has_ended(&self, item: &Item<'_>, now: Moment) -> bool {
        expired(item, now) || self.flushes.knows_groups() && self.met_of_dead_group(*item)
    }

    /// [`has_ended`](Self::has_ended) by what had been invalidated when the request passed the
    /// gate. The answer does not become yes while the gate is held. For what makes room: a request
    /// has looked at items before, and looks at them again.
    #[inline(always)]
    pub(crate) fn had_ended(&self, item: &Item<'_>, now: Moment) -> bool {
        expired(item, now) || self.flushes.knows_groups() && self.met_of_group_dead_at_entry(*item)
    }

    #[cold]
    #[inline(never)]
    fn met_of_group_dead_at_entry(&self, item: Item<'_>) -> bool {
        (self.groups.as_ref()).is_some_and(|groups| {
            let latest = match weakened("dead_at_entry") {
                true => u64::MAX,
                false => self.event_at_entry.get(),
            };
            groups.was_dead(item.key(&mut [0; KEY_BYTES_MAX + 6]), item.birth(), latest)
        })
    }

    /// Whether an item that was met is older than the last invalidation of its group. It is given
    /// by value: a reference would keep the caller's item out of registers, also where there are no
    /// groups.
    #[cold]
    #[inline(never)]
    fn met_of_dead_group(&self, item: Item<'_>) -> bool {
        (self.groups.as_ref()).is_some_and(|groups| {
            groups.is_dead(item.key(&mut [0; KEY_BYTES_MAX + 6]), || Some(item.birth()))
        })
    }

    /// A writer has passed the gate for a request, which may look at an item and then store one.
    #[inline(always)]
    pub(crate) fn entered(&self) {
        if self.flushes.knows_groups() {
            self.note_entry();
        }
    }

    #[cold]
    #[inline(never)]
    fn note_entry(&self) {
        let latest = self.groups.as_ref().map_or(0, |groups| groups.latest());
        self.event_at_entry.set(latest);
    }

    /// Whether the group of a key was invalidated. For a writer that has passed the gate to store
    /// an item of this key, and has not looked at one.
    #[inline(always)]
    pub(crate) fn has_event(&self, key: &[u8]) -> bool {
        self.flushes.knows_groups() && self.asked_of_event(key)
    }

    #[cold]
    #[inline(never)]
    fn asked_of_event(&self, key: &[u8]) -> bool {
        self.note_entry();
        self.knows_event_of(key)
    }

    /// Whether the group of a key was invalidated and has yet to be swept.
    pub(crate) fn knows_event_of(&self, key: &[u8]) -> bool {
        (self.groups.as_ref()).is_some_and(|groups| groups.event_of(key) != 0)
    }

    /// The birth that an item of this key is stored with. The gate has been passed.
    #[inline(always)]
    pub(crate) fn birth_of(&self, key: &[u8]) -> u64 {
        match self.flushes.knows_groups() {
            true => self.birth(key),
            false => 0,
        }
    }

    /// The event of the key's group. If the event came after the request had passed the gate, the
    /// new item may be made of one that is older, so it gets no birth, and is dead.
    #[cold]
    #[inline(never)]
    fn birth(&self, key: &[u8]) -> u64 {
        let event = (self.groups.as_ref()).map_or(0, |groups| groups.event_of(key));
        match event > self.event_at_entry.get() && !weakened("event_at_entry") {
            true => 0,
            false => event,
        }
    }

    /// All items have left by a flush.
    pub(crate) fn emptied(&self) {
        self.exit.flushed(self.counters.items.get());
        self.counters.emptied();
        self.overflowed.set(0);
    }

    /// Counts and reports an item that leaves to make room, or because it has expired, when a store
    /// wants its place. `is_fetched` is what its entry says.
    pub(crate) fn removed(&self, item: &Item<'_>, is_fetched: bool, reason: Reason, now: Moment) {
        let counters = &self.counters;
        if self.had_ended(item, now) {
            counters.expired_reclaimed.add(1);
            self.expired(item, is_fetched, now);
            return;
        }
        let is_fetched = is_fetched || item.marks().has(Marks::FETCHED);
        counters.gone(item);
        counters.evictions.add(1);
        counters.evicted_unfetched.add((!is_fetched).into());
        let has_expiry = item.expiry() != Expiry::NEVER;
        counters.evicted_mortal.add(has_expiry.into());
        self.exit
            .removed(&self.hasher, item, reason, is_fetched, now);
    }

    /// Counts and reports an item that leaves because it has expired, or because its group was
    /// invalidated.
    pub(crate) fn expired(&self, item: &Item<'_>, is_fetched: bool, now: Moment) {
        let is_fetched = is_fetched || item.marks().has(Marks::FETCHED);
        self.counters.gone(item);
        let is_unfetched = !is_fetched && expired(item, now);
        self.counters.expired_unfetched.add(is_unfetched.into());
        self.exit
            .removed(&self.hasher, item, Reason::Expired, is_fetched, now);
    }
}
