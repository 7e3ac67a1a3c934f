//! Walking all items, a chain of the index at a time.

use super::{Writer, expired};
use crate::access::Access;
use crate::heap::Item;
use glimmer_base::Moment;

impl<A: Access> Writer<'_, A> {
    /// Shows `visit` every item of the chain with this number that has not expired, and whether it is known to have been fetched since it
    /// was stored. Returns the number of the next chain; none if this was
    /// the last.
    pub fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        let (shared, mains) = (self.shared, self.shared.index.mains());
        if chain >= mains {
            return None;
        }
        let slots = shared.index.slots(shared.index.main(chain));
        for (_, entry) in slots.filter(|&(_, entry)| shared.is_live(entry)) {
            let log = shared.log(entry.log());
            let item = Item::read(log.place(log.geometry().position(entry.offset())));
            if let Some(item) = item
                && !expired(&item, now)
            {
                visit(&item, entry.is_fetched());
            }
        }
        Some(chain + 1).filter(|&next| next < mains)
    }
}
