//! Any key (`RANDOMKEY`): one of the first chain with items from a random place of the index on.
//! Keys after a gap are shown more often than others.

use glimmer_dispatch::Layout;
use glimmer_engine::{ListCursor, ListScope, Listed};
use glimmer_proto::Words;
use glimmer_proto::control::{Answer, Control};

/// A key that is being searched for.
pub(crate) struct RandomKey {
    words: Words,
    random: u64,
    /// Numbers of chains that are tried have this many bits. How many chains a partition has is not
    /// known, so there are fewer until there is such a chain.
    chain_bits: u32,
    /// There was one.
    has_place: bool,
    /// The search has gone on with the first partition after the last.
    has_turned: bool,
    /// Items of the chain so far.
    items: u64,
    found: Option<Box<[u8]>>,
}

/// Bits of the number of a chain.
const CHAIN_BITS_MAX: u32 = 48;

impl RandomKey {
    /// Also returns where the search begins.
    pub fn new(words: Words, random: u64, layout: Layout) -> (RandomKey, ListCursor) {
        let search = RandomKey {
            words,
            random,
            chain_bits: CHAIN_BITS_MAX,
            has_place: false,
            has_turned: false,
            items: 0,
            found: None,
        };
        let partition = (random >> u16::BITS) as usize % layout.map.partitions();
        let cursor = search.place_in(partition);
        (search, cursor)
    }

    fn place_in(&self, partition: usize) -> ListCursor {
        let chain = self.random & ((1 << self.chain_bits) - 1);
        ListCursor::at_place(ListScope::Owned, (partition, chain as usize))
    }

    /// Looks at an item: each of a chain's is as likely to be shown.
    pub fn visit(&mut self, item: &Listed<'_>) {
        self.items += 1;
        // The constants are Knuth's, for numbers of 64 bits. Its upper bits are random.
        let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = next.wrapping_add(1_442_695_040_888_963_407);
        if (self.random >> 32).is_multiple_of(self.items) {
            self.found = Some(item.key.into());
        }
    }

    /// A chain of this partition has been looked at, if there was one, and the search is to go on
    /// at `cursor`: may say otherwise.
    pub fn end_chain(&mut self, partition: usize, partitions: usize, cursor: &mut ListCursor) {
        let (next, _) = cursor.place();
        if self.found.is_some() {
            return;
        }
        if next == partition {
            self.has_place = true;
        } else if !self.has_place && self.chain_bits > 0 {
            self.chain_bits -= 1;
            *cursor = self.place_in(partition);
        } else {
            self.has_place = true;
            if next >= partitions && !self.has_turned {
                self.has_turned = true;
                *cursor = ListCursor::new(ListScope::Owned);
            }
        }
    }

    /// Whether a key has been found.
    pub fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Appends the answer.
    pub fn answer(&self, out: &mut Vec<u8>) {
        let answer = Answer::Key(self.found.as_deref());
        self.words.emit(&Control::RandomKey, answer, out);
    }
}
