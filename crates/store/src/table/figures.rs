//! A table's figures, and how old its items are.

use crate::heap::Item;

glimmer_base::counters! {
    /// A partition's figures at one moment.
    Counts from
    /// The figures as the writer keeps them.
    Counters {
        /// Items that can be reached.
        items,
        /// Bytes of the log that they take.
        bytes,
        /// Items stored since start.
        stored,
        /// Live items that left to make room: at the head of a log, or from a full index.
        evictions,
        /// Those evictions whose items no client had fetched since they were stored.
        evicted_unfetched,
        /// Those evictions whose items had an expiry time.
        evicted_mortal,
        /// Items that had expired when the head of a log reached them, or a store wanted their
        /// place.
        expired_reclaimed,
        /// Items that no client had fetched since they were stored, among those and among expired
        /// items that were removed earlier.
        expired_unfetched,
        /// Those evictions that the index caused: a chain of buckets was full and no spare was
        /// left.
        index_evictions,
        /// Items that were stored under their keys' second keyhashes, as the chains of the first
        /// ones were full.
        overflowed,
        /// Items put back at a tail.
        reinsertions,
        /// Values written over their old ones.
        in_place_updates,
        /// Bytes of the logs that hold neither a live item nor one that is being stored, and are
        /// not free yet, when the second began.
        dead_bytes,
        /// Spare buckets in use.
        spares_used,
        /// Stale entries that the scan removed.
        stale_removed,
        /// Items that were not stored because there was no room for them, and nothing is evicted.
        refused,
        /// Items that were moved so that free space came together.
        moved,
        /// Main buckets that were added to the index since start.
        buckets_added,
        /// Main buckets that left the index since start.
        buckets_merged,
        /// Items that were there at start, in a memory file.
        restored,
        /// Items that were not whole there, because the process before was ended by force.
        lost,
    }
}

impl Counters {
    /// An item can no longer be reached.
    #[inline(always)]
    pub(crate) fn gone(&self, item: &Item<'_>) {
        self.items.sub(1);
        self.bytes.sub(8 * item.words() as u64);
    }

    /// No items are left.
    pub(crate) fn emptied(&self) {
        self.items.set(0);
        self.bytes.set(0);
        self.dead_bytes.set(0);
    }
}

/// How old the items of a table are. Tables that do not know when an item was stored show nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    /// The second, counted from the server's epoch, in which the oldest item in memory was stored.
    pub oldest_s: Option<u64>,
    /// Seconds that the item which was evicted most recently had been in memory.
    pub evicted_after_s: Option<u64>,
}

impl core::ops::AddAssign for Ages {
    /// The ages of two tables together: the greater of each.
    fn add_assign(&mut self, other: Ages) {
        let oldest = [self.oldest_s, other.oldest_s];
        self.oldest_s = oldest.into_iter().flatten().min();
        self.evicted_after_s = self.evicted_after_s.max(other.evicted_after_s);
    }
}
