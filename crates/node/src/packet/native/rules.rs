//! What the workers of a node go by when they serve native clients.

use glimmer_base::{Keyhash, Seed};
use glimmer_dispatch::PartitionMap;
use glimmer_proto::native::directory::{Access, Direction, Mode};
use std::net::SocketAddr;

use super::token::TokenKey;

/// How the native protocol is served.
#[derive(Clone, Debug)]
pub struct NativeConfig {
    /// The first worker's addresses; the others' ports follow, one each, or are free ones if this
    /// port is 0.
    pub listen: Vec<SocketAddr>,
    /// What the workers have in common.
    pub rules: Rules,
}

/// What all workers go by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The keyhash's seed.
    pub seed: Seed,
    /// Whether the keyhash of a read is computed anew, too. That of a mutation always is: the store
    /// finds an item's entry by its key when the item has to move, and one under a wrong hash would
    /// not be found.
    pub checks_reads: bool,
    /// By which tokens are made; the same for all workers.
    pub token_key: TokenKey,
    /// What clients compare with the version that they know; not zero, and another after every
    /// start.
    pub directory_version: u32,
    /// Number of partitions.
    pub partitions: usize,
    /// Number of workers.
    pub workers: usize,
    /// Largest item in bytes.
    pub item_bytes_max: usize,
    /// What happens when the memory is full.
    pub mode: Mode,
    /// Who may touch a partition.
    pub access: Access,
    /// Who directs requests to the workers that own their keys.
    pub direction: Direction,
}

impl Rules {
    /// Which worker owns each partition.
    #[inline]
    pub fn map(&self) -> PartitionMap {
        PartitionMap::new(self.partitions, self.workers)
    }

    /// The worker that owns a key's partition.
    #[inline]
    pub fn owner(&self, keyhash: Keyhash) -> usize {
        self.map().owner(keyhash)
    }
}
