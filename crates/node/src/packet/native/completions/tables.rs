//! The completion tables of all workers, and which of them a batch holds.
//!
//! The records of a mutation belong to its partition, not to the worker that executes it: the
//! partitions of one owner have one table, and whichever worker executes a mutation finds its
//! record there. (One table for each owner, because a client numbers its mutations for each owner.)
//!
//! **Exactly once.** A batch holds a table from before it looks the first mutation up until it has
//! recorded the last answer, and the engine executes the mutations in between. So lookup, mutation
//! and record are one step to all other workers: a retransmission that arrives at another worker
//! finds either no record, and then nothing has been executed, or the answer. The release of the
//! lock and its next acquisition order the mutation before whatever a worker does that has seen the
//! record.
//!
//! **No deadlock.** A batch waits for a table only while it holds none. It takes further tables if
//! they are free, up to [`HELD_MAX`]; otherwise it is executed with what it has, and gives all
//! back. Workers that execute only mutations of their own partitions never meet: their tables cost
//! them one uncontended lock for each batch that has a mutation.

use super::{CompletionSlot, CompletionTable};
use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;
use glimmer_base::Keyhash;
use glimmer_base::sync::{Mutex, MutexGuard, lock};
use glimmer_dispatch::PartitionMap;

/// Tables that a batch holds at most.
const HELD_MAX: usize = 4;

/// The completion tables of all workers.
pub struct CompletionTables {
    map: PartitionMap,
    /// By the worker that owns the partitions.
    of_owners: Box<[CachePadded<Mutex<CompletionTable>>]>,
}

impl CompletionTables {
    /// Tables of at most `bytes_max` bytes each. Without `hash_key`, no client can choose
    /// clients that collide.
    pub fn new(map: PartitionMap, bytes_max: usize, hash_key: [u64; 2]) -> CompletionTables {
        let table = |_| Mutex::new(CompletionTable::new(bytes_max, hash_key));
        CompletionTables {
            map,
            of_owners: (0..map.cores()).map(table).map(CachePadded::new).collect(),
        }
    }

    /// Bytes that the table of an owner's partitions holds.
    pub fn bytes(&self, owner: usize) -> usize {
        lock(&self.of_owners[owner]).bytes()
    }

    /// Drops notes of an owner's partitions that are no longer needed.
    pub fn expire(&self, owner: usize, now_ms: u64) {
        lock(&self.of_owners[owner]).expire(now_ms);
    }

    /// The tables that a batch holds: none yet.
    pub fn hold(&self) -> HeldTables<'_> {
        HeldTables {
            tables: self,
            held: ArrayVec::new(),
        }
    }
}

/// The tables that a batch holds.
pub struct HeldTables<'c> {
    tables: &'c CompletionTables,
    /// Each with the worker that owns its partitions.
    held: ArrayVec<(usize, MutexGuard<'c, CompletionTable>), HELD_MAX>,
}

impl HeldTables<'_> {
    /// The table of a key's partition, and the partition's owner. None: another worker has it, and
    /// this batch must not wait, because it holds another table.
    #[inline]
    pub fn table(&mut self, keyhash: Keyhash) -> Option<(usize, &mut CompletionTable)> {
        let owner = self.tables.map.owner(keyhash);
        let at = match self.held.iter().position(|&(held, _)| held == owner) {
            Some(at) => at,
            None => self.take(owner)?,
        };
        let (owner, table) = &mut self.held[at];
        Some((*owner, table))
    }

    fn take(&mut self, owner: usize) -> Option<usize> {
        let mutex = &self.tables.of_owners[owner];
        let mut table = match self.held.len() {
            0 => lock(mutex),
            1..HELD_MAX => mutex.try_lock()?,
            _ => return None,
        };
        table.begin_batch();
        self.held.push((owner, table));
        Some(self.held.len() - 1)
    }

    /// A mutation has been executed, and this is its answer; none: it was not executed after all.
    #[inline]
    pub fn settle(&mut self, slot: CompletionSlot, answer: Option<&[u8]>) {
        let of_slot = |held: &&mut (usize, MutexGuard<'_, CompletionTable>)| held.0 == slot.owner();
        if let Some((_, table)) = self.held.iter_mut().find(of_slot) {
            table.settle(slot, answer);
        }
    }

    /// The answers of the batch have been recorded: gives the tables back.
    #[inline]
    pub fn release(&mut self) {
        self.held.clear();
    }
}
