//! Sliding items to other places of the heap, so that free space comes together.

use super::Writer;
use super::name::Name;
use crate::access::Access;
use crate::heap::Item;
use crate::heap::segregated_fits::Behind;
use crate::index::Slot;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::Ordering::Relaxed;

impl<A: Access> Writer<'_, A> {
    /// Brings `words` words of free space together by sliding the items that lie between; says
    /// whether it could.
    pub(super) fn gather(&mut self, words: usize) -> bool {
        let shared = self.shared;
        let (space, limit) = (&shared.space, shared.index.border());
        let Some(mut gathering) = self.state.fits.gather(space, words, limit) else {
            return false;
        };
        while let Behind::Item { from, to } = self.state.fits.behind(space, &mut gathering) {
            let words = self.slide(from, to);
            self.state.fits.slid(&mut gathering, words);
        }
        self.state.fits.finish(space, gathering);
        true
    }

    /// Copies an item to a place further left, which may reach into its own, and makes its entry
    /// name that; gives its words. The chain is locked while the item is in neither place.
    fn slide(&mut self, from: usize, to: usize) -> usize {
        let shared = self.shared;
        let (old, new) = (shared.space.place(from), shared.space.place(to));
        let item = Item::read(old).expect("an item lies there");
        let (home, slot) = self.entry_of(from, &item);
        let words = item.words();
        let entry = shared.index.get(slot);
        let name = Name {
            at: to,
            ..Name::of(entry)
        };
        let main = shared.index.bucket(home);
        main.write_begin(A::SHARED_READS);
        for (old, new) in old.range(0, words).iter().zip(new.range(0, words)) {
            new.store(old.load(Relaxed), Relaxed);
        }
        let moved = name.entry(entry.tag());
        shared
            .index
            .set(slot, moved.with_fetched(entry.is_fetched()));
        main.write_end(A::SHARED_READS);
        shared.counters.moved.add(1);
        words
    }

    /// The chain and the slot whose entry names the item.
    fn entry_of(&self, at: usize, item: &Item<'_>) -> (usize, Slot) {
        let shared = self.shared;
        let keyhash = shared.seed.keyhash(item.key(&mut [0; KEY_BYTES_MAX + 6]));
        let home = self.home(keyhash);
        let mut candidates = shared.index.candidates(home, keyhash.tag());
        let found =
            candidates.find(|&(_, entry)| shared.is_live(entry) && Name::of(entry).at == at);
        let (slot, _) = found.expect("an item in use has an entry");
        (home, slot)
    }
}
