//! Walking the whole partition to see that everything it promises holds; for tests.

use super::{Writer, place};
use crate::access::Access;
use crate::heap::{Header, Item, Offset};
use crate::index::LogId;
use crate::table::{Heap, Index};
use std::collections::BTreeSet;

impl<A: Access> Writer<'_, A> {
    /// Walks the index and the items it names.
    ///
    /// # Panics
    ///
    /// If a bucket is in two chains, or in a chain and free, or lost; if a live entry names no
    /// item, or one that belongs to another chain or that another entry names; if what lies between
    /// a log's head and its tail has gaps; if a vacant place is not vacant; if an upload has no
    /// place, or a place that is reserved is no upload's; if log and index overlap; or if the
    /// figures are not true.
    pub fn audit(&mut self) {
        let shared = self.shared;
        self.take_back_uploads();
        let (index, shape) = (&shared.index, shared.index.shape());
        let (mut buckets, mut named) = (BTreeSet::new(), BTreeSet::new());
        let (mut spares_used, mut bytes) = (0, 0);
        for home in (0..shape.mains()).map(|main| index.main(main)) {
            for number in index.chain(home) {
                assert!(buckets.insert(number), "bucket {number} is reached twice");
                if number != home {
                    assert_eq!(index.bucket(number).owner(), Some(home));
                    spares_used += 1;
                }
            }
            let slots = index.slots(home);
            for (_, entry) in slots.filter(|&(_, entry)| shared.heap.is_live(entry)) {
                let log = shared.log(entry.log());
                let at = log.geometry().position(entry.offset());
                let item = Item::read(log.place(at)).expect("a live entry names an item");
                let keyhash = shared.common.keyhash(&item);
                assert_eq!(entry.tag(), keyhash.tag());
                assert_eq!(
                    index.chain_of(index.home(keyhash)),
                    home,
                    "in another's chain"
                );
                let place = (entry.log() as u8, entry.offset().raw());
                assert!(named.insert(place), "item at {place:?} is named twice");
                bytes += 8 * item.words() as u64;
            }
        }
        self.audit_vacant(&named);
        for id in [LogId::Main, LogId::Small] {
            self.audit_log(id, &named);
        }
        for number in self.state.spares.free_numbers(index) {
            assert!(buckets.insert(number), "bucket {number} is not free");
        }
        assert_eq!(buckets.len(), index.count(), "buckets are lost");
        let end = self.limit(LogId::Main);
        assert!(end <= index.border() as u64, "log and index overlap");
        assert!(end <= self.state.share.log_end());
        let border = (index.border() as u64, self.state.border.open() as u64);
        self.state.share.assert_sound(border);
        let counts = shared.common.counters.counts();
        if self.state.ledger.draft.is_none() {
            let uploads = self.state.ledger.uploads.words();
            assert_eq!(self.state.reserved_words, uploads, "a place is lost");
        }
        let figures = (counts.items, counts.bytes, counts.spares_used);
        assert_eq!(figures, (named.len() as u64, bytes, spares_used));
    }

    /// What is remembered as vacant overlaps neither an item nor another vacant place.
    fn audit_vacant(&mut self, named: &BTreeSet<(u8, u64)>) {
        self.state.forget_passed(self.shared);
        let places: Vec<_> = self.state.vacant.places().copied().collect();
        for place in &places {
            let from = place.offset.raw();
            let inside = (place.id as u8, from)..(place.id as u8, from + place.words);
            let item = named.range(inside.clone()).next();
            assert_eq!(item, None, "an item lies in {place:?}");
            let overlapping = (places.iter())
                .filter(|other| inside.contains(&(other.id as u8, other.offset.raw())));
            assert_eq!(overlapping.count(), 1, "{place:?} overlaps another one");
        }
    }

    /// Between head and tail lie items and fillers without a gap, and what is named and what is
    /// vacant begins and ends with them.
    fn audit_log(&self, id: LogId, named: &BTreeSet<(u8, u64)>) {
        let (log, geometry, tail) = (self.log(id), self.geometry(id), self.tail(id));
        let (mut at, mut begun) = (log.head(), BTreeSet::from([tail.raw()]));
        while at != tail {
            begun.insert(at.raw());
            let place = log.place(geometry.position(at));
            let words = match Item::read(place) {
                Some(item) => item.words() as u64,
                None => Header::read(place).filler_words(),
            };
            assert!(words > 0, "nothing begins at {at:?}");
            at = geometry.advance(at, words);
        }
        for cell in self.state.ledger.uploads.cells() {
            let (log, offset) = place::named(cell.place().at);
            let is_there = log != id || begun.contains(&offset.raw());
            assert!(is_there, "no upload begins at {offset:?}");
        }
        let mut items = named.iter().filter(|(log, _)| *log == id as u8);
        assert!(items.all(|(_, offset)| begun.contains(offset)));
        let end = geometry.lap_end();
        for place in self.state.vacant.places().filter(|place| place.id == id) {
            let last = Offset::from_raw(place.end());
            let is_last = end == Some(geometry.position(last) as u64);
            assert!(begun.contains(&place.offset.raw()), "{place:?}");
            assert!(is_last || begun.contains(&last.raw()), "{place:?}");
        }
    }
}
