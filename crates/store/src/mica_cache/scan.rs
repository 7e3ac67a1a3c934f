//! The incremental scan for stale entries (MICA §4.3.2, "Handling dangling pointers").
//!
//! Every append pays for a share of the scan, so that the whole index has been looked at by the
//! time a log has gone round a few times, long before its offsets start again. What the scan finds
//! dangling it removes, except what the eviction rule wants remembered for longer; and it gives
//! back spare buckets that are no longer needed.

use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::Geometry;
use crate::index::chained::ChainedIndex;
use crate::index::{Entry, LogId};
use crate::work;

/// Where the scan stands.
#[derive(Default)]
pub(super) struct Cursor {
    main: usize,
    /// What appends have paid in and no bucket has used, in words times buckets.
    credit: u64,
    /// The same of what was moved to a tail, which is scanned for without giving buckets back.
    owed: u64,
}

/// The scan goes round once while a log goes round this often, offsets permitting.
const LAPS_PER_SCAN: [u64; 2] = [1, 4];

/// For how many laps a scan may leave a dangling entry, beyond the one lap that the scan itself
/// takes, before its offset would look live again.
fn laps_kept(geometry: Geometry, wanted: u64) -> u64 {
    wanted.min(
        geometry
            .laps()
            .saturating_sub(3 + LAPS_PER_SCAN[LogId::Small as usize]),
    )
}

impl<A: Access> Writer<'_, A> {
    /// Scans as many buckets as an append of `words` words to a log pays for.
    #[inline(always)]
    pub(super) fn scan_after(&mut self, id: LogId, words: u64) {
        let geometry = self.log(id).geometry();
        let laps = if geometry.laps() > 16 {
            LAPS_PER_SCAN[id as usize]
        } else {
            1
        };
        let price = self.lap_words(id) * laps;
        let mains = self.shared.index.mains() as u64;
        self.state.scan.credit += words * mains;
        while self.state.scan.credit >= price {
            self.state.scan.credit -= price;
            self.scan_next(None);
            self.shrink();
        }
        while self.state.scan.owed >= price {
            self.state.scan.owed -= price;
            self.scan_next(None);
        }
    }

    /// Has the next append pay for `words` words that are moved to a tail as well, so that the scan
    /// keeps up with the laps of a log in which most is moved on.
    pub(super) fn owe_scan_for(&mut self, words: u64) {
        self.state.scan.owed += words * self.shared.index.mains() as u64;
    }

    /// Scans the chain whose turn it is, unless it is `locked`.
    pub(super) fn scan_next(&mut self, locked: Option<usize>) {
        let index = &self.shared.index;
        // The index may have shrunk since.
        let main = Some(self.state.scan.main).filter(|&main| main < index.mains());
        let main = main.unwrap_or(0);
        self.state.scan.main = main + 1;
        let home = index.main(main);
        if locked != Some(home) {
            self.scan_chain(home);
        }
    }

    fn scan_chain(&mut self, home: usize) {
        let (shared, index) = (self.shared, &self.shared.index);
        index
            .chain(home)
            .for_each(|number| work::examined(ChainedIndex::entries_of(home, number)));
        let is_stale = |entry: Entry| !entry.is_empty() && shared.is_forgotten(entry);
        let removed = index.clear_if(home, is_stale, A::SHARED_READS);
        shared.common.counters.stale_removed.add(removed);
        if index.bucket(home).next().is_some() {
            self.shorten_chain(home);
        }
    }
}

impl Shared {
    /// Whether an entry dangles, and the eviction rule has no use for it.
    pub(super) fn is_forgotten(&self, entry: Entry) -> bool {
        let (log, geometry) = (self.log(entry.log()), self.log(entry.log()).geometry());
        let kept = match entry.log() {
            LogId::Small => laps_kept(geometry, self.heap.setting().ghost_laps.into()),
            LogId::Main => 0,
        };
        !log.is_live(entry.offset()) && geometry.laps_behind(entry.offset(), log.head()) >= kept
    }
}
