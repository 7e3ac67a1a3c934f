//! One engine per worker over one set of partitions.

use crate::execute::Executor;
use crate::flush::FlushClock;
use crate::partitions_of::Handle;
use crate::{Engine, Partitions};
use glimmer_base::limits::{PARTITIONS_MAX, WORKERS_MAX};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::Evict;
use glimmer_store::partition::{ConfigError, Owner, PartitionConfig};
use std::sync::Arc;

/// A store: how many partitions of which size, for how many workers.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Number of partitions; partition `p` belongs to worker `p % workers`.
    pub partitions: usize,
    /// Number of workers.
    pub workers: usize,
    /// Each partition's sizes; its `numa_node` is replaced by its owner's.
    pub partition: PartitionConfig,
    /// Each worker's NUMA node, where that matters; may be empty.
    pub numa_nodes: Vec<u32>,
}

/// How an access mode hands a partition to the workers.
pub trait Spread: Access {
    /// A writing side for another worker than the owner, if the mode has such.
    fn share<E: Evict>(owner: &Owner<Self, E>) -> Option<Owner<Self, E>>
    where
        Self: Sized;
}

impl Spread for Erew {
    fn share<E: Evict>(_: &Owner<Self, E>) -> Option<Owner<Self, E>> {
        None
    }
}

impl Spread for Crew {
    fn share<E: Evict>(_: &Owner<Self, E>) -> Option<Owner<Self, E>> {
        None
    }
}

impl Spread for Crcw {
    fn share<E: Evict>(owner: &Owner<Self, E>) -> Option<Owner<Self, E>> {
        Some(owner.clone())
    }
}

/// Builds the partitions, and for each worker the engine that drives them.
///
/// # Errors
///
/// [`ConfigError`], if a partition cannot be made.
///
/// # Panics
///
/// If there is no worker or no partition, or more than the limits allow.
pub fn build<A: Spread, E: Evict>(
    config: &StoreConfig,
    rule: E,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    let flushes = Arc::new(FlushClock::default());
    let workers = partitions::<A, E>(config, rule)?;
    Ok(workers
        .into_iter()
        .enumerate()
        .map(|(worker, partitions)| {
            let owned = (0..config.partitions)
                .filter(|p| p % config.workers == worker)
                .collect();
            Box::new(Executor::new(partitions, owned, flushes.clone())) as Box<dyn Engine>
        })
        .collect())
}

/// Each worker's handles to the partitions, for those who drive the store without requests.
///
/// # Errors
///
/// As [`build`].
///
/// # Panics
///
/// As [`build`].
pub fn partitions<A: Spread, E: Evict>(
    config: &StoreConfig,
    rule: E,
) -> Result<Vec<Partitions<A, E>>, ConfigError> {
    assert!(
        (1..=PARTITIONS_MAX).contains(&config.partitions)
            && (1..=WORKERS_MAX).contains(&config.workers)
    );
    let mut handles: Vec<Vec<Handle<A, E>>> = (0..config.workers).map(|_| Vec::new()).collect();
    for partition in 0..config.partitions {
        let owner_worker = partition % config.workers;
        let numa_node = config.numa_nodes.get(owner_worker).copied();
        let owner = Owner::<A, E>::new(
            &PartitionConfig {
                numa_node,
                ..config.partition
            },
            rule.clone(),
        )?;
        for worker in (0..config.workers).filter(|&worker| worker != owner_worker) {
            handles[worker].push(Handle {
                owner: A::share(&owner),
                reader: owner.reader(),
            });
        }
        let reader = owner.reader().filter(|_| A::SHARED_WRITES);
        handles[owner_worker].push(Handle {
            owner: Some(owner),
            reader,
        });
    }
    Ok(handles
        .into_iter()
        .enumerate()
        .map(|(worker, handles)| Partitions::new(handles, config.workers, worker))
        .collect())
}
