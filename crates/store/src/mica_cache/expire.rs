//! Removing what has expired before the head of its log comes to it.

use super::make_room::unfetched;
use super::{Writer, expired};
use crate::access::Access;
use crate::heap::Item;
use crate::index::Entry;
use crate::removals::Reason;
use glimmer_base::Moment;

impl<A: Access> Writer<'_, A> {
    /// Removes every item of the chain with this number that has expired. Returns how many there were, and the number of the next chain; none if
    /// this was the last.
    pub fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>) {
        let (shared, mains) = (self.shared, self.shared.index.mains());
        if chain >= mains {
            return (0, None);
        }
        let first = shared.index.main(chain);
        let home = shared.index.bucket(first);
        let mut removed = 0;
        for number in shared.index.chain(first) {
            let bucket = shared.index.bucket(number);
            for (at, entry) in bucket.entries().enumerate() {
                if !shared.is_live(entry) {
                    continue;
                }
                let log = shared.log(entry.log());
                let item = Item::read(log.place(log.geometry().position(entry.offset())));
                if let Some(item) = item
                    && expired(&item, now)
                {
                    shared.counters.gone(&item);
                    let unfetched = unfetched(&item, entry);
                    shared.counters.expired_unfetched.add(unfetched);
                    let was_read = unfetched == 0;
                    shared
                        .exit
                        .removed(shared.seed, &item, Reason::Expired, was_read, now);
                    home.write_begin(A::SHARED_READS);
                    bucket.set_entry(at, Entry::EMPTY);
                    home.write_end(A::SHARED_READS);
                    removed += 1;
                }
            }
        }
        let next = Some(chain + 1).filter(|&next| next < mains);
        (removed, next)
    }
}
