//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two places that are far apart in memory: its bucket and its item. Executed one
//! after another, each request would wait for both. Here a request's bucket is fetched while the
//! requests [`BUCKET_AHEAD`] places before it are executed, and its item while those [`ITEM_AHEAD`]
//! places before it are, so that by the time it is executed both are in the cache. The stages only
//! prefetch: the second fetches by what the first has computed, though the bucket may be elsewhere
//! by then. Execution looks everything up anew, because a request earlier in the batch may have
//! changed it; what the first stage has computed it uses where a table can tell that it still
//! holds.

use crate::Partitions;
use glimmer_base::Keyhash;
use glimmer_store::table::Table;

/// How many requests ahead of execution a bucket is fetched.
pub const BUCKET_AHEAD: usize = 16;
/// How many requests ahead of execution an item is fetched.
pub const ITEM_AHEAD: usize = 8;

/// Which stages to run; all of them unless one is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Fetch buckets ahead.
    pub bucket: bool,
    /// Fetch items ahead.
    pub item: bool,
}

impl Stages {
    /// Both stages.
    pub const ALL: Stages = Stages {
        bucket: true,
        item: true,
    };
}

/// What the stages fetch from.
pub trait Prefetch {
    /// Where a key's bucket was.
    type Place: Copy + Default;
    /// Finds the key's bucket, and fetches it if `fetch` says so.
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Self::Place;
    /// Fetches the key's item; its bucket has been fetched.
    fn item(&self, keyhash: Keyhash, place: Self::Place);
}

impl<T: Table> Prefetch for Partitions<T> {
    type Place = T::Place;

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> T::Place {
        self.prefetch_bucket(keyhash, fetch)
    }

    #[inline(always)]
    fn item(&self, keyhash: Keyhash, place: T::Place) {
        self.prefetch_item(keyhash, place);
    }
}

/// Runs `execute` on every job of a batch in order, with each job's bucket and item fetched ahead.
/// It is told where the bucket was then; the default, if no stage has looked.
#[inline(always)]
pub fn staged<T: Prefetch, J>(
    table: &mut T,
    jobs: &[J],
    stages: Stages,
    keyhash: impl Fn(&J) -> Keyhash,
    mut execute: impl FnMut(&mut T, usize, T::Place, &J),
) {
    let mut places = [T::Place::default(); BUCKET_AHEAD];
    let fetch_bucket = |table: &T, places: &mut [T::Place; BUCKET_AHEAD], at: usize| {
        if (stages.bucket || stages.item)
            && let Some(job) = jobs.get(at)
        {
            places[at % BUCKET_AHEAD] = table.bucket(keyhash(job), stages.bucket);
        }
    };
    let fetch_item = |table: &T, places: &[T::Place; BUCKET_AHEAD], at: usize| {
        if stages.item
            && let Some(job) = jobs.get(at)
        {
            table.item(keyhash(job), places[at % BUCKET_AHEAD]);
        }
    };
    for at in 0..BUCKET_AHEAD {
        fetch_bucket(table, &mut places, at);
    }
    for at in 0..ITEM_AHEAD {
        fetch_item(table, &places, at);
    }
    for (at, job) in jobs.iter().enumerate() {
        let place = places[at % BUCKET_AHEAD];
        fetch_bucket(table, &mut places, at + BUCKET_AHEAD);
        fetch_item(table, &places, at + ITEM_AHEAD);
        execute(table, at, place, job);
    }
}
