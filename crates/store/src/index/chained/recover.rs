//! Chains as a process has left them that was ended by force, made whole.
//!
//! What an entry is worth is for the table to say, which knows what lies where it points. The rest
//! is the same for all: links that lead nowhere are cut, no item is named twice by a chain, and
//! spare buckets that no chain has are free.

use super::{ChainedIndex, FreeList};
use crate::index::{CHAIN_BUCKETS_MAX, Entry, Slot};

/// This many chains before an entry's turn, its item is fetched.
const FETCHED_AHEAD: usize = 2;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It names an item, and is to be this one from now on, which names the same.
    Stays(Entry),
    /// It names no item, and stays as it is.
    Passed,
    /// It is cleared.
    Cleared,
}

/// What became of an entry that had been taken out of its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// It was there already.
    WasThere,
    /// It is there now.
    Done,
    /// Its chain has no slot for it, and there is no spare bucket.
    NoRoom,
}

/// What is known of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spare {
    /// It is no spare bucket's.
    None,
    Free,
    InChain,
}

/// Which spare buckets chains have.
pub struct Spares(Vec<Spare>);

impl Spares {
    fn of(index: &ChainedIndex) -> Spares {
        let mut spares = vec![Spare::None; index.numbers()];
        for number in (0..index.mains()).filter_map(|main| index.spare_of(main)) {
            spares[number] = Spare::Free;
        }
        Spares(spares)
    }

    /// How many.
    pub fn used(&self) -> u64 {
        self.0.iter().filter(|it| **it == Spare::InChain).count() as u64
    }

    /// The list of the others.
    pub fn free_list(&self, index: &ChainedIndex) -> FreeList {
        FreeList::rebuilt(index, |number| self.0[number] == Spare::InChain)
    }
}

impl ChainedIndex {
    /// Walks all chains, and has `judge` say what becomes of each entry of the chain that begins at
    /// a number. An entry is not asked about whose item another one of the chain names that stays.
    /// `fetch` fetches an entry's item, without waiting for it, before it is asked about.
    pub fn recover_chains(
        &self,
        fetch: impl Fn(Entry),
        mut judge: impl FnMut(usize, Entry) -> Verdict,
    ) -> Spares {
        let mut spares = Spares::of(self);
        let mut seen = Vec::new();
        for main in 0..self.mains() {
            if main + FETCHED_AHEAD < self.mains() {
                let ahead = self.main(main + FETCHED_AHEAD);
                let entries = self.bucket(ahead).entries(Self::entries_of(ahead, ahead));
                entries.filter(|it| !it.is_empty()).for_each(&fetch);
            }
            let home = self.main(main);
            self.bucket(home).calm();
            seen.clear();
            let mut number = home;
            for _ in 0..CHAIN_BUCKETS_MAX {
                self.recover_bucket((home, number), &mut seen, &mut judge);
                let Some(next) = self.bucket(number).next() else {
                    break;
                };
                if spares.0.get(next) != Some(&Spare::Free) {
                    self.bucket(number).set_next(None);
                    break;
                }
                spares.0[next] = Spare::InChain;
                self.bucket(next).set_owner(Some(home));
                number = next;
            }
        }
        spares
    }

    fn recover_bucket(
        &self,
        (home, bucket): (usize, usize),
        seen: &mut Vec<Entry>,
        judge: &mut impl FnMut(usize, Entry) -> Verdict,
    ) {
        for entry in 0..Self::entries_of(home, bucket) {
            let slot = Slot { bucket, entry };
            let it = self.get(slot);
            if it.is_empty() {
                continue;
            }
            let is_known = seen.iter().any(|other| other.same_item(it));
            let verdict = match is_known {
                true => Verdict::Cleared,
                false => judge(home, it),
            };
            match verdict {
                Verdict::Stays(entry) => {
                    if entry != it {
                        self.set(slot, entry);
                    }
                    seen.push(entry);
                }
                Verdict::Passed => {}
                Verdict::Cleared => self.set(slot, Entry::EMPTY),
            }
        }
    }

    /// Puts an entry into the chain that begins at a number, unless it is there.
    pub fn put_back(
        &self,
        home: usize,
        entry: Entry,
        is_live: impl Fn(Entry) -> bool,
        (spares, free): (&mut Spares, &mut FreeList),
    ) -> PutBack {
        if self.slots(home).any(|(_, other)| other.same_item(entry)) {
            return PutBack::WasThere;
        }
        let empty = self.slots(home).find(|(_, other)| !is_live(*other));
        let slot = empty.map(|(slot, _)| slot).or_else(|| {
            let (count, last) = self.chain(home).enumerate().last()?;
            if count + 1 == CHAIN_BUCKETS_MAX {
                return None;
            }
            let bucket = free.take(self, home)?;
            self.bucket(last).set_next(Some(bucket));
            spares.0[bucket] = Spare::InChain;
            Some(Slot { bucket, entry: 0 })
        });
        let Some(slot) = slot else {
            return PutBack::NoRoom;
        };
        self.set(slot, entry);
        PutBack::Done
    }
}
