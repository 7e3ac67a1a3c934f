//! The kinds of tables by others, and how to create one.

use std::sync::Arc;

use anyhow::Result;

use super::{
    Bounded, Dash, Handle, HeldKey, Moka, Ordered, Papaya, Pelikan, Quick, SccCache, SccMap,
    Sharded, Unshared, held::Held, paper, team,
};
use crate::store_alone::{
    heap_pages::HeapPages,
    items::TINY_BYTES,
    rig::{Loss, Rig},
};

/// A public table that is generic over keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Public {
    /// `hashbrown`, one per thread.
    Unshared,
    /// `hashbrown` behind `parking_lot` locks, with many shards.
    Sharded,
    /// `dashmap`.
    Dash,
    /// `papaya`.
    Papaya,
    /// `scc`'s `HashMap`.
    SccMap,
    /// `scc`'s `HashCache`.
    SccCache,
    /// `quick_cache`.
    Quick,
    /// `moka`.
    Moka,
}

impl Public {
    /// All of them.
    pub const ALL: [Public; 8] = [
        Public::Unshared,
        Public::Sharded,
        Public::Dash,
        Public::Papaya,
        Public::SccMap,
        Public::SccCache,
        Public::Quick,
        Public::Moka,
    ];

    /// Its name with keys and values of fixed length, its name with variable length, and a
    /// description.
    fn texts(self) -> [&'static str; 3] {
        match self {
            Public::Unshared => [
                "hashbrown-unshared",
                "hashbrown-unshared-bytes",
                "The crate, one table per thread, without locks",
            ],
            Public::Sharded => [
                "hashbrown",
                "hashbrown-bytes",
                "The crate, with a parking_lot lock for each of 64 shards",
            ],
            Public::Dash => ["dashmap", "dashmap-bytes", "The crate, 64 shards"],
            Public::Papaya => ["papaya", "papaya-bytes", "The crate: reads take no lock"],
            Public::SccMap => [
                "scc",
                "scc-bytes",
                "The crate's HashMap, a lock for each bucket of 32 items",
            ],
            Public::SccCache => [
                "scc-cache",
                "scc-cache-bytes",
                "The crate's HashCache: the same buckets, bounded",
            ],
            Public::Quick => [
                "quick_cache",
                "quick_cache-bytes",
                "The crate: a cache, a lock for each of 64 shards",
            ],
            Public::Moka => ["moka", "moka-bytes", "The crate's sync::Cache"],
        }
    }
}

/// The lengths of keys and values that a table supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// A length known at compile time: arrays inside the table.
    Fixed,
    /// Any length, as in our tables: keys and values are allocated.
    Any,
}

/// A table by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A public table with keys and values of these lengths.
    Public(Public, Lengths),
    /// Pelikan's `segcache`, one per thread.
    Pelikan,
    /// The standard library's `BTreeMap`, one per thread.
    Ordered,
    /// A chained table with bounded chains, one per thread (Formica's `ChainedLossyHashStore`).
    Bounded,
    /// MICA's table as its paper describes it, one per thread ([`paper`]).
    Paper,
}

impl Peer {
    /// Those that are no public table.
    pub const OTHERS: [Peer; 3] = [Peer::Ordered, Peer::Bounded, Peer::Paper];

    /// The public tables with keys and values of fixed length.
    pub fn fixed() -> Vec<Peer> {
        let fixed = |table| Peer::Public(table, Lengths::Fixed);
        Public::ALL.map(fixed).into()
    }

    /// The public tables with keys and values of any length.
    pub fn any_length() -> Vec<Peer> {
        let any = |table| Peer::Public(table, Lengths::Any);
        let tables = Public::ALL.map(any).into_iter();
        tables.chain([Peer::Pelikan]).collect()
    }

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Public(table, Lengths::Fixed) => table.texts()[0],
            Peer::Public(table, Lengths::Any) => table.texts()[1],
            Peer::Pelikan => "segcache",
            Peer::Ordered => "btreemap",
            Peer::Bounded => "bounded-chain",
            Peer::Paper => "mica-paper",
        }
    }

    /// A description in one line.
    pub fn about(self) -> &'static str {
        match self {
            Peer::Public(table, Lengths::Fixed) => table.texts()[2],
            Peer::Public(_, Lengths::Any) => {
                "The same with keys and values of any length, each allocated"
            }
            Peer::Pelikan => "Pelikan's cache of items of any length, one for each thread",
            Peer::Ordered => "The standard library's ordered map, one for each thread",
            Peer::Bounded => "A chained table with bounded chains, one for each thread",
            Peer::Paper => "MICA's log and lossy index as in its paper, one for each thread",
        }
    }

    /// Whether every operation takes a lock, including reads.
    pub fn locks(self) -> bool {
        use Public::{Dash, Moka, Papaya, Quick, SccCache, SccMap, Sharded, Unshared};
        match self {
            Peer::Public(Sharded | Dash | SccMap | SccCache | Quick, _) => true,
            Peer::Public(Unshared | Papaya | Moka, _) => false,
            Peer::Pelikan | Peer::Ordered | Peer::Bounded | Peer::Paper => false,
        }
    }

    /// Whether threads share the table; otherwise each thread has its own.
    pub fn is_shared(self) -> bool {
        match self {
            Peer::Public(table, _) => table != Public::Unshared,
            Peer::Pelikan | Peer::Ordered | Peer::Bounded | Peer::Paper => false,
        }
    }

    /// The lengths of keys and values that it supports.
    pub fn lengths(self) -> Lengths {
        match self {
            Peer::Public(_, lengths) => lengths,
            Peer::Pelikan => Lengths::Any,
            Peer::Ordered | Peer::Bounded | Peer::Paper => Lengths::Fixed,
        }
    }

    /// A table for this many threads with `items` tiny items.
    pub fn build(self, items: u32, workers: usize, pages: HeapPages) -> Result<Box<dyn Rig>> {
        const K: usize = TINY_BYTES;
        match self {
            Peer::Public(table, Lengths::Fixed) => {
                public::<[u8; K], [u8; K], [u8; K]>(table, items, workers, pages)
            }
            Peer::Public(table, Lengths::Any) => {
                public::<Box<[u8]>, Box<[u8]>, Arc<[u8]>>(table, items, workers, pages)
            }
            Peer::Pelikan => {
                let part = part_of(items, workers);
                let one = || Pelikan::new(part, K, K);
                let handles = (0..workers).map(|_| one()).collect();
                filled::<_, K, K>(handles, items, Loss::Refilled, pages)
            }
            Peer::Ordered => ordered::<K>(items, workers, pages),
            Peer::Bounded => bounded::<K>(items, workers, pages),
            Peer::Paper => paper::build::<K, K>(items, workers, paper::LOAD_PERCENT),
        }
    }
}

/// A public table that stores keys as `A`, and values as `B`, or as `C` if it returns clones of
/// them.
fn public<A, B, C>(
    table: Public,
    items: u32,
    workers: usize,
    pages: HeapPages,
) -> Result<Box<dyn Rig>>
where
    A: HeldKey<TINY_BYTES>,
    B: Held<TINY_BYTES>,
    C: Held<TINY_BYTES>,
{
    const K: usize = TINY_BYTES;
    let room = items as usize;
    let all = Loss::AtMost(0.0);
    match table {
        Public::Unshared => {
            let part = part_of(items, workers);
            let handles = (0..workers).map(|_| Unshared::<A, B>::new(part));
            filled::<_, K, K>(handles.collect(), items, all, pages)
        }
        Public::Sharded => {
            filled::<_, K, K>(Sharded::<A, B>::handles(room, workers), items, all, pages)
        }
        Public::Dash => filled::<_, K, K>(Dash::<A, B>::handles(room, workers), items, all, pages),
        Public::Papaya => {
            filled::<_, K, K>(Papaya::<A, B>::handles(room, workers), items, all, pages)
        }
        Public::SccMap => {
            filled::<_, K, K>(SccMap::<A, B>::handles(room, workers), items, all, pages)
        }
        Public::SccCache => {
            let most = Loss::AtMost(SccCache::<A, B>::LOSS_MAX);
            filled::<_, K, K>(SccCache::<A, B>::handles(room, workers), items, most, pages)
        }
        Public::Quick => {
            filled::<_, K, K>(Quick::<A, C>::handles(room, workers), items, all, pages)
        }
        Public::Moka => filled::<_, K, K>(Moka::<A, C>::handles(room, workers), items, all, pages),
    }
}

/// The ordered map, one per thread, with `items` items of `K`-byte keys and tiny values.
pub fn ordered<const K: usize>(
    items: u32,
    workers: usize,
    pages: HeapPages,
) -> Result<Box<dyn Rig>> {
    let handles = (0..workers).map(|_| Ordered::<K, TINY_BYTES>::default());
    filled(handles.collect(), items, Loss::AtMost(0.0), pages)
}

/// The bounded chained table, one per thread, with `items` items of `K`-byte keys and tiny values.
pub fn bounded<const K: usize>(
    items: u32,
    workers: usize,
    pages: HeapPages,
) -> Result<Box<dyn Rig>> {
    let part = part_of(items, workers);
    let handles = (0..workers).map(|_| Bounded::<K, TINY_BYTES>::new(part));
    let loss = Loss::AtMost(Bounded::<K, TINY_BYTES>::LOSS_MAX);
    filled(handles.collect(), items, loss, pages)
}

/// Capacity for a thread's share of the items, with a margin because hashing does not divide them
/// evenly.
fn part_of(items: u32, workers: usize) -> usize {
    (items as usize + items as usize / 20) / workers + 64
}

fn filled<H: Handle<K, V> + 'static, const K: usize, const V: usize>(
    handles: Vec<H>,
    items: u32,
    loss: Loss,
    pages: HeapPages,
) -> Result<Box<dyn Rig>> {
    let team = team(handles, loss).fill(items)?;
    pages.provide()?;
    Ok(Box::new(team))
}
