//! The configuration that the workers of a node share for serving native clients.

use glimmer_base::{KeyHasher, Moment, Seed};
use glimmer_dispatch::{AccessMode, Layout, Plan};
use glimmer_proto::native::directory::{Access, BEGUN_S_MAX, Direction, Mode};
use std::net::SocketAddr;

use super::token::TokenKey;

/// The configuration of the native protocol.
#[derive(Clone, Debug)]
pub struct NativeConfig {
    /// The first worker's addresses. The ports of the other workers follow, one each, or are free
    /// ports if this port is 0.
    pub listen: Vec<SocketAddr>,
    /// Whether all workers share one port at each address. Requests reach the owner of their first
    /// key; fragments do not, so the access mode has to be CRCW if there are several workers.
    pub single_port: bool,
    /// The rules that all workers share.
    pub rules: Rules,
}

/// The rules that all workers share.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The seed of the keyhash that clients compute.
    pub seed: Seed,
    /// What makes the server's own keyhashes, from the same seed.
    pub hasher: KeyHasher,
    /// Whether the keyhash that a client sends with a read is computed again as well. That of
    /// mutations always is: when the store moves an item, it finds the item's entry by its key, and
    /// would not find one in another partition.
    pub checks_reads: bool,
    /// The key for tokens, the same for all workers.
    pub token_key: TokenKey,
    /// The version that clients compare with theirs; not zero, and different after every start.
    pub directory_version: u32,
    /// The partitions, their owners, and the access mode by which the dispatch policy routes.
    pub layout: Layout,
    /// Largest item in bytes.
    pub item_bytes_max: usize,
    /// What happens when memory is full.
    pub mode: Mode,
    /// Who directs requests to the workers that own their keys.
    pub direction: Direction,
    /// When the server began, in milliseconds of its clock, if the store may have had items then.
    /// Whoever had them before had ended.
    pub begun_ms: Option<u64>,
}

impl Rules {
    /// What clients are told of when the server began: whole seconds that have surely passed.
    pub fn begun_s(&self, now: Moment) -> Option<u8> {
        // Either time may be a millisecond past the one that the clock shows.
        let passed_ms = |begun_ms: u64| now.ms.saturating_sub(begun_ms + 1);
        let seconds = self.begun_ms.map(|begun_ms| passed_ms(begun_ms) / 1000);
        seconds.map(|seconds| seconds.min(BEGUN_S_MAX.into()) as u8)
    }

    /// The rules under a plan. The version of the directory stays: to clients, another one means
    /// that the server was started again and knows none of their mutations. A client that is told
    /// that it has directed a request wrongly asks for the directory.
    pub fn under(&self, plan: &Plan) -> Rules {
        Rules {
            layout: *plan.layout(),
            ..self.clone()
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.layout.map.cores()
    }

    /// The access mode for the directory.
    pub fn access(&self) -> Access {
        match self.layout.access {
            AccessMode::Erew => Access::Erew,
            AccessMode::Crew => Access::Crew,
            AccessMode::Crcw => Access::Crcw,
        }
    }
}
