//! The handles by which one worker reaches the partitions.

use glimmer_base::Keyhash;
use glimmer_store::access::Access;
use glimmer_store::table::{Table, TableFigures, TableReader};

/// One worker's handles: a writing side where it may write, a reading side where it may read beside
/// the writer.
pub struct Partitions<T: Table> {
    handles: Vec<Handle<T>>,
    workers: usize,
    worker: usize,
}

pub(crate) struct Handle<T: Table> {
    pub owner: Option<T>,
    pub reader: Option<T::Reader>,
}

impl<T: Table> Partitions<T> {
    pub(crate) fn new(handles: Vec<Handle<T>>, workers: usize, worker: usize) -> Self {
        Partitions {
            handles,
            workers,
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

    /// The writing side of the key's partition, where this worker has it.
    #[inline(always)]
    pub fn owner(&mut self, keyhash: Keyhash) -> Option<&mut T> {
        self.handle(keyhash).owner.as_mut()
    }

    /// The reading side of the key's partition, where the access mode has one.
    #[inline(always)]
    pub fn reader(&self, keyhash: Keyhash) -> Option<&T::Reader> {
        self.handle_ref(keyhash).reader.as_ref()
    }

    /// Whether this worker may execute a request for the key.
    #[inline(always)]
    pub(crate) fn may_run(&self, keyhash: Keyhash, is_read: bool) -> bool {
        let handle = self.handle_ref(keyhash);
        handle.owner.is_some() || is_read && handle.reader.is_some()
    }

    /// The number of partitions.
    pub(crate) fn count(&self) -> usize {
        self.handles.len()
    }

    /// Whether this worker owns a partition: of those who may write it, the one that it was made for.
    pub(crate) fn is_owned(&self, partition: usize) -> bool {
        partition % self.workers == self.worker
    }

    /// The writing side of a partition by number, where this worker has it.
    pub(crate) fn writable(&mut self, partition: usize) -> Option<&mut T> {
        self.handles[partition].owner.as_mut()
    }

    /// The figures of these partitions, of which this worker has the writing side.
    pub(crate) fn figures(&mut self, owned: Vec<usize>) -> Vec<Box<dyn TableFigures>> {
        owned
            .into_iter()
            .filter_map(|partition| self.handles[partition].owner.as_ref().map(Table::figures))
            .collect()
    }

    /// The worker that owns the key's partition; this one, where all may write.
    #[inline(always)]
    pub(crate) fn owner_worker(&self, keyhash: Keyhash) -> usize {
        if T::Access::SHARED_WRITES {
            self.worker
        } else {
            keyhash.partition(self.handles.len()) % self.workers
        }
    }

    /// First stage of the pipeline. Says where the bucket is, if this worker may look.
    #[inline(always)]
    pub fn prefetch_bucket(&self, keyhash: Keyhash, fetch: bool) -> T::Place {
        match self.handle_ref(keyhash) {
            Handle {
                owner: Some(owner), ..
            } => {
                let place = owner.place(keyhash);
                if fetch {
                    owner.prefetch_bucket(place);
                }
                place
            }
            Handle {
                reader: Some(reader),
                ..
            } => {
                let place = reader.place(keyhash);
                if fetch {
                    reader.prefetch_bucket(place);
                }
                place
            }
            _ => T::Place::default(),
        }
    }

    /// Second stage of the pipeline.
    #[inline(always)]
    pub fn prefetch_item(&self, keyhash: Keyhash, place: T::Place) {
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
