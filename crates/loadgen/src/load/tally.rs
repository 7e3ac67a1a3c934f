//! What a client counts.

use std::ops::AddAssign;

use serde::Serialize;

use crate::{
    driver::{Meaning, Reply},
    workload::Verb,
};

/// Keys by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Keys read and found, every byte verified.
    pub hits: u64,
    /// Keys read and not found.
    pub misses: u64,
    /// Keys written.
    pub writes: u64,
    /// Keys deleted, or found to be gone already.
    pub deletes: u64,
    /// Writes that the server had no room for.
    pub refused: u64,
    /// Requests whose reply never came, over UDP.
    pub lost: u64,
}

impl Tally {
    /// Keys read, written and deleted.
    pub fn operations(&self) -> u64 {
        self.hits + self.misses + self.writes + self.deletes
    }

    /// Part of the keys read that were found; one if none was read.
    pub fn hit_ratio(&self) -> f64 {
        match self.hits + self.misses {
            0 => 1.0,
            reads => self.hits as f64 / reads as f64,
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
            (_, Meaning::Refused) => self.refused += 1,
            (_, Meaning::Lost) => self.lost += 1,
            _ => {}
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            writes: self.writes - earlier.writes,
            deletes: self.deletes - earlier.deletes,
            refused: self.refused - earlier.refused,
            lost: self.lost - earlier.lost,
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
    }
}
