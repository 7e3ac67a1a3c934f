//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two distant places in memory: its bucket and its item. Executed one after the
//! other, each request would wait for both. The pipeline takes a batch in groups of [`GROUP`], of
//! which three are under way. In each round it prefetches the items of one group, prefetches the
//! buckets of the next, and executes the one before. So bucket and item are in the cache when a
//! request is executed. Each stage is a loop of its own, which keeps in registers what its steps
//! have in common.
//!
//! One request in some eleven has its entry not in its bucket but in the spare bucket behind it,
//! which the second stage prefetches instead of the item. For these requests there is a third
//! stage, a round later, which prefetches the item. Without it they would wait for memory, and all
//! requests together would take an eighth more time.
//!
//! These stages only prefetch. They hand on the key's partition, where its bucket was, and the slot
//! in which its tag was met. An earlier request of the batch may have changed all but the first, so
//! execution uses them as the place to look first, and for nothing else:
//! [`Index`](glimmer_store::table::Index) says why that is sound.

use crate::Partitions;
use crate::partitions_of::Place;
use glimmer_base::Keyhash;
use glimmer_store::table::Table;

/// Requests that pass a stage together: enough to hide the way to memory, and so few that three
/// groups fit into the nearest cache.
pub const GROUP: usize = 16;

/// Some of a group's requests, by their place in it.
type Subset = u16;
const _: () = assert!(GROUP <= Subset::BITS as usize);

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
    /// Prefetches the key's item, after its bucket. Says whether the item may be known only to what
    /// is behind the bucket, which is prefetched then.
    fn item(&self, place: &mut Self::Place) -> bool;
    /// Prefetches the key's item, after what is behind its bucket.
    fn item_behind(&self, place: &mut Self::Place);
}

impl<T: Table> Prefetch for Partitions<T> {
    type Place = Place<T::HomeBucket>;

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Self::Place {
        self.prefetch_bucket(keyhash, fetch)
    }

    #[inline(always)]
    fn item(&self, place: &mut Self::Place) -> bool {
        self.prefetch_item(place)
    }

    #[inline(always)]
    fn item_behind(&self, place: &mut Self::Place) {
        self.prefetch_item_behind(place);
    }
}

/// What becomes of jobs whose data has been fetched. A trait and not a closure, so that a type can
/// have its code compiled into the loop: `#[inline(always)]` is for functions alone.
pub trait Execute<T: Prefetch, J> {
    /// Executes a job. `nth` is its number in the batch, and `place` where the stages have met its
    /// key.
    fn execute(&mut self, table: &mut T, nth: usize, place: T::Place, job: &J);
}

/// The first stage of a group. Apart, as the second is, so that the registers are its own.
#[inline(never)]
fn fetch_buckets<T: Prefetch, J, const FETCH: bool>(
    table: &T,
    jobs: &[J],
    places: &mut [T::Place; GROUP],
    keyhash: impl Fn(&J) -> Keyhash,
) {
    for (job, place) in jobs.iter().zip(places) {
        *place = table.bucket(keyhash(job), FETCH);
    }
}

/// The second stage of a group. Returns those of its requests that the third is for.
#[inline(never)]
fn fetch_items<T: Prefetch>(table: &T, places: &mut [T::Place]) -> Subset {
    let mut behind = 0;
    for (nth, place) in places.iter_mut().enumerate() {
        if table.item(place) {
            behind |= 1 << nth;
        }
    }
    behind
}

/// Executes every job of a batch in order, with each job's bucket and item fetched ahead.
#[inline(always)]
pub fn staged<T: Prefetch, J>(
    table: &mut T,
    jobs: &[J],
    stages: Stages,
    keyhash: impl Fn(&J) -> Keyhash,
    executor: &mut impl Execute<T, J>,
) {
    let [executed, met, fetched] = &mut [[T::Place::default(); GROUP]; 3];
    let (mut executed, mut met, mut fetched) = (executed, met, fetched);
    let mut groups = jobs.chunks(GROUP);
    // The group to execute and its first job's number, and the group whose items come next.
    let (mut group, mut first, mut next): (&[J], usize, &[J]) = (&[], 0, &[]);
    // Of the group to execute, those whose items are yet to be found.
    let mut behind: Subset = 0;
    loop {
        while behind != 0 {
            table.item_behind(&mut executed[behind.trailing_zeros() as usize % GROUP]);
            behind &= behind - 1;
        }
        if stages.item {
            behind = fetch_items(table, &mut met[..next.len()]);
        }
        let following = groups.next().unwrap_or_default();
        match stages.bucket {
            true => fetch_buckets::<_, _, true>(table, following, fetched, &keyhash),
            false => fetch_buckets::<_, _, false>(table, following, fetched, &keyhash),
        }
        for (nth, (job, place)) in group.iter().zip(executed.iter()).enumerate() {
            executor.execute(table, first + nth, *place, job);
        }
        if next.is_empty() && following.is_empty() {
            return;
        }
        first += group.len();
        (group, next) = (next, following);
        (executed, met, fetched) = (met, fetched, executed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::cell::{Cell, RefCell};

    /// Notes which stages requests pass. The keyhash of a request is its number.
    #[derive(Default)]
    struct Noted {
        executed: Cell<usize>,
        /// Those that have passed the third stage.
        behind: RefCell<Vec<usize>>,
    }

    #[derive(Clone, Copy, Default)]
    struct Way {
        number: usize,
        has_bucket: bool,
        has_item: bool,
    }

    /// Expects job after job, each with its item.
    struct InOrder;

    impl Execute<Noted, usize> for InOrder {
        fn execute(&mut self, noted: &mut Noted, nth: usize, way: Way, &job: &usize) {
            assert_eq!([nth, way.number, noted.executed.get()], [job; 3]);
            assert!(way.has_item);
            noted.executed.set(job + 1);
        }
    }

    fn group_of(number: usize) -> usize {
        number / GROUP
    }

    fn lies_behind(number: usize) -> bool {
        number.is_multiple_of(3)
    }

    impl Prefetch for Noted {
        type Place = Way;

        fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Way {
            Way {
                number: keyhash.0 as usize,
                has_bucket: fetch,
                has_item: false,
            }
        }

        fn item(&self, way: &mut Way) -> bool {
            assert!(way.has_bucket && !way.has_item);
            let round_before = group_of(way.number).saturating_sub(1);
            assert_eq!(self.executed.get(), round_before * GROUP);
            way.has_item = true;
            lies_behind(way.number)
        }

        fn item_behind(&self, way: &mut Way) {
            assert!(way.has_item && lies_behind(way.number));
            // What is behind the bucket has had the time of a round to come.
            assert_eq!(self.executed.get(), group_of(way.number) * GROUP);
            self.behind.borrow_mut().push(way.number);
        }
    }

    #[test]
    fn requests_pass_all_stages_in_order() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let counts = (0..=3 * GROUP + 1).chain((0..20).map(|_| rng.random_range(0..200)));
        for count in counts {
            let jobs: Vec<usize> = (0..count).collect();
            let mut noted = Noted::default();
            let keyhash = |&job: &usize| Keyhash(job as u64);
            staged(&mut noted, &jobs, Stages::ALL, keyhash, &mut InOrder);
            assert_eq!(noted.executed.get(), count);
            let behind: Vec<usize> = (0..count).filter(|&job| lies_behind(job)).collect();
            assert_eq!(noted.behind.take(), behind);
        }
    }
}
