//! The three heaps of the tables, full of small items, and the memory that an insert accesses.

use std::collections::VecDeque;

use anyhow::{Result, bail};
use glimmer_store::{
    heap::{
        segregated_fits::{SegregatedFits, Space},
        slab::Slabs,
    },
    memory::{PagePolicy, Pool, ZeroedSlice},
};
use rand::{Rng, rngs::SmallRng};

use crate::caches::Core;

/// Words of an item, least and most.
const ITEM_WORDS: [usize; 2] = [3, 20];
/// More classes of slabs than such items have.
const CLASSES_MAX: usize = 64;
/// Words of a page of slabs: 64 KiB.
const PAGE_WORDS: usize = 8192;

/// The place of an item, in words, and its length.
type Place = (usize, usize);

/// A heap with its items.
pub enum Heap {
    /// A circular log.
    Log {
        /// Its words.
        words: usize,
        /// The items, the oldest first.
        items: VecDeque<Place>,
        /// Words that its items have.
        used: usize,
        tail: usize,
        is_full: bool,
    },
    /// Segregated fits in one space.
    Fits {
        space: Space,
        fits: Box<SegregatedFits>,
        items: Vec<Place>,
        is_full: bool,
    },
    /// Slabs.
    Slabs {
        pool: Pool,
        slabs: Slabs,
        /// The items of each class.
        items: Vec<Vec<Place>>,
        is_full: bool,
    },
}

impl Heap {
    /// The names of all heaps.
    pub const NAMES: [&str; 3] = ["circular log", "segregated fits", "slabs"];

    /// An empty heap of this many words.
    pub fn new(name: &str, words: usize) -> Result<Heap> {
        let [_, most] = ITEM_WORDS;
        let [log, fits, slabs] = Heap::NAMES;
        Ok(match name {
            name if name == log => Heap::Log {
                words,
                items: VecDeque::new(),
                used: 0,
                tail: 0,
                is_full: false,
            },
            name if name == fits => {
                let memory = ZeroedSlice::new(words, PagePolicy::Small, None)?;
                let space = Space::new(memory, most);
                Heap::Fits {
                    fits: Box::new(SegregatedFits::new(&space)),
                    space,
                    items: Vec::new(),
                    is_full: false,
                }
            }
            name if name == slabs => {
                let pages = words / PAGE_WORDS;
                let pool = Pool::new(pages, PAGE_WORDS, PagePolicy::Small, None)?;
                Heap::Slabs {
                    slabs: Slabs::new(&pool, pages, most),
                    pool,
                    items: vec![Vec::new(); CLASSES_MAX],
                    is_full: false,
                }
            }
            _ => bail!("there is no heap named {name}"),
        })
    }

    /// Whether an item has left already.
    pub fn is_full(&self) -> bool {
        match self {
            Heap::Log { is_full, .. }
            | Heap::Fits { is_full, .. }
            | Heap::Slabs { is_full, .. } => *is_full,
        }
    }

    /// Stores an item of a random length in place of others, if there is no room. The core accesses
    /// the first line of each that leaves, and all lines of the new one.
    pub fn insert(&mut self, rng: &mut SmallRng, core: &mut Core) {
        let [least, most] = ITEM_WORDS;
        let words = rng.random_range(least..=most);
        let leaves = |core: &mut Core, at: usize| core.access(8 * at as u64);
        let at = match self {
            Heap::Log {
                words: all,
                items,
                used,
                tail,
                is_full,
            } => {
                // An item that would cross the end begins a new lap.
                let rest = *all - *tail;
                if rest < words {
                    items.push_back((*tail, rest));
                    (*used, *tail) = (*used + rest, 0);
                }
                while *used + words > *all {
                    *is_full = true;
                    let Some((at, freed)) = items.pop_front() else {
                        break;
                    };
                    *used -= freed;
                    leaves(core, at);
                }
                let at = *tail;
                items.push_back((at, words));
                (*used, *tail) = (*used + words, (at + words) % *all);
                at
            }
            Heap::Fits {
                space,
                fits,
                items,
                is_full,
            } => loop {
                if let Some(at) = fits.allocate(space, words, space.words()) {
                    // The heap tells an item from a free place by its first word.
                    space.reserve(at, words);
                    items.push((at, words));
                    break at;
                }
                *is_full = true;
                let (at, freed) = items.swap_remove(rng.random_range(0..items.len()));
                fits.free(space, at, freed);
                leaves(core, at);
            },
            Heap::Slabs {
                pool,
                slabs,
                items,
                is_full,
            } => {
                let class = slabs.class_of(words);
                let of_class = &mut items[usize::from(class)];
                loop {
                    if let Some(at) = slabs.take(pool, class) {
                        of_class.push((at, words));
                        break at;
                    }
                    if slabs.add_slab(class) {
                        continue;
                    }
                    *is_full = true;
                    let (at, _) = of_class.swap_remove(rng.random_range(0..of_class.len()));
                    slabs.free(pool, at);
                    leaves(core, at);
                }
            }
        };
        core.access_all(8 * at as u64, 8 * words as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn items_of_a_full_heap_do_not_overlap() {
        const WORDS: usize = 1 << 17;
        for name in Heap::NAMES {
            let (mut core, mut rng) = (Core::default(), SmallRng::seed_from_u64(2));
            let mut heap = Heap::new(name, WORDS).unwrap();
            while !heap.is_full() {
                heap.insert(&mut rng, &mut core);
            }
            for _ in 0..10_000 {
                heap.insert(&mut rng, &mut core);
            }
            let mut items: Vec<Place> = match heap {
                Heap::Log { items, .. } => items.into(),
                Heap::Fits { items, .. } => items,
                Heap::Slabs { items, .. } => items.concat(),
            };
            items.sort_unstable();
            let apart = |pair: &[Place]| pair[0].0 + pair[0].1 <= pair[1].0;
            assert!(items.windows(2).all(apart), "{name}");
            let held: usize = items.iter().map(|(_, words)| words).sum();
            assert!((WORDS / 2..=WORDS).contains(&held), "{name}: {held}");
        }
    }
}
