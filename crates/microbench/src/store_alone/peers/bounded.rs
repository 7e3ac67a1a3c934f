//! A chained table with bounded chains for one thread: Formica's `ChainedLossyHashStore`. Items lie
//! in the chain's nodes. A new item goes to the front; if the chain has its maximum length, it
//! replaces the last item.

use super::{Direct, Session};
use crate::store_alone::items::SEED;

/// Means no node.
const NONE: u32 = u32::MAX;
/// Average number of items per chain.
const CHAIN_AVERAGE: usize = 2;
/// Maximum length of a chain. With two items per chain on average, one chain in two hundred would
/// be longer.
const CHAIN_MAX: usize = 6;

struct Node<const K: usize, const V: usize> {
    next: u32,
    key: [u8; K],
    value: [u8; V],
}

/// A thread's table.
pub struct Bounded<const K: usize, const V: usize> {
    heads: Box<[u32]>,
    nodes: Vec<Node<K, V>>,
    free: Vec<u32>,
}

impl<const K: usize, const V: usize> Bounded<K, V> {
    /// The share of items that the table may lose to full chains. The review sized its tables for 0
    /// to 5%.
    pub const LOSS_MAX: f64 = 0.05;

    /// A table for this many items.
    pub fn new(capacity: usize) -> Self {
        Bounded {
            heads: vec![NONE; (capacity / CHAIN_AVERAGE).max(1)].into(),
            nodes: Vec::with_capacity(capacity),
            free: Vec::new(),
        }
    }

    #[inline(always)]
    fn chain(&self, key: &[u8; K]) -> usize {
        SEED.keyhash(key).bucket(self.heads.len())
    }

    /// Changes the link to a node, which is the chain's head or the link in another node.
    #[inline(always)]
    fn set_link(&mut self, chain: usize, previous: u32, to: u32) {
        match previous {
            NONE => self.heads[chain] = to,
            node => self.nodes[node as usize].next = to,
        }
    }

    #[inline(always)]
    fn find(&self, key: &[u8; K]) -> Option<u32> {
        let mut at = self.heads[self.chain(key)];
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key == *key {
                return Some(at);
            }
            at = node.next;
        }
        None
    }
}

impl<const K: usize, const V: usize> Session<K, V> for Bounded<K, V> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        Some(self.nodes[self.find(key)? as usize].value)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        let chain = self.chain(&key);
        let (mut at, mut previous, mut before, mut length) = (self.heads[chain], NONE, NONE, 0);
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            if node.key == key {
                node.value = value;
                return;
            }
            (before, previous, at) = (previous, at, node.next);
            length += 1;
        }
        let next = self.heads[chain];
        let node = Node { next, key, value };
        let place = if length == CHAIN_MAX {
            // The chain has at least two items, so its last is not its first.
            self.set_link(chain, before, NONE);
            previous
        } else if let Some(place) = self.free.pop() {
            place
        } else {
            self.nodes.push(node);
            self.heads[chain] = self.nodes.len() as u32 - 1;
            return;
        };
        self.nodes[place as usize] = node;
        self.heads[chain] = place;
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        let chain = self.chain(key);
        let (mut at, mut previous) = (self.heads[chain], NONE);
        while at != NONE {
            let node = &self.nodes[at as usize];
            let next = node.next;
            if node.key == *key {
                self.set_link(chain, previous, next);
                self.free.push(at);
                return true;
            }
            (previous, at) = (at, next);
        }
        false
    }
}

impl<const K: usize, const V: usize> Direct<K, V> for Bounded<K, V> {
    const SHARED: bool = false;

    fn items(&self) -> Option<u64> {
        Some((self.nodes.len() - self.free.len()) as u64)
    }
}
