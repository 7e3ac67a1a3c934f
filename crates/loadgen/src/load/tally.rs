//! The counters of a client.

use std::ops::AddAssign;

use serde::Serialize;

use crate::{
    driver::{Meaning, Reply},
    workload::Verb,
};

/// Keys by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Keys that were read and found, with every byte verified.
    pub hits: u64,
    /// Keys that were read and not found.
    pub misses: u64,
    /// Keys written.
    pub writes: u64,
    /// Keys that were deleted, or already gone.
    pub deletes: u64,
    /// Writes for which the server had no room, and those of a trace that were too large for it.
    pub refused: u64,
    /// Keys of requests whose reply never arrived, over UDP.
    pub lost: u64,
    /// Bytes of the values that reads of one key found.
    pub hit_bytes: u64,
    /// Bytes that reads of one key expected and did not find.
    pub miss_bytes: u64,
}

impl Tally {
    /// Keys read, written and deleted.
    pub fn operations(&self) -> u64 {
        self.hits + self.misses + self.writes + self.deletes
    }

    /// The share of read keys that were found; one if no key was read.
    pub fn hit_ratio(&self) -> f64 {
        match self.hits + self.misses {
            0 => 1.0,
            reads => self.hits as f64 / reads as f64,
        }
    }

    /// The share of the bytes that reads of one key found; one if none was expected.
    pub fn byte_hit_ratio(&self) -> f64 {
        match self.hit_bytes + self.miss_bytes {
            0 => 1.0,
            bytes => self.hit_bytes as f64 / bytes as f64,
        }
    }

    /// Counts a step of a reply.
    #[inline]
    pub fn count(&mut self, reply: &Reply) {
        match (reply.verb, reply.meaning) {
            (Verb::Get, Meaning::Hit) => self.hits += 1,
            (Verb::Get, Meaning::Miss) => self.misses += 1,
            (Verb::Set, Meaning::Done) => self.writes += 1,
            (Verb::Delete, Meaning::Hit | Meaning::Miss) => self.deletes += 1,
            (_, Meaning::Refused | Meaning::TooLarge | Meaning::Unsent) => self.refused += 1,
            (_, Meaning::Lost) => self.lost += 1,
            _ => {}
        }
        // In a read of several keys, the length is that of all values together.
        if reply.last && reply.verb == Verb::Get {
            match reply.meaning {
                Meaning::Hit => self.hit_bytes += u64::from(reply.value_bytes),
                Meaning::Miss => self.miss_bytes += u64::from(reply.value_bytes),
                _ => {}
            }
        }
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            writes: self.writes - earlier.writes,
            deletes: self.deletes - earlier.deletes,
            refused: self.refused - earlier.refused,
            lost: self.lost - earlier.lost,
            hit_bytes: self.hit_bytes - earlier.hit_bytes,
            miss_bytes: self.miss_bytes - earlier.miss_bytes,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.writes += other.writes;
        self.deletes += other.deletes;
        self.refused += other.refused;
        self.lost += other.lost;
        self.hit_bytes += other.hit_bytes;
        self.miss_bytes += other.miss_bytes;
    }
}
