//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two distant places in memory: its bucket and its item. Executed one after the
//! other, each request would wait for both. The pipeline prefetches a request's bucket while it
//! executes the request [`BUCKET_AHEAD`] places before it, and its item while it executes the one
//! [`ITEM_AHEAD`] places before it, so that both are in the cache when the request is executed.
//!
//! These stages only prefetch. They hand on the key's partition, where its bucket was, and the slot
//! in which its tag was met. An earlier request of the batch may have changed all but the first, so
//! execution uses them as the place to look first, and for nothing else:
//! [`Index`](glimmer_store::table::Index) says why that is sound.

use crate::Partitions;
use crate::partitions_of::Place;
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
    let mut places = [T::Place::default(); PLACES];
    for at in 0..BUCKET_AHEAD.min(jobs.len()) {
        fetch_bucket(table, jobs, stages, &keyhash, &mut places, at);
    }
    for at in 0..ITEM_AHEAD.min(jobs.len()) {
        fetch_item(table, stages, &mut places, at);
    }
    for (at, job) in jobs.iter().enumerate() {
        let ahead = at + BUCKET_AHEAD;
        fetch_bucket(table, jobs, stages, &keyhash, &mut places, ahead);
        if at + ITEM_AHEAD < jobs.len() {
            fetch_item(table, stages, &mut places, at + ITEM_AHEAD);
        }
        execute(table, at, places[at % PLACES], job);
    }
}

/// Places of the jobs that are in the pipeline: a power of two that is larger than
/// [`BUCKET_AHEAD`], so that the place of the job that is executed is not overwritten before.
const PLACES: usize = 2 * BUCKET_AHEAD;

/// The first stage of a job, if there is one with this number.
#[inline(always)]
fn fetch_bucket<T: Prefetch, J>(
    table: &T,
    jobs: &[J],
    stages: Stages,
    keyhash: &impl Fn(&J) -> Keyhash,
    places: &mut [T::Place; PLACES],
    at: usize,
) {
    if let Some(job) = jobs.get(at) {
        places[at % PLACES] = table.bucket(keyhash(job), stages.bucket);
    }
}

/// The second stage of a job.
#[inline(always)]
fn fetch_item<T: Prefetch>(table: &T, stages: Stages, places: &mut [T::Place; PLACES], at: usize) {
    if stages.item {
        table.item(&mut places[at % PLACES]);
    }
}
