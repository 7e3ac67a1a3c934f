//! The handles through which one worker accesses the partitions.

use glimmer_base::Keyhash;
use glimmer_base::sync::Arc;
use glimmer_dispatch::{AccessMode, Layout, PartitionMap};
use glimmer_store::access::Access;
use glimmer_store::table::{Prefetcher, Table, TableFigures, TableReader};

/// The handles of one worker: a writer where it may write, a reader where it may read concurrently
/// with the writer.
pub struct Partitions<T: Table> {
    handles: Vec<Handle<T>>,
    /// Of the partitions that the worker may touch. Apart from the handles, which are far larger,
    /// so that the stages find one by a shift.
    prefetchers: Vec<Option<Arc<T::Prefetcher>>>,
    map: PartitionMap,
    worker: usize,
}

pub(crate) struct Handle<T: Table> {
    pub owner: Option<T>,
    pub reader: Option<T::Reader>,
}

impl<T: Table> Handle<T> {
    fn prefetcher(&self) -> Option<Arc<T::Prefetcher>> {
        let reader = || self.reader.as_ref().map(TableReader::prefetcher);
        self.owner.as_ref().map(Table::prefetcher).or_else(reader)
    }
}

/// Where a key belongs: its partition, and where its entry was in there not long ago. Only
/// [`Partitions`] make it, and the partition is the key's for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<H> {
    /// The partition.
    partition: usize,
    /// The home in the partition's table, or the default.
    pub home: H,
}

impl<T: Table> Partitions<T> {
    pub(crate) fn new(handles: Vec<Handle<T>>, map: PartitionMap, worker: usize) -> Self {
        Partitions {
            prefetchers: handles.iter().map(Handle::prefetcher).collect(),
            handles,
            map,
            worker,
        }
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, place: Place<T::HomeBucket>) -> &mut Handle<T> {
        &mut self.handles[place.partition]
    }

    /// The writer of a key's partition, if this worker has it.
    #[inline(always)]
    pub fn owner(&mut self, place: Place<T::HomeBucket>) -> Option<&mut T> {
        self.handle(place).owner.as_mut()
    }

    /// The reader of a key's partition, if the access mode has readers.
    #[inline(always)]
    pub fn reader(&self, place: Place<T::HomeBucket>) -> Option<&T::Reader> {
        self.handles[place.partition].reader.as_ref()
    }

    /// The handles by partition.
    pub(crate) fn into_handles(self) -> Vec<Handle<T>> {
        self.handles
    }

    /// The partitions' owners.
    pub(crate) fn map(&self) -> PartitionMap {
        self.map
    }

    /// The layout of the store.
    pub(crate) fn layout(&self) -> Layout {
        let access = match (T::Access::SHARED_READS, T::Access::SHARED_WRITES) {
            (_, true) => AccessMode::Crcw,
            (true, false) => AccessMode::Crew,
            (false, false) => AccessMode::Erew,
        };
        Layout {
            map: self.map,
            access,
        }
    }

    /// The number of partitions.
    pub(crate) fn count(&self) -> usize {
        self.handles.len()
    }

    /// Whether this worker owns a partition. Of several workers that may write, the owner is the
    /// one for which it was created.
    pub(crate) fn is_owned(&self, partition: usize) -> bool {
        self.map.owner_of(partition) == self.worker
    }

    /// The writer of a partition by index, if this worker has it.
    pub(crate) fn writable(&mut self, partition: usize) -> Option<&mut T> {
        self.handles[partition].owner.as_mut()
    }

    /// The statistics of the partitions that this worker owns.
    pub(crate) fn figures(&self) -> Vec<Box<dyn TableFigures>> {
        (self.map.owned_by(self.worker))
            .filter_map(|partition| self.handles[partition].owner.as_ref().map(Table::figures))
            .collect()
    }

    /// The first stage of the pipeline: where the key belongs. Fetches the bucket if `fetch` is set
    /// and this worker may read it.
    #[inline(always)]
    pub fn prefetch_bucket(&self, keyhash: Keyhash, fetch: bool) -> Place<T::HomeBucket> {
        let partition = keyhash.partition(self.prefetchers.len());
        let home = match &self.prefetchers[partition] {
            Some(prefetcher) => {
                let home = prefetcher.home(keyhash);
                if fetch {
                    prefetcher.prefetch_bucket(home);
                }
                home
            }
            None => T::HomeBucket::default(),
        };
        Place { partition, home }
    }

    /// The second stage of the pipeline: fetches the item. The home then carries the slot in which
    /// the key's tag was met. Says whether the third stage has something to do.
    #[inline(always)]
    pub fn prefetch_item(&self, place: &mut Place<T::HomeBucket>) -> bool {
        match &self.prefetchers[place.partition] {
            Some(prefetcher) => prefetcher.prefetch_item(&mut place.home),
            None => false,
        }
    }

    /// The third stage of the pipeline: fetches the item if its entry is not where the second has
    /// looked.
    #[inline(always)]
    pub fn prefetch_item_behind(&self, place: &mut Place<T::HomeBucket>) {
        if let Some(prefetcher) = &self.prefetchers[place.partition] {
            prefetcher.prefetch_item_behind(&mut place.home);
        }
    }
}
