//! Builds one engine per worker over one set of partitions.

use crate::execute::{Executor, Uniques};
use crate::flush::FlushClock;
use crate::observer::{ChangeObserver, Unobserved};
use crate::partitions_of::Handle;
use crate::{Engine, Partitions};
use glimmer_dispatch::PartitionMap;
use glimmer_store::access::Access;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::CasSequence;
use glimmer_store::removals::Tap;
use glimmer_store::table::{Table, TableWriter};
use std::sync::Arc;

/// How many partitions and workers a store has.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Number of partitions; [`PartitionMap`] defines their owners.
    pub partitions: usize,
    /// Number of workers.
    pub workers: usize,
    /// The NUMA node of each worker; empty if that does not matter.
    pub numa_nodes: Vec<u32>,
}

/// Builds the partitions, each with `make` for its owner's NUMA node, and an engine for each
/// worker.
///
/// # Errors
///
/// The error of `make`.
///
/// # Panics
///
/// If there is no worker or no partition, or more than the limits allow.
pub fn build<T: Table, X>(
    spread: &Spread,
    uniques: Uniques,
    make: impl FnMut(Option<u32>) -> Result<T, X>,
) -> Result<Vec<Box<dyn Engine>>, X> {
    let tap = Arc::new(Tap::new(Unobserved));
    engines(spread, uniques, &tap, FlushClock::default(), make)
}

/// Like [`build`], with an observer that is told of every change of an item while its tap is open,
/// and with flushes that go on from those of a clock.
///
/// # Errors
///
/// As for [`build`].
///
/// # Panics
///
/// As for [`build`].
pub fn build_observed<T: Table, O: ChangeObserver, X>(
    spread: &Spread,
    uniques: Uniques,
    tap: &Arc<Tap<O>>,
    flushes: FlushClock,
    mut make: impl FnMut(Option<u32>) -> Result<T, X>,
) -> Result<Vec<Box<dyn Engine>>, X> {
    // One that a file has kept.
    if let Some(pending_ms) = flushes.pending_ms() {
        tap.observer().flush(|| Some(pending_ms));
    }
    engines(spread, uniques, tap, flushes, |numa_node| {
        let mut table = make(numa_node)?;
        table.observe(tap.clone());
        Ok(table)
    })
}

fn engines<T: Table, O: ChangeObserver, X>(
    spread: &Spread,
    uniques: Uniques,
    tap: &Arc<Tap<O>>,
    flushes: FlushClock,
    mut make: impl FnMut(Option<u32>) -> Result<T, X>,
) -> Result<Vec<Box<dyn Engine>>, X> {
    let flushes = Arc::new(flushes);
    let workers = partitions(spread, |numa_node| {
        let mut table = make(numa_node)?;
        if let Some(groups) = flushes.groups() {
            table.have_groups(groups);
        }
        Ok(table)
    })?;
    Ok(workers
        .into_iter()
        .map(|(partitions, participant)| {
            let executor = Executor::new(
                partitions,
                participant,
                flushes.clone(),
                uniques,
                tap.clone(),
            );
            Box::new(executor) as Box<dyn Engine>
        })
        .collect())
}

/// Each worker's handles to the partitions, and its entry among the batches of concurrent reads,
/// for callers that use the store without requests.
///
/// # Errors
///
/// As for [`build`].
///
/// # Panics
///
/// As for [`build`].
pub fn partitions<T: Table, X>(
    spread: &Spread,
    mut make: impl FnMut(Option<u32>) -> Result<T, X>,
) -> Result<Vec<(Partitions<T>, Participant)>, X> {
    let map = PartitionMap::new(spread.partitions, spread.workers);
    let (batches, participants) = Batches::new(spread.workers);
    let mut owners = Vec::with_capacity(spread.partitions);
    for partition in 0..spread.partitions {
        let worker = map.owner_of(partition);
        let mut owner = make(spread.numa_nodes.get(worker).copied())?;
        owner.join(&batches, worker);
        // As in memcached, no two items have the same CAS unique, until uniques begin again.
        let sequence = CasSequence::new(partition as u64 + 1, spread.partitions as u64);
        owner.enter(0).cas_sequence().change_to(&sequence);
        owners.push(owner);
    }
    Ok(shared_out(owners, map)
        .into_iter()
        .zip(participants)
        .collect())
}

/// Each worker's handles to these partitions.
pub(crate) fn shared_out<T: Table>(owners: Vec<T>, map: PartitionMap) -> Vec<Partitions<T>> {
    let mut handles: Vec<Vec<Handle<T>>> = (0..map.cores()).map(|_| Vec::new()).collect();
    for (partition, owner) in owners.into_iter().enumerate() {
        let owner_worker = map.owner_of(partition);
        for worker in (0..map.cores()).filter(|&worker| worker != owner_worker) {
            handles[worker].push(Handle {
                owner: owner.share(worker),
                reader: owner.reader(),
            });
        }
        let reader = owner.reader().filter(|_| T::Access::SHARED_WRITES);
        handles[owner_worker].push(Handle {
            owner: Some(owner),
            reader,
        });
    }
    let of_worker = |(worker, handles)| Partitions::new(handles, map, worker);
    handles.into_iter().enumerate().map(of_worker).collect()
}
