//! The sample: the keys that the simulated caches follow, and in which queue of each cache they
//! are.

use super::COUNT;
use glimmer_base::Expiry;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Most keys that are followed at a time.
pub(super) const KEYS_MAX: usize = 2_048;

/// Where a simulated cache has a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum At {
    Small = 0,
    Main = 1,
    /// It left the small log, and is remembered.
    Ghost = 2,
    /// In no queue.
    #[default]
    Nowhere = QUEUES as isize,
}

/// A cache's queues: one for each place but the last.
pub(super) const QUEUES: usize = 3;

/// What a simulated cache knows of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub at: At,
    pub uses: u8,
    /// Counts how often the key has entered a queue.
    pub turn: u16,
}

/// A key that is followed.
#[derive(Clone)]
pub(super) struct Node {
    pub key: u64,
    /// The size of its item in words.
    pub words: u32,
    /// When its item expires.
    pub expiry: Expiry,
    /// The request of the sample in which it was missed last, if no write followed.
    pub missed_at: Option<u32>,
    /// A miss made the client write it: a client that misses it again will, too.
    pub is_aside: bool,
    /// It was missed not long ago, and stays for that reason.
    pub is_visitor: bool,
    /// Caches that know it.
    pub holders: u8,
    pub places: [Place; COUNT],
}

impl Node {
    fn new(key: u64, places: [Place; COUNT]) -> Node {
        Node {
            key,
            words: 0,
            expiry: Expiry::NEVER,
            missed_at: None,
            is_aside: false,
            is_visitor: false,
            holders: 0,
            places,
        }
    }
}

/// Keys are keyed hashes already, whose lowest bits are the same in all of the sample.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let fold = |key: u64, &byte: &u8| key << 8 | u64::from(byte);
        self.write_u64(bytes.iter().fold(self.0, fold));
    }

    /// The map looks at the uppermost bits and the lowest ones.
    fn write_u64(&mut self, key: u64) {
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed.rotate_left(32);
    }
}

/// The keys that are followed, by number.
#[derive(Default)]
pub(super) struct Sample {
    nodes: Vec<Node>,
    free: Vec<u16>,
    numbers: HashMap<u64, u16, BuildHasherDefault<Spread>>,
}

impl Sample {
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn find(&self, key: u64) -> Option<u16> {
        self.numbers.get(&key).copied()
    }

    /// Adds a key; none if there are too many.
    pub fn add(&mut self, key: u64) -> Option<u16> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.nodes.len() < KEYS_MAX => {
                self.nodes.push(Node::new(key, Default::default()));
                (self.nodes.len() - 1) as u16
            }
            None => return None,
        };
        self.numbers.insert(key, number);
        let node = self.node(number);
        // Turns go on, so that records of the key before are of no use.
        let places = node.places.map(|place| Place {
            turn: place.turn,
            ..Place::default()
        });
        *node = Node::new(key, places);
        Some(number)
    }

    /// Forgets a key that nobody has a use for.
    pub fn forget_unless_used(&mut self, number: u16) {
        let node = &self.nodes[usize::from(number)];
        if node.holders == 0 && !node.is_visitor {
            self.numbers.remove(&node.key);
            self.free.push(number);
        }
    }

    pub fn get(&self, number: u16) -> &Node {
        &self.nodes[usize::from(number)]
    }

    pub fn node(&mut self, number: u16) -> &mut Node {
        &mut self.nodes[usize::from(number)]
    }

    /// Keys with their numbers.
    pub fn numbers(&self) -> Vec<(u64, u16)> {
        self.numbers
            .iter()
            .map(|(&key, &number)| (key, number))
            .collect()
    }
}

const _: () = assert!(KEYS_MAX <= 1 << 16 && COUNT < 1 << 8);
