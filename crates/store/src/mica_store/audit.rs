//! Walking the whole partition to see that everything it promises holds; for tests.

use super::Writer;
use super::name::Name;
use crate::access::Access;
use crate::heap::segregated_fits::Usage;
use crate::table::{Heap, Index};
use glimmer_base::Keyhash;
use std::collections::BTreeSet;

impl<A: Access> Writer<'_, A> {
    /// Walks heap and index.
    ///
    /// # Panics
    ///
    /// As [`SegregatedFits::audit`](crate::heap::segregated_fits::SegregatedFits::audit); if a
    /// bucket is in two chains, or in a chain and free, or lost; if an item of the heap is not
    /// named by exactly one entry, in the chain that its key belongs to; if heap and index overlap;
    /// or if the figures are not true.
    pub fn audit(&mut self) -> Usage {
        self.take_back_uploads();
        let shared = self.shared;
        let (index, shape) = (&shared.index, shared.index.shape());
        let border = self.state.border.open();
        assert!(self.state.fits.top() <= border && border <= index.border());
        let usage = self.state.fits.audit(shared.space());
        let (mut buckets, mut named) = (BTreeSet::new(), BTreeSet::new());
        let mut spares_used = 0;
        for home in (0..shape.mains()).map(|main| index.main(main)) {
            for number in index.chain(home) {
                assert!(buckets.insert(number), "bucket {number} is reached twice");
                spares_used += u64::from(number != home);
            }
            for (_, entry) in index
                .slots(home)
                .filter(|&(_, entry)| shared.heap.is_live(entry))
            {
                let name = Name::of(entry);
                let words = usage.items.get(&name.at).copied();
                let item = crate::heap::Item::read(shared.space().place(name.at));
                let item = item.expect("an entry names an item");
                assert_eq!(words, Some(item.words()), "item at {}", name.at);
                assert_eq!(name.expires, item.layout().expiry);
                let is_under = |keyhash: Keyhash| {
                    let chain = index.chain_of(index.home(keyhash));
                    entry.tag() == keyhash.tag() && chain == home
                };
                assert!(
                    is_under(shared.common.keyhash(&item))
                        || shared.common.has_overflowed()
                            && is_under(shared.common.second_of(&item)),
                    "in another's chain"
                );
                assert!(named.insert(name.at), "item at {} is named twice", name.at);
            }
        }
        assert!(named.iter().eq(usage.items.keys()), "an item has no entry");
        let uploads = self.state.ledger.uploads.words();
        if self.state.ledger.draft.is_none() {
            let reserved: usize = usage.reserved.values().sum();
            assert_eq!(reserved as u64, uploads, "a place is lost");
        }
        for number in self.state.spares.free_numbers(index) {
            assert!(buckets.insert(number), "bucket {number} is not free");
        }
        assert_eq!(buckets.len(), index.count(), "buckets are lost");
        let counts = shared.common.counters.counts();
        assert_eq!(counts.items, usage.items.len() as u64);
        assert_eq!(counts.bytes, 8 * usage.items.values().sum::<usize>() as u64);
        assert_eq!(counts.spares_used, spares_used);
        usage
    }
}
