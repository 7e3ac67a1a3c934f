//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two distant places in memory: its bucket and its item. Executed one after the
//! other, each request would wait for both. The pipeline prefetches a request's bucket while it
//! executes the request [`BUCKET_AHEAD`] places before it, and its item while it executes the one
//! [`ITEM_AHEAD`] places before it, so that both are in the cache when the request is executed.
//! These stages only prefetch. The second stage uses the result of the first, although the bucket
//! may have moved by then. Execution looks everything up again, because an earlier request in the
//! batch may have changed it; it uses the first stage's result only if the table can tell that it
//! is still valid.

use crate::Partitions;
use glimmer_base::Keyhash;
use glimmer_store::table::Table;

/// How many requests ahead of execution a bucket is prefetched.
pub const BUCKET_AHEAD: usize = 16;
/// How many requests ahead of execution an item is prefetched.
pub const ITEM_AHEAD: usize = 8;

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
    /// The position of a key's bucket.
    type Home: Copy + Default;
    /// Finds the key's bucket, and prefetches it if `fetch` is set.
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Self::Home;
    /// Prefetches the key's item, after its bucket.
    fn item(&self, keyhash: Keyhash, place: Self::Home);
}

impl<T: Table> Prefetch for Partitions<T> {
    type Home = T::Home;

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> T::Home {
        self.prefetch_bucket(keyhash, fetch)
    }

    #[inline(always)]
    fn item(&self, keyhash: Keyhash, place: T::Home) {
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
    mut execute: impl FnMut(&mut T, usize, T::Home, &J),
) {
    let mut places = [T::Home::default(); BUCKET_AHEAD];
    let fetch_bucket = |table: &T, places: &mut [T::Home; BUCKET_AHEAD], at: usize| {
        if (stages.bucket || stages.item)
            && let Some(job) = jobs.get(at)
        {
            places[at % BUCKET_AHEAD] = table.bucket(keyhash(job), stages.bucket);
        }
    };
    let fetch_item = |table: &T, places: &[T::Home; BUCKET_AHEAD], at: usize| {
        if stages.item
            && let Some(job) = jobs.get(at)
        {
            table.item(keyhash(job), places[at % BUCKET_AHEAD]);
        }
    };
    for at in 0..BUCKET_AHEAD.min(jobs.len()) {
        fetch_bucket(table, &mut places, at);
    }
    for at in 0..ITEM_AHEAD.min(jobs.len()) {
        fetch_item(table, &places, at);
    }
    for (at, job) in jobs.iter().enumerate() {
        let place = places[at % BUCKET_AHEAD];
        fetch_bucket(table, &mut places, at + BUCKET_AHEAD);
        fetch_item(table, &places, at + ITEM_AHEAD);
        execute(table, at, place, job);
    }
}
