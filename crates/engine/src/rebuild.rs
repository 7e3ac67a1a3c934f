//! Engines over the same partitions under another access mode.

use crate::build::shared_out;
use crate::execute::Executor;
use crate::observer::ChangeObserver;
use crate::{Engine, Partitions};
use glimmer_dispatch::AccessMode;
use glimmer_store::table::Table;
use std::any::Any;
use std::fmt::Debug;

/// Knows the types that the engines of a store have under each access mode.
pub trait Rebuild: Debug + Send + Sync {
    /// The engines of all workers, in the order of their numbers, under another access mode. The
    /// items, their CAS uniques and expiries, flushes that are due, and the figures stay.
    ///
    /// All engines are in the caller's hands, so no request is executed meanwhile.
    ///
    /// # Panics
    ///
    /// If the engines are not all those of the one store that this was made for.
    fn rebuild(&self, engines: Vec<Box<dyn Engine>>, access: AccessMode) -> Vec<Box<dyn Engine>>;
}

/// The engines of a store whose table is `T`, in the order of their workers, as engines over the
/// same partitions whose table is `U`. The two differ in their access mode.
///
/// **Memory ordering.** The engines have moved to the caller, from the threads that used them, and
/// so has everything that these threads did. An access mode is a way to go about the same words:
/// between two batches, they are the same under each.
///
/// # Panics
///
/// If the engines are not all those of one store, with table `T` and this observer.
pub fn rebuild<T: Table, U: Table<Parts = T::Parts>, O: ChangeObserver>(
    engines: Vec<Box<dyn Engine>>,
) -> Vec<Box<dyn Engine>> {
    let mut rests = Vec::with_capacity(engines.len());
    let mut owners = Vec::new();
    let mut map = None;
    for engine in engines {
        let engine: Box<dyn Any> = engine;
        let engine = engine.downcast::<Executor<T, O>>();
        let (partitions, rest) = engine.expect("an engine of this store").divide();
        rests.push(rest);
        let map = *map.get_or_insert(partitions.map());
        owners.resize_with(map.partitions(), || None);
        keep_owned(partitions, &mut owners);
    }
    let Some(map) = map else {
        return Vec::new();
    };
    let another = |owner: Option<T>| {
        let parts = owner.and_then(Table::into_parts);
        U::of_parts(parts.expect("every engine of the store is here"))
    };
    let owners: Vec<U> = owners.into_iter().map(another).collect();
    let unite = |(partitions, rest)| Box::new(Executor::unite(partitions, rest)) as Box<dyn Engine>;
    shared_out(owners, map)
        .into_iter()
        .zip(rests)
        .map(unite)
        .collect()
}

/// Moves the owners of a worker's own partitions to their places. Its other handles end.
fn keep_owned<T: Table>(partitions: Partitions<T>, owners: &mut [Option<T>]) {
    let is_owned: Vec<bool> = (0..partitions.count())
        .map(|partition| partitions.is_owned(partition))
        .collect();
    let handles = partitions.into_handles().into_iter().zip(is_owned);
    for (place, (handle, is_owned)) in owners.iter_mut().zip(handles) {
        if is_owned {
            *place = handle.owner;
        }
    }
}
