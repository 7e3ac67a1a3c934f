//! How much of the completion table each network uses, so that none takes the places of others.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::hash::{Keyed, Map};

/// Bytes that a network takes beside its clients.
pub const NETWORK_BYTES: usize = 112;

/// The clients of one network form a ring, in the order in which they came.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    next: u32,
    previous: u32,
}

/// What one network uses.
struct Holding {
    bytes: usize,
    /// When a client of it last came or left, by the count of such changes.
    changed: u64,
    /// The place of the client that is looked at first.
    first: u32,
}

/// What all networks use.
pub struct Holdings {
    of: Map<u64, Holding>,
    /// Bytes, change and network. The heaviest network comes last, and of several that are equally
    /// heavy the one that has been left alone longest.
    order: BTreeSet<(usize, Reverse<u64>, u64)>,
    changes: u64,
    /// By client's place.
    links: Vec<Links>,
}

impl Holdings {
    /// No client holds anything yet.
    pub fn new(keyed: Keyed) -> Holdings {
        Holdings {
            of: Map::with_hasher(keyed),
            order: BTreeSet::new(),
            changes: 0,
            links: Vec::new(),
        }
    }

    /// Bytes that a network has.
    pub fn bytes_of(&self, network: u64) -> usize {
        self.of.get(&network).map_or(0, |holding| holding.bytes)
    }

    /// Bytes that a client's network takes if the client comes: none if others of it are here.
    pub fn bytes_to_join(&self, network: u64) -> usize {
        match self.of.contains_key(&network) {
            true => 0,
            false => NETWORK_BYTES,
        }
    }

    /// The network that comes after `rank` others from the heaviest on, and its bytes.
    pub fn heaviest(&self, rank: usize) -> Option<(u64, usize)> {
        let &(bytes, _, network) = self.order.iter().nth_back(rank)?;
        Some((network, bytes))
    }

    /// The client of a network that is looked at first.
    pub fn first(&self, network: u64) -> Option<u32> {
        self.of.get(&network).map(|holding| holding.first)
    }

    /// Has another client of a network be looked at first.
    pub fn set_first(&mut self, network: u64, place: u32) {
        if let Some(holding) = self.of.get_mut(&network) {
            holding.first = place;
        }
    }

    /// The place of the client that comes after another of its network.
    pub fn next(&self, place: u32) -> u32 {
        self.links[place as usize].next
    }

    /// A client has come, and is the last of its network to be looked at.
    pub fn join(&mut self, network: u64, place: u32, bytes: usize) {
        if self.links.len() <= place as usize {
            self.links.resize_with(place as usize + 1, Links::default);
        }
        let next = self.first(network).unwrap_or(place);
        let previous = match next == place {
            true => place,
            false => self.links[next as usize].previous,
        };
        self.links[place as usize] = Links { next, previous };
        self.links[previous as usize].next = place;
        self.links[next as usize].previous = place;
        let bytes = bytes + self.bytes_to_join(network);
        self.change(network, next, |holds| holds + bytes);
    }

    /// A client has got more.
    pub fn grow(&mut self, network: u64, bytes: usize) {
        if let Some(first) = self.first(network) {
            self.change(network, first, |holds| holds + bytes);
        }
    }

    /// A client has left.
    pub fn leave(&mut self, network: u64, place: u32, bytes: usize) {
        let Some(first) = self.first(network) else {
            return;
        };
        let Links { next, previous } = self.links[place as usize];
        if next == place {
            if let Some(Holding { bytes, changed, .. }) = self.of.remove(&network) {
                self.order.remove(&(bytes, Reverse(changed), network));
            }
            return;
        }
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        let first = if first == place { next } else { first };
        self.change(network, first, |holds| holds - bytes);
    }

    fn change(&mut self, network: u64, first: u32, bytes: impl FnOnce(usize) -> usize) {
        self.changes += 1;
        let holding = self.of.entry(network).or_insert(Holding {
            bytes: 0,
            changed: 0,
            first,
        });
        let Holding {
            bytes: had,
            changed,
            ..
        } = *holding;
        *holding = Holding {
            bytes: bytes(had),
            changed: self.changes,
            first,
        };
        self.order.remove(&(had, Reverse(changed), network));
        let key = (holding.bytes, Reverse(holding.changed), network);
        self.order.insert(key);
    }
}
