//! The partition as a [`Table`]: nothing but the verbs' names.

use super::{Figures, Owner, Reader, Writer};
use crate::access::{Access, Gate};
use crate::batches::{Batches, Seat};
use crate::heap::{CasSequence, CircularLog, History, Item, NewItem};
use crate::index::LogId;
use crate::removals::{RemovalObserver, Tap};
use crate::table::{Absence, Ages, Counts, Stored, Table, TableFigures, TableWriter};
use glimmer_base::sync::Arc;
use glimmer_base::{Expiry, Keyhash, Moment};
use std::ops::Range;

impl<A: Access> Table for Owner<A> {
    type Access = A;
    type Writer<'a> = Writer<'a, A>;
    type Place = usize;
    type Reader = Reader;

    #[inline(always)]
    fn enter(&mut self, flushes: u64) -> Writer<'_, A> {
        Owner::enter(self, flushes)
    }

    fn reader(&self) -> Option<Reader> {
        Owner::reader(self)
    }

    fn share(&self, worker: usize) -> Option<Self> {
        Some(Owner {
            shared: self.shared.clone(),
            gate: self.gate.share()?,
            seat: self.seat.of_worker(worker),
        })
    }

    fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>) {
        Owner::observe(self, tap);
    }

    fn join(&mut self, batches: &Arc<Batches>, worker: usize) {
        self.seat = Seat::new(batches, worker);
    }

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> usize {
        self.shared.place(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, place: usize) {
        self.shared.index.prefetch(place);
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, place: usize) {
        self.shared.prefetch_item(keyhash, place);
    }

    fn figures(&self) -> Box<dyn TableFigures> {
        Box::new(Owner::figures(self))
    }
}

impl<A: Access> TableWriter for Writer<'_, A> {
    type Place = usize;

    fn draw_cas_from(&mut self, sequence: CasSequence) {
        self.state.cas = sequence;
    }

    #[inline(always)]
    fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Item<'_>> {
        Writer::find(self, keyhash, key, now).map(|found| found.item)
    }

    #[inline(always)]
    fn read<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        Writer::read(self, keyhash, key, now, take)
    }

    #[inline(always)]
    fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored {
        Writer::put(self, keyhash, item, now)
    }

    fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored> {
        Writer::extend(self, keyhash, item, now)
    }

    #[inline(always)]
    fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        Writer::remove(self, keyhash, key, now)
    }

    #[inline(always)]
    fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        Writer::touch(self, keyhash, key, expiry, now)
    }

    fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        Writer::amend(self, keyhash, key, expiry, history, now)
    }

    fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        Writer::list(self, chain, now, visit)
    }

    fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>) {
        Writer::expire(self, chain, now)
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    fn stored_s(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<u32> {
        let entry = Writer::find(self, keyhash, key, now)?.entry;
        let (log, calendar) = (self.log(entry.log()), &self.state.calendars);
        calendar[entry.log() as usize].second_of(entry.offset(), log.head(), log.geometry())
    }

    fn was_read(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        Writer::find(self, keyhash, key, now).is_some_and(|found| found.entry.is_fetched())
    }
}

impl TableFigures for Figures {
    fn counts(&self, flushes: u64) -> Counts {
        let mut counts = self.shared.counters.counts();
        if self.shared.flushes.seen() < flushes {
            counts.items = 0;
            counts.bytes = 0;
        }
        counts
    }

    fn ages(&self) -> Ages {
        self.shared.ages.get()
    }

    fn heap_bytes(&self) -> u64 {
        let small = &self.shared.logs[LogId::Small as usize];
        let small_words = match small.item_words_max() {
            0 => 0,
            _ => small.words_max(),
        };
        8 * (self.shared.index.border() as u64 + small_words)
    }

    fn index_bytes(&self) -> u64 {
        8 * self.shared.index.words() as u64
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        let logs = self.shared.logs.iter();
        logs.map(CircularLog::addresses).collect()
    }
}
