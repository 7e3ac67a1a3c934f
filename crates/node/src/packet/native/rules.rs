//! What the workers of a node go by when they serve native clients.

use glimmer_base::{Keyhash, Seed};
use glimmer_dispatch::{AccessMode, Layout};
use glimmer_proto::native::directory::{Access, Direction, Mode};
use std::net::SocketAddr;

use super::token::TokenKey;

/// Share of what a worker may keep for native clients that the batches for other workers have,
/// where the server directs requests.
const HANDOVER_SHARE: usize = 4;

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
    /// How the store is spread over the workers, and who may touch a partition.
    pub layout: Layout,
    /// Largest item in bytes.
    pub item_bytes_max: usize,
    /// What happens when the memory is full.
    pub mode: Mode,
    /// Who directs requests to the workers that own their keys.
    pub direction: Direction,
}

impl Rules {
    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.layout.map.cores()
    }

    /// Who may touch a partition, as the directory says it.
    pub fn access(&self) -> Access {
        match self.layout.access {
            AccessMode::Erew => Access::Erew,
            AccessMode::Crew => Access::Crew,
            AccessMode::Crcw => Access::Crcw,
        }
    }

    /// Bytes that batches for other workers may take of what a worker may keep for native clients,
    /// where the server directs requests and there is another worker to direct them to.
    pub(crate) fn handover_bytes_max(&self, bytes_max: usize) -> usize {
        match self.direction == Direction::Server && self.workers() > 1 {
            true => bytes_max / HANDOVER_SHARE,
            false => 0,
        }
    }

    /// The worker that owns a key's partition.
    #[inline]
    pub fn owner(&self, keyhash: Keyhash) -> usize {
        self.layout.map.owner(keyhash)
    }
}
