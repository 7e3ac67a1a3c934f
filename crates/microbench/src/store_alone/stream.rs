//! Operations drawn in advance, so that the measured loop only reads a list in order.

use glimmer_base::Keyhash;
use glimmer_dispatch::PartitionMap;

/// The bit of an operation that marks a write; the other bits are the key's number.
const WRITE: u32 = 1 << 31;

/// Maximum number of keys: their numbers leave a bit for the verb.
pub const KEYS_MAX: u32 = WRITE;

/// A read or a write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(u32);

impl Operation {
    /// An operation on the key with this number.
    pub fn new(number: u32, writes: bool) -> Operation {
        debug_assert!(number < KEYS_MAX);
        Operation(number | if writes { WRITE } else { 0 })
    }

    /// The key's number.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0 & !WRITE
    }

    /// Whether it is a write.
    #[inline(always)]
    pub fn writes(self) -> bool {
        self.0 & WRITE != 0
    }
}

/// The keys that a worker may access.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The owner of each partition.
    pub map: PartitionMap,
    /// The worker.
    pub worker: usize,
    /// Whether it may read keys of other workers.
    pub reads_all: bool,
    /// Whether it may write keys of other workers.
    pub writes_all: bool,
    /// The keyhash of a number's key.
    pub keyhash: fn(u32) -> Keyhash,
}

impl Share {
    /// Whether the worker may read, or write, the key.
    pub fn includes(&self, number: u32, writes: bool) -> bool {
        let all = if writes {
            self.writes_all
        } else {
            self.reads_all
        };
        all || self.map.cores() == 1 || self.map.owner((self.keyhash)(number)) == self.worker
    }
}
