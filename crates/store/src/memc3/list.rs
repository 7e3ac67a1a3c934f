//! Walking all items, a line of the index at a time.
//!
//! Lines are counted prefix by prefix of the directory: a segment that serves several prefixes stands for all of them, so the walk goes on
//! behind its last. A segment that is split while the walk is under way gives items to prefixes that come later: none of them is left out.

use super::grow::places;
use super::room::is_fetched;
use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::heap::Item;
use crate::index::cuckoo::{BUCKET_SLOTS, LINE_BUCKETS, SlotAt, line_at};
use crate::removals::Reason;
use glimmer_base::Moment;

/// A line of the walk.
struct Stop {
    /// Its first word.
    line: usize,
    /// The number of the next.
    next: Option<usize>,
}

impl<A: Access> Writer<'_, A> {
    /// Shows `visit` every item of the line with this number that has not expired, and whether it is known to have been fetched since it
    /// was stored. Returns the number of the next line; none if this was the last.
    pub fn list(
        &self,
        number: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        let stop = self.stop(number)?;
        for at in self.shared.slots_in_use(stop.line) {
            let slot = self.shared.line(at).slot(at.bucket, at.place);
            if let Some(item) = self.shared.item(slot)
                && !expired(&item, now)
            {
                visit(&item, slot.is_fetched());
            }
        }
        stop.next
    }

    /// Removes every item of the line with this number that has expired. Returns how many there were, and the number of the next line; none if this
    /// was the last.
    pub fn expire(&mut self, number: usize, now: Moment) -> (u64, Option<usize>) {
        let Some(stop) = self.stop(number) else {
            return (0, None);
        };
        let shared = self.shared;
        let mut removed = 0;
        for at in shared.slots_in_use(stop.line) {
            let slot = shared.line(at).slot(at.bucket, at.place);
            if let Some(item) = shared.item(slot)
                && expired(&item, now)
            {
                shared.counters.gone(&item);
                let was_read = is_fetched(&item, slot);
                shared.counters.expired_unfetched.add((!was_read).into());
                shared
                    .exit
                    .removed(shared.seed, &item, Reason::Expired, was_read, now);
                shared.unlink(at, A::SHARED_READS);
                self.state.slabs.free(&shared.pool, slot.offset());
                removed += 1;
            }
        }
        (removed, stop.next)
    }

    /// The line with a number, if there is one.
    fn stop(&self, number: usize) -> Option<Stop> {
        let (directory, pool) = (&self.shared.directory, &self.shared.pool);
        let lines = directory.slots_per_segment() / (LINE_BUCKETS * BUCKET_SLOTS);
        let (prefix, nth) = (number / lines, number % lines);
        let (page, run) = directory.segment_of(prefix)?;
        let line = directory.segment_on(pool, page).lines().nth(nth)?;
        let next = match nth + 1 < lines {
            true => Some(number + 1),
            false => Some(run.end * lines).filter(|_| run.end < directory.prefixes()),
        };
        Some(Stop { line, next })
    }
}

impl Shared {
    /// The slots of a line that name items.
    fn slots_in_use(&self, line: usize) -> impl Iterator<Item = SlotAt> {
        let tags = line_at(&self.pool, line);
        places().filter_map(move |(bucket, place)| {
            let in_use = tags.tags(bucket).to_le_bytes()[place] != 0;
            in_use.then_some(SlotAt {
                line,
                bucket,
                place,
            })
        })
    }
}
