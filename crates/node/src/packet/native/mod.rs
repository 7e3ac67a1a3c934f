//! The native protocol (`docs/native-protocol.md`): datagrams that go straight to the worker that
//! owns their keys.
//!
//! One datagram's way from the socket to the memory and back:
//!
//! 1. `serve.rs`: the worker's native socket is readable. One `recvmmsg` brings up to 32 trains,
//!    each up to 64 datagrams of one peer.
//! 2. [`NativeEndpoint::answer`] (`endpoint.rs`) goes through them; `decode.rs` reads each datagram
//!    where it lies, and finds for each of its requests either a job for the engine or the answer:
//!    misdirected requests, those of an old directory, and mutations that have been executed before
//!    (`completions.rs`).
//! 3. Up to 32 jobs, of however many datagrams, go through [`glimmer_engine::Engine::run`] as one
//!    batch.
//! 4. `outbox.rs` writes each reply over the datagram that asked for it, if it is no longer than
//!    that; a longer one goes beside, with others of about its length, to clients that have shown
//!    that they own their address (`guard.rs`), and in fragments if it is longer than a datagram.
//! 5. One `sendmmsg` sends all of it, every train as one.
//!
//! Of a reply that is longer than a datagram the engine writes one window of fragments, not all of
//! it; its digest is remembered (`digests.rs`). What comes in fragments is put together first
//! (`assemblies.rs`). Nothing of this knows of a socket but `serve.rs`, so that tests drive a
//! native endpoint with faults of their own choosing. Where the server directs requests,
//! `handover.rs` first gives away what other workers own.

mod assemblies;
mod completions;
mod decode;
mod digests;
mod endpoint;
mod handover;
mod outbox;
mod serve;
mod token;

pub use endpoint::{NativeEndpoint, NativeFigures};
pub(crate) use serve::{NativeServer, NativeSource, listen};
pub use token::TokenKey;

use glimmer_base::{Keyhash, Seed};
use glimmer_proto::native::directory::{Access, Direction, Mode};
use std::net::SocketAddr;

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
    /// Number of workers; partition `p` belongs to worker `p % workers`.
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
    /// The worker that owns a key's partition.
    #[inline]
    pub fn owner(&self, keyhash: Keyhash) -> usize {
        keyhash.partition(self.partitions) % self.workers
    }
}
