//! Walking all items, a chain of the index at a time.

use super::{Writer, expired};
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::Item;
use glimmer_base::Moment;

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Shows `visit` every item of the chain with this number that has not expired, and whether it is known to have been fetched since it
    /// was stored. Returns the number of the next chain; none if this was
    /// the last.
    pub fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        let shared = self.shared;
        for number in shared.index.chain(chain) {
            for entry in shared.index.bucket(number).entries() {
                let log = shared.log(entry.log());
                if entry.is_empty() || !log.is_live(entry.offset()) {
                    continue;
                }
                let item = Item::read(log.place(log.geometry().position(entry.offset())));
                if let Some(item) = item
                    && !expired(&item, now)
                {
                    visit(&item, entry.is_fetched());
                }
            }
        }
        Some(chain + 1).filter(|&next| next < shared.index.mains())
    }
}
