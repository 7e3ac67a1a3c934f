//! Events that nobody was shown.

use std::cell::Cell;

use crossbeam_utils::CachePadded;
use glimmer_base::sync::{AtomicU64, Ordering};
use glimmer_proto::text::watch::{CHANGES, CONNEVENTS, DELETIONS, EVICTIONS, FETCHERS, MUTATIONS};

/// Kinds of events.
const KINDS: usize = 6;

const _: () = assert!(
    FETCHERS | MUTATIONS | EVICTIONS | CONNEVENTS | DELETIONS | CHANGES == (1 << KINDS) - 1,
    "each kind has one of the lowest bits"
);

/// Threads count in places of their own, unless there are more of them.
const PLACES: usize = if cfg!(loom) { 1 } else { 16 };

/// How many events of each kind were counted without a line.
#[derive(Default)]
pub(super) struct Missed([CachePadded<[AtomicU64; KINDS]>; PLACES]);

impl Missed {
    /// Counts events of one kind.
    #[inline]
    pub fn add(&self, interest: u32, count: u64) {
        let kind = (interest.trailing_zeros() as usize).min(KINDS - 1);
        self.0[place()][kind].fetch_add(count, Ordering::Relaxed);
    }

    /// How many events of these kinds were counted.
    pub fn sum(&self, interests: u32) -> u64 {
        let of = |kinds: &CachePadded<[AtomicU64; KINDS]>| {
            let kinds = kinds.iter().enumerate();
            let kinds = kinds.filter(|(kind, _)| interests >> kind & 1 != 0);
            kinds
                .map(|(_, count)| count.load(Ordering::Relaxed))
                .sum::<u64>()
        };
        self.0.iter().map(of).sum()
    }
}

/// The place in which this thread counts.
#[inline]
fn place() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        place.get()
    })
}
