//! The values of `--peers` in `glimmer bench store`.

use std::sync::LazyLock;

use clap::{ValueEnum, builder::PossibleValue};
use glimmer_microbench::store_alone::{Candidate, peers::Peer};

/// One or several tables by others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PeerName {
    /// A single table.
    One(Peer),
    /// The mirror of memcached's table with one lock.
    ChainedLru,
    /// The same with a lock per bucket.
    ChainedLruStriped,
    /// The public tables with keys and values of fixed length.
    Public,
    /// The public tables with keys and values of any length.
    PublicBytes,
    /// Every table.
    All,
}

/// Every table with a name of its own, except the mirrors.
fn every_peer() -> Vec<Peer> {
    let others = Peer::OTHERS.to_vec();
    [Peer::fixed(), Peer::any_length(), others].concat()
}

impl PeerName {
    /// The tables.
    pub fn candidates(self) -> Vec<Candidate> {
        let [global, striped] = Candidate::MEMCACHED;
        let peers = |peers: Vec<Peer>| peers.into_iter().map(Candidate::Peer).collect();
        match self {
            PeerName::One(peer) => vec![Candidate::Peer(peer)],
            PeerName::ChainedLru => vec![global],
            PeerName::ChainedLruStriped => vec![striped],
            PeerName::Public => peers(Peer::fixed()),
            PeerName::PublicBytes => peers(Peer::any_length()),
            PeerName::All => [peers(every_peer()), vec![global, striped]].concat(),
        }
    }
}

impl ValueEnum for PeerName {
    fn value_variants<'a>() -> &'a [PeerName] {
        static VARIANTS: LazyLock<Vec<PeerName>> = LazyLock::new(|| {
            let others = [
                PeerName::ChainedLru,
                PeerName::ChainedLruStriped,
                PeerName::Public,
                PeerName::PublicBytes,
                PeerName::All,
            ];
            let each = every_peer().into_iter().map(PeerName::One);
            each.chain(others).collect()
        });
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, about) = match *self {
            PeerName::One(peer) => (peer.name(), peer.about()),
            PeerName::ChainedLru => (
                "chained-lru",
                "memcached's table as MemC3 found it: chaining, strict LRU, one lock",
            ),
            PeerName::ChainedLruStriped => (
                "chained-lru-striped",
                "The same with a lock for each bucket, and one for the list",
            ),
            PeerName::Public => (
                "public",
                "The public crates with keys and values of a fixed length",
            ),
            PeerName::PublicBytes => (
                "public-bytes",
                "The public crates with keys and values of any length",
            ),
            PeerName::All => ("all", "Everything"),
        };
        Some(PossibleValue::new(name).help(about))
    }
}
