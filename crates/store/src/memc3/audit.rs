//! Walking the whole heap to see that everything it promises holds; for tests.

use super::Writer;
use crate::access::Access;

impl<A: Access> Writer<'_, A> {
    /// Walks the slabs.
    ///
    /// # Panics
    ///
    /// If a chunk in use has neither an item that a slot names nor an upload; if an upload has no
    /// chunk; or if the figures are not true.
    pub fn audit(&mut self) {
        self.take_back_uploads();
        let (shared, pool) = (self.shared, self.shared.pool());
        let slabs = &self.state.slabs;
        let (mut items, mut bytes, mut pinned) = (0, 0, 0);
        let mut reserved = Vec::new();
        let is_first = |&page: &usize| slabs.slab_on(page) == Some(page);
        for slab in (0..slabs.item_pages()).filter(is_first) {
            let (items_before, reserved_before) = (items, reserved.len());
            for at in slabs.chunks(pool, slab) {
                if self.is_reserved(at) {
                    reserved.push(at as u64);
                } else if let Some(item) = shared.item_at(at) {
                    let slot = shared.index.slot_of(shared.common.keyhash(&item), at);
                    assert!(slot.is_some(), "no slot names the item at {at}");
                    items += 1;
                    bytes += 8 * item.words() as u64;
                }
            }
            let here = reserved.len() - reserved_before;
            assert_eq!(here, slabs.reserved_in(slab), "slab {slab}");
            let used = (items - items_before) as usize + here;
            assert_eq!(used, slabs.used_in(slab), "a chunk of slab {slab} is lost");
            if here > 0 {
                let class = slabs.class_at(pool, pool.first_word(slab));
                pinned += slabs.slab_pages(class);
            }
        }
        assert_eq!(pinned, slabs.pinned_pages());
        let counts = shared.common.counters.counts();
        assert_eq!((counts.items, counts.bytes), (items, bytes));
        let uploads = self.state.ledger.uploads.cells();
        let places = uploads.map(|cell| cell.place().at);
        assert!(places.eq(reserved), "a place is lost");
    }
}
