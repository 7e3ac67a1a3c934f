//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two distant places in memory: its bucket and its item. Executed one after the
//! other, each request would wait for both. The pipeline takes a batch in groups of [`GROUP`]. It
//! prefetches the items of a group, then the buckets of the next group, and then executes the
//! group. So both are in the cache when a request is executed. Each stage is a loop of its own,
//! which keeps in registers what its steps have in common.
//!
//! These stages only prefetch. They hand on the key's partition, where its bucket was, and the slot
//! in which its tag was met. An earlier request of the batch may have changed all but the first, so
//! execution uses them as the place to look first, and for nothing else:
//! [`Index`](glimmer_store::table::Index) says why that is sound.

use crate::Partitions;
use crate::partitions_of::Place;
use glimmer_base::Keyhash;
use glimmer_store::table::Table;

/// Requests that pass a stage together: enough to hide the way to memory, and so few that two
/// groups fit into the nearest cache.
pub const GROUP: usize = 16;

/// The enabled stages: all of them, unless the effect of one is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Prefetch buckets.
    pub bucket: bool,
    /// Prefetch items.
    pub item: bool,
}

impl Stages {
    /// Both stages.
    pub const ALL: Stages = Stages {
        bucket: true,
        item: true,
    };
}

/// The data that the stages prefetch.
pub trait Prefetch {
    /// Where a key belongs, and where it was met.
    type Place: Copy + Default;
    /// Finds the key's bucket, and prefetches it if `fetch` is set.
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Self::Place;
    /// Prefetches the key's item, after its bucket.
    fn item(&self, place: &mut Self::Place);
}

impl<T: Table> Prefetch for Partitions<T> {
    type Place = Place<T::Home>;

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Self::Place {
        self.prefetch_bucket(keyhash, fetch)
    }

    #[inline(always)]
    fn item(&self, place: &mut Self::Place) {
        self.prefetch_item(place);
    }
}

/// Runs `execute` on every job of a batch in order, with each job's bucket and item fetched ahead.
/// It is told the job's number in the batch, and where the stages have met its key.
#[inline(always)]
pub fn staged<T: Prefetch, J>(
    table: &mut T,
    jobs: &[J],
    stages: Stages,
    keyhash: impl Fn(&J) -> Keyhash,
    mut execute: impl FnMut(&mut T, usize, T::Place, &J),
) {
    let [now, next] = &mut [[T::Place::default(); GROUP]; 2];
    let (mut now, mut next) = (now, next);
    let mut groups = jobs.chunks(GROUP);
    // The group whose buckets were fetched in the round before, and its first job's number.
    let (mut group, mut first): (&[J], usize) = (&[], 0);
    loop {
        if stages.item {
            for place in &mut now[..group.len()] {
                table.item(place);
            }
        }
        let following = groups.next().unwrap_or_default();
        for (job, place) in following.iter().zip(next.iter_mut()) {
            *place = table.bucket(keyhash(job), stages.bucket);
        }
        for (nth, (job, place)) in group.iter().zip(now.iter()).enumerate() {
            execute(table, first + nth, *place, job);
        }
        if following.is_empty() {
            return;
        }
        first += group.len();
        group = following;
        std::mem::swap(&mut now, &mut next);
    }
}
