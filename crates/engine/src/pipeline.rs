//! Staged prefetching over a batch (MICA §4.3.2, "Multi-stage prefetching").
//!
//! A request touches two places that are far apart in memory: its bucket and its item. Executed one
//! after another, each request would wait for both. Here a request's bucket is fetched while the
//! requests [`BUCKET_AHEAD`] places before it are executed, and its item while those [`ITEM_AHEAD`]
//! places before it are, so that by the time it is executed both are in the cache. The stages only
//! prefetch. Execution looks everything up anew, because a request earlier in the batch may have
//! changed it.

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
    /// Fetches the key's bucket.
    fn bucket(&self, keyhash: Keyhash);
    /// Fetches the key's item; its bucket has been fetched.
    fn item(&self, keyhash: Keyhash);
}

impl<T: Table> Prefetch for Partitions<T> {
    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash) {
        self.prefetch_bucket(keyhash);
    }

    #[inline(always)]
    fn item(&self, keyhash: Keyhash) {
        self.prefetch_item(keyhash);
    }
}

/// Runs `execute` on every job of a batch in order, with each job's bucket and item fetched ahead.
#[inline(always)]
pub fn staged<T: Prefetch, J>(
    table: &mut T,
    jobs: &[J],
    stages: Stages,
    keyhash: impl Fn(&J) -> Keyhash,
    mut execute: impl FnMut(&mut T, usize, &J),
) {
    let fetch_bucket = |table: &T, at: usize| {
        if stages.bucket
            && let Some(job) = jobs.get(at)
        {
            table.bucket(keyhash(job));
        }
    };
    let fetch_item = |table: &T, at: usize| {
        if stages.item
            && let Some(job) = jobs.get(at)
        {
            table.item(keyhash(job));
        }
    };
    for at in 0..BUCKET_AHEAD {
        fetch_bucket(table, at);
    }
    for at in 0..ITEM_AHEAD {
        fetch_item(table, at);
    }
    for (at, job) in jobs.iter().enumerate() {
        fetch_bucket(table, at + BUCKET_AHEAD);
        fetch_item(table, at + ITEM_AHEAD);
        execute(table, at, job);
    }
}
