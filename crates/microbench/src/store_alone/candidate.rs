//! Every table that can be compared, by name.

use anyhow::Result;

use super::{
    Mode,
    heap_pages::HeapPages,
    mirror,
    peers::{Lengths, Peer},
    rig::Rig,
    tables::Ours,
};

/// A table to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// One of our tables, in an access mode.
    Ours(Ours, Mode),
    /// A table by others.
    Peer(Peer),
    /// A table that MemC3 compares itself with.
    Mirror(mirror::Kind),
}

impl Candidate {
    /// The two mirrors that represent memcached.
    pub const MEMCACHED: [Candidate; 2] = [
        Candidate::Mirror(mirror::Kind::MEMCACHED),
        Candidate::Mirror(mirror::Kind::MEMCACHED_STRIPED),
    ];

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Candidate::Ours(table, mode) => format!("{} {}", mode.name(), table.name()),
            Candidate::Peer(peer) => peer.name().to_owned(),
            Candidate::Mirror(mirror::Kind::MEMCACHED) => "chained-lru".to_owned(),
            Candidate::Mirror(mirror::Kind::MEMCACHED_STRIPED) => "chained-lru-striped".to_owned(),
            Candidate::Mirror(kind) => kind.to_string(),
        }
    }

    /// Whether it is one of our tables.
    pub fn is_ours(self) -> bool {
        matches!(self, Candidate::Ours(..))
    }

    /// Whether keys and values may have any length.
    pub fn holds_any_length(self) -> bool {
        match self {
            Candidate::Ours(..) => true,
            Candidate::Peer(peer) => peer.lengths() == Lengths::Any,
            Candidate::Mirror(_) => false,
        }
    }

    /// A table for this many workers with `items` tiny items, on huge pages by default.
    pub fn build(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        self.build_on(HeapPages::Huge, items, workers)
    }

    /// The same, with the memory that public tables get from `malloc` on these pages.
    pub fn build_on(self, pages: HeapPages, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        match self {
            Candidate::Ours(table, mode) => table.build(items, mode, workers),
            Candidate::Peer(peer) => peer.build(items, workers, pages),
            Candidate::Mirror(kind) => kind.build_tiny(items, workers),
        }
    }
}
