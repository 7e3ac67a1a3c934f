//! The handles through which one worker accesses the partitions.

use glimmer_base::Keyhash;
use glimmer_dispatch::{AccessMode, Layout, PartitionMap};
use glimmer_store::access::Access;
use glimmer_store::table::{Table, TableFigures, TableReader};

/// The handles of one worker: a writer where it may write, a reader where it may read concurrently
/// with the writer.
pub struct Partitions<T: Table> {
    handles: Vec<Handle<T>>,
    map: PartitionMap,
    worker: usize,
}

pub(crate) struct Handle<T: Table> {
    pub owner: Option<T>,
    pub reader: Option<T::Reader>,
}

impl<T: Table> Partitions<T> {
    pub(crate) fn new(handles: Vec<Handle<T>>, map: PartitionMap, worker: usize) -> Self {
        Partitions {
            handles,
            map,
            worker,
        }
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, keyhash: Keyhash) -> &mut Handle<T> {
        let partition = keyhash.partition(self.handles.len());
        &mut self.handles[partition]
    }

    #[inline(always)]
    fn handle_ref(&self, keyhash: Keyhash) -> &Handle<T> {
        &self.handles[keyhash.partition(self.handles.len())]
    }

    /// The writer of the key's partition, if this worker has it.
    #[inline(always)]
    pub fn owner(&mut self, keyhash: Keyhash) -> Option<&mut T> {
        self.handle(keyhash).owner.as_mut()
    }

    /// The reader of the key's partition, if the access mode has readers.
    #[inline(always)]
    pub fn reader(&self, keyhash: Keyhash) -> Option<&T::Reader> {
        self.handle_ref(keyhash).reader.as_ref()
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

    /// The first stage of the pipeline. Returns the position of the bucket, if this worker may read
    /// it.
    #[inline(always)]
    pub fn prefetch_bucket(&self, keyhash: Keyhash, fetch: bool) -> T::Home {
        match self.handle_ref(keyhash) {
            Handle {
                owner: Some(owner), ..
            } => {
                let place = owner.home(keyhash);
                if fetch {
                    owner.prefetch_bucket(place);
                }
                place
            }
            Handle {
                reader: Some(reader),
                ..
            } => {
                let place = reader.home(keyhash);
                if fetch {
                    reader.prefetch_bucket(place);
                }
                place
            }
            _ => T::Home::default(),
        }
    }

    /// The second stage of the pipeline.
    #[inline(always)]
    pub fn prefetch_item(&self, keyhash: Keyhash, place: T::Home) {
        match self.handle_ref(keyhash) {
            Handle {
                owner: Some(owner), ..
            } => owner.prefetch_item(keyhash, place),
            Handle {
                reader: Some(reader),
                ..
            } => reader.prefetch_item(keyhash, place),
            _ => {}
        }
    }
}
